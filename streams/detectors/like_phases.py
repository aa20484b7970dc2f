"""How long start-up, checkpoints and evaluations last, against healthy jobs like this one (cross-job).

It supports an incident and never opens one: what lasts longer may well end, and a hang in it is found by other means.
"""

from __future__ import annotations

import msgspec

from schemas.results import Anomaly, Area
from streams.attempt_window import AttemptWindow
from streams.checks import require
from streams.detectors.registry import JobDetector, register
from streams.library.pace import PhasePace
from streams.view import AttemptView

MOST_TOLD = 64


class LikePhasesConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A phase is long once it lasts ``ratio`` times as long as in any like job, and ``least_s`` longer.

    Windows tell when a phase began to within their length, and machines start as fast as their images come.
    """

    ratio: float = 2.0
    least_s: float = 60.0

    def __post_init__(self) -> None:
        require(self, above_0=("least_s",))
        if self.ratio <= 1:
            raise ValueError("ratio must be above 1")


class LikePhasesState(msgspec.Struct, kw_only=True):
    """The phases so far, and which were told, as *phase|since*."""

    pace: PhasePace = msgspec.field(default_factory=PhasePace)
    told: list[str] = []


@register
class LikePhases(JobDetector[LikePhasesConfig, LikePhasesState]):
    """Tells each phase that lasts too long once."""

    name = "like_phases"
    supporting = True
    config_type = LikePhasesConfig
    state_type = LikePhasesState

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """At most one finding of each phase; they name nobody."""
        contrast, pace = window.contrast, self.state.pace
        if contrast is None:
            return []
        pace.take(window.summaries)
        found = []
        for phase, (since, seconds) in pace.so_far(window.end).items():
            jobs = [job for job in contrast.choice.baseline if job.pace is not None and phase in job.pace.phases]
            longest = max((job.pace.phases[phase] for job in jobs if job.pace is not None), default=0.0)
            key = f"{phase}|{since}"
            if not contrast.choice.like or not jobs or key in self.state.told:
                continue
            if seconds < max(self.config.ratio * longest, longest + self.config.least_s):
                continue
            self.state.told = [*self.state.told, key][-MOST_TOLD:]
            area: Area = "checkpoint" if phase == "checkpoint" else "unknown"
            found.append(
                self.anomaly(
                    window,
                    key,
                    onset=min(since, window.end - 1),
                    axis="cross-job",
                    layer="log",
                    symptom="slowdown",
                    area=area,
                    grounds=f"long_{phase.replace('-', '_')}",
                    severity="info",
                    text=f"{phase} takes {seconds:.0f} s so far, {longest:.4g} s at most in like healthy jobs",
                    peers=f"{len(jobs)} like healthy job{'s' if len(jobs) != 1 else ''}",
                    iteration=view.clock.iteration,
                    phase=view.phase,
                    library=contrast.library,
                )
            )
        return found
