"""Processes that a signal has stopped (hang): such a rank takes part in nothing, and its peers wait for it.

Its stack, where one can be taken at all, shows where it was when it was stopped, mostly waiting as all others do. Where
nearly all are stopped it is the job's owner who has suspended it, and there is no standstill to explain (``stall_of``);
of more than a few nobody is named.
"""

from __future__ import annotations

import msgspec

from schemas.identity import said_ranks
from schemas.results import Anomaly
from streams.checks import require
from streams.detectors.registry import JobDetector, register
from streams.stall import StallRule, is_stopped, stall_of
from streams.view import AttemptView, AttemptWindow


class StoppedProcessConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Every sample of a window must show the process stopped, and there must be ``samples`` of them."""

    stall: StallRule = StallRule()
    samples: int = 3

    def __post_init__(self) -> None:
        require(self, above_0=("samples",))


class StoppedProcessState(msgspec.Struct, kw_only=True):
    """No state: a window tells."""


@register
class StoppedProcess(JobDetector[StoppedProcessConfig, StoppedProcessState]):
    """Names the ranks whose process is stopped while the job stands still."""

    name = "stopped_process"
    config_type = StoppedProcessConfig
    state_type = StoppedProcessState

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """At most one finding a window, and only during a stall."""
        stall = stall_of(view, window, self.config.stall)
        stopped = sorted(
            {
                summary.identity.rank
                for summary in (window.summaries if stall is not None else [])
                if summary.identity.rank is not None and is_stopped(summary, self.config.samples)
            }
        )
        if stall is None or not stopped:
            return []
        few = stopped if 2 * len(stopped) < len(view.members) else []
        why = "its process is stopped by a signal, as every sample of it shows, while its peers wait"
        return [
            self.anomaly(
                window,
                "job",
                onset=stall.since,
                axis="space",
                layer="platform",
                symptom="hang",
                area="unknown",
                grounds="process_stopped",
                severity="critical" if stall.critical else "warning",
                text=f"the processes of {said_ranks(stopped)} are stopped by a signal",
                peers=f"{len(view.members) - len(stopped)} of {len(view.members)} observed ranks are not",
                iteration=stall.iteration,
                phase=stall.phase,
                suspects=[view.suspect(rank, 0.9, why, "blocker") for rank in few],
            )
        ]
