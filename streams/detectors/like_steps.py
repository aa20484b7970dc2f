"""A job's steps against those of healthy jobs like it (slowness, cross-job): slower from its beginning on.

A job that was always slow has no better past that it could be held against, and its ranks may all be alike. What it
says is certain only where the jobs are alike in all that decides how long a step takes. It names nobody, and decides
nothing where ranks or the job's own past tell more.
"""

from __future__ import annotations

import msgspec

from schemas.results import Anomaly, Severity
from streams.attempt_window import AttemptWindow
from streams.checks import require
from streams.detectors.registry import JobDetector, register
from streams.library.likeness import described
from streams.library.pace import SECOND, StepPace
from streams.library.slower import EARLY_WINDOWS, Slower, slower
from streams.lines.phases import QUIET_PHASES
from streams.stall import over
from streams.view import AttemptView

SHOWN_JOBS = 3


class LikeStepsConfig(msgspec.Struct, frozen=True, kw_only=True):
    """``least_s``: how long a job must have been slow before it warns; ``every_windows``: when that is repeated."""

    least_s: float = 60.0
    every_windows: int = 3

    def __post_init__(self) -> None:
        require(self, above_0=("least_s", "every_windows"))


class LikeStepsState(msgspec.Struct, kw_only=True):
    """The steps so far; for how many windows nothing was told, and how severe what was told last was."""

    pace: StepPace = msgspec.field(default_factory=StepPace)
    silent: int = 0
    told: Severity | None = None


@register
class LikeSteps(JobDetector[LikeStepsConfig, LikeStepsState]):
    """Holds the first steps of an attempt against like jobs, as long as the latest are no better."""

    name = "like_steps"
    grounds = frozenset({"slower_than_alike", "slower_than_like"})
    config_type = LikeStepsConfig
    state_type = LikeStepsState

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """At most one finding a window, while the job is slower."""
        contrast, pace = window.contrast, self.state.pace
        if contrast is None:
            return []
        counts = pace.take(window.summaries, EARLY_WINDOWS)
        self.state.silent += 1
        if not counts or not contrast.choice.like or over(view):
            return []
        here = described(window.described)
        found = slower(pace, here, view.world_size, contrast.choice.baseline)
        if found is None:
            return []
        lasted = window.end - (pace.since or window.end)
        warns = found.clear and lasted >= self.config.least_s * SECOND and view.phase not in QUIET_PHASES
        severity: Severity = "warning" if warns else "info"
        if severity == self.state.told and self.state.silent < self.config.every_windows:
            return []
        self.state.silent, self.state.told = 0, severity
        return [self._finding(view, window, found, severity)]

    def _finding(self, view: AttemptView, window: AttemptWindow, found: Slower, severity: Severity) -> Anomaly:
        many = len(found.jobs)
        jobs = f"the slowest of {many} like healthy jobs" if many > 1 else f"like healthy job {found.jobs[0].id}"
        held = "all" if found.held == found.early else str(found.held)
        text = (
            f"a step takes {found.here_s:.4g} s in {held} of the first {found.early} windows behind the warm-up, "
            f"{found.there_s:.4g} s in {jobs}, {found.ratio - 1:.0%} longer"
        )
        return self.anomaly(
            window,
            "job",
            onset=min(view.clock.began or window.start, window.end - 1),
            axis="cross-job",
            layer="metric",
            symptom="slowdown",
            area="unknown",
            grounds="slower_than_alike" if found.alike else "slower_than_like",
            severity=severity,
            text=text if found.alike else f"{text}; {found.unlike}",
            peers=_compared(found),
            phase=view.phase,
            library=window.contrast.library if window.contrast else "",
        )


def _compared(found: Slower) -> str:
    told = [f"{job.id}: {job.pace.step_s:.4g} s over {job.pace.steps} steps" for job in found.jobs if job.pace]
    more = f" and {len(told) - SHOWN_JOBS} more" if len(told) > SHOWN_JOBS else ""
    return f"{', '.join(told[:SHOWN_JOBS])}{more}"
