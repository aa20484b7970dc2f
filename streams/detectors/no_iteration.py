"""Iterations have stopped (hang): the job's own clock stands still while its processes live."""

from __future__ import annotations

import msgspec

from schemas.results import Anomaly
from streams.attempt_window import AttemptWindow
from streams.detectors.registry import JobDetector, register
from streams.lines.phases import SHUTDOWN
from streams.stall import StallRule, stall_of
from streams.view import AttemptView


class Nothing(msgspec.Struct, kw_only=True):
    """No state."""


@register
class NoIteration(JobDetector[StallRule, Nothing]):
    """Says that the attempt stands still, since when, and by how much; names nobody.

    A short silence alone is information: a contrast of stacks or collectives makes it a hang, or its length does.
    """

    name = "no_iteration"
    grounds = frozenset({"no_iteration"})
    config_type = StallRule
    state_type = Nothing

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """One finding a window while the stall lasts."""
        stall = stall_of(view, window, self.config)
        if stall is None:
            return []
        silence, step = stall.silence / 1e9, stall.step / 1e9
        if stall.iteration is None:
            said, before = (
                f"no line from any rank for {silence:.0f} s, no first iteration",
                "all, or those waited for, are frozen",
            )
        elif stall.phase == SHUTDOWN:
            said = f"no end for {silence:.0f} s after the last iteration {stall.iteration}, and some are waited for"
            before = "training came to its own end"
        else:
            behind = "the checkpoint or evaluation behind " if stall.since > (view.clock.time or 0) else ""
            said = (
                f"no iteration for {silence:.0f} s after {behind}iteration {stall.iteration}, "
                f"{silence / step:.0f} steps long"
            )
            before = f"median step {step:.3g} s before"
        return [
            self.anomaly(
                window,
                "job",
                onset=stall.since,
                axis="time",
                layer="log",
                symptom="hang",
                area="unknown",
                grounds="no_iteration",
                severity="critical" if stall.critical else "info",
                text=said,
                peers=before,
                iteration=stall.iteration,
                phase=stall.phase,
            )
        ]
