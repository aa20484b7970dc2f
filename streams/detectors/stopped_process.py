"""Processes that a signal has stopped (hang): such a rank takes part in nothing, and its peers wait for it.

Its stack, where one can be taken at all, shows where it was when it was stopped, mostly waiting as all others do. Where
nearly all are stopped it is the job's owner who has suspended it, and there is no standstill to explain (``stall_of``);
of more than a few nobody is named, nor where most others were not sampled: they may be stopped as well.
"""

from __future__ import annotations

import msgspec

from schemas.identity import said_ranks
from schemas.results import Anomaly, Window
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
    """When the latest window began in which each rank's process is known not to have been stopped all the time (ns)."""

    ran: dict[int, int] = {}


@register
class StoppedProcess(JobDetector[StoppedProcessConfig, StoppedProcessState]):
    """Names the ranks whose process is stopped while the job stands still."""

    name = "stopped_process"
    config_type = StoppedProcessConfig
    state_type = StoppedProcessState

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """At most one finding a window, and only during a stall."""
        stall = stall_of(view, window, self.config.stall)
        running = {one.identity.rank for one in window.summaries if _runs(one, self.config.stall)}
        self.state.ran.update({rank: window.start for rank in running if rank is not None})
        stopped = sorted(
            {
                summary.identity.rank
                for summary in (window.summaries if stall is not None else [])
                if summary.identity.rank is not None and is_stopped(summary, self.config.samples)
            }
        )
        if stall is None or not stopped:
            return []
        running -= set(stopped)
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


def _runs(summary: Window, rule: StallRule) -> bool:
    """Whether a worker's process is known not to be stopped: a sample shows it in another state, or computing."""
    if summary.identity.rank is None or is_stopped(summary):
        return False
    if summary.measured.own("process_running") is not None:
        return True
    cpu = summary.measured.own("cpu_percent")
    return cpu is not None and cpu.mean > rule.frozen_cpu_percent
