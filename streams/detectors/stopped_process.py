"""Processes that a signal has stopped (hang): such a rank takes part in nothing, and its peers wait for it.

Its stack, where one can be taken at all, shows where it was when it was stopped, mostly waiting as all others do. Where
nearly all are stopped it is the job's owner who has suspended it, and there is no standstill to explain (``stall_of``);
of more than a few nobody is named, nor where most others were not sampled: they may be stopped as well.
"""

from __future__ import annotations

import msgspec
import numpy as np

from schemas.identity import said_ranks
from schemas.results import Anomaly
from streams.attempt_window import AttemptWindow
from streams.checks import require
from streams.detectors.registry import JobDetector, register
from streams.stall import StallRule, stall_of, stopped_ranks
from streams.view import AttemptView


class StoppedProcessConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Every sample of a window must show the process stopped, and there must be ``samples`` of them."""

    stall: StallRule = StallRule()
    samples: int = 3

    def __post_init__(self) -> None:
        require(self, above_0=("samples",))


class StoppedProcessState(msgspec.Struct, kw_only=True):
    """When the latest window began in which each rank's process is known not to have been stopped all the time (ns)."""

    ran: dict[int, int] = {}


@register
class StoppedProcess(JobDetector[StoppedProcessConfig, StoppedProcessState]):
    """Names the ranks whose process is stopped while the job stands still."""

    name = "stopped_process"
    grounds = frozenset({"process_stopped"})
    config_type = StoppedProcessConfig
    state_type = StoppedProcessState

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """At most one finding a window, and only during a stall."""
        stall = stall_of(view, window, self.config.stall)
        running = _running(window, self.config.stall)
        self.state.ran.update(dict.fromkeys(running, window.start))
        stopped = stopped_ranks(window, self.config.samples) if stall is not None else []
        if stall is None or not stopped:
            return []
        running = sorted(set(running) - set(stopped))
        # Who ran while the job stood still already was stopped because of it, by a debugger or an impatient owner.
        before = [rank for rank in stopped if self.state.ran.get(rank, stall.since) <= stall.since]
        few = before if 2 * len(stopped) < len(view.members) < 2 * (len(running) + len(stopped)) else []
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
                peers=f"{len(running)} of {len(view.members)} observed ranks are known not to be",
                iteration=stall.iteration,
                phase=stall.phase,
                suspects=[view.suspect(rank, 0.9, why, "blocker") for rank in few],
            )
        ]


def _running(window: AttemptWindow, rule: StallRule) -> list[int]:
    """The ranks whose process is known not to be stopped: a sample shows it in another state, or computing."""
    table = window.gauges
    shown = ~np.isnan(table.own("process_running", "counts"))
    computing = table.own("cpu_percent", "means") > rule.frozen_cpu_percent
    stopped = set(stopped_ranks(window))
    return [rank for rank in table.where(shown | computing) if rank not in stopped]
