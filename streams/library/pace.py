"""How long a job's steps, its start-up and its checkpoints take, gathered window by window, bounded.

Ranks that train together share the duration of a step, so the median over ranks and steps of a window is the job's. The
first steps compile and fill caches, and windows of few steps in which a rank's phase turned hold a checkpoint or an
evaluation besides: they are left out. Of phases only what lasts over the end of a window is seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import msgspec

from schemas.library import JobPace
from schemas.results import Window
from streams.iterations import MOST_STEP_S, steps_of, told_of
from streams.lines.names import STEP_TIME, in_common
from streams.lines.phases import QUIET_PHASES, START_UP
from streams.packing import names_of
from streams.robust import spread

WARM_UP_STEPS = 5
MANY_STEPS = 10
"""Of so many steps in a window the middle one is not one with a checkpoint in it."""
MOST_WINDOWS, RECENT = 360, 6
"""Windows of a job's beginning, and of its end, of which steps are kept."""
MOST_QUIET = 32
"""Checkpoints, and evaluations, whose durations are kept."""
ENOUGH_RANKS = 8
"""All ranks print the same steps: so many of them are read."""
BATCH = "global_batch_size"
SECOND = 1_000_000_000


class StepPace(msgspec.Struct, kw_only=True):
    """Steps of one attempt: seconds, a number for each window that counts, ``early`` the first, ``recent`` the last.

    ``since`` is when the first of those windows began (ns), ``counted`` the iterations of all of them, ``reached`` the
    latest; up to ``warm`` none count. ``batch`` is the size of the batch, 0 once it was told differently.
    """

    warm: int | None = None
    reached: int | None = None
    since: int | None = None
    counted: int = 0
    early: list[float] = []
    recent: list[float] = []
    batch: float | None = None

    def take(self, windows: Sequence[Window], most: int) -> bool:
        """Take in one window of time, the summaries of all ranks; ``most`` early ones are kept.

        Returns whether it counts.
        """
        told = [one.iteration for one in windows if one.iteration is not None]
        if not told:
            return False
        self._batch(windows)
        before, reached = self.reached, max(told)
        self.reached = reached
        if self.warm is None:
            self.warm = min(told_of(list(windows)), default=reached) + WARM_UP_STEPS
        if before is None or before < self.warm or reached <= before:
            return False
        turned = any(one.phase_time is not None for one in windows)
        if turned and reached - before < MANY_STEPS:
            return False
        durations = _printed(windows) or [step / SECOND for step in steps_of(list(windows))]
        if not durations:
            return False
        seconds = _rounded(median(durations))
        self.since = windows[0].start if self.since is None else self.since
        self.counted += reached - before
        self.early = self.early if len(self.early) >= most else [*self.early, seconds]
        self.recent = [*self.recent, seconds][-RECENT:]
        return True

    def _batch(self, windows: Sequence[Window]) -> None:
        """The size of the batch as lines print it."""
        if BATCH not in names_of(windows):
            return
        told = {
            value
            for window in windows
            if BATCH in names_of([window])
            for series in window.reported
            if series.name == BATCH
            for value in series.values
            if value is not None and value > 0
        }
        for value in sorted(told):
            self.batch = value if self.batch in (None, value) else 0.0


def _printed(windows: Sequence[Window]) -> list[float]:
    """How long each step took as lines print it (s); times of lines would count checkpoints between them as well."""
    found: list[float] = []
    telling = 0
    for window in windows:
        names = {name for name in names_of([window]) if (common := in_common(name, 1.0)) and common[0] == STEP_TIME}
        if not names or telling == ENOUGH_RANKS:
            continue
        telling += 1
        for series in window.reported:
            if series.name in names:
                told = [in_common(series.name, value) for value in series.values if value is not None and value > 0]
                found += [common[1] for common in told if common is not None and common[1] < MOST_STEP_S]
    return found


class PhasePace(msgspec.Struct, kw_only=True):
    """Phases of one attempt: its ``first`` window and when its iterations ``began`` (ns).

    ``quiet`` is since when a quiet phase lasts, by its name (ns), ``lasted`` how long each that is over took (s).
    """

    first: int | None = None
    began: int | None = None
    quiet: dict[str, int] = {}
    lasted: dict[str, list[float]] = {}

    def take(self, windows: Sequence[Window]) -> None:
        """Take in one window of time, the summaries of all ranks."""
        if not windows:
            return
        self.first = windows[0].start if self.first is None else self.first
        if self.began is None and any(one.iteration is not None for one in windows):
            times = [one.iteration_time for one in windows if one.iteration_time is not None]
            self.began = min(times, default=windows[0].start)
        turns = [one.phase_time for one in windows if one.phase_time is not None]
        for phase in sorted(QUIET_PHASES):
            began = [one.phase_time for one in windows if one.phase == phase and one.phase_time is not None]
            if phase in self.quiet and not any(one.phase == phase for one in windows):
                self._over(phase, max((time for time in turns if time > self.quiet[phase]), default=None))
            elif phase not in self.quiet and began:
                self.quiet = {**self.quiet, phase: min(began)}

    def _over(self, phase: str, ended: int | None) -> None:
        since = self.quiet[phase]
        self.quiet = {name: time for name, time in self.quiet.items() if name != phase}
        known = self.lasted.get(phase, [])
        if ended is not None and len(known) < MOST_QUIET:
            self.lasted = {**self.lasted, phase: [*known, _rounded((ended - since) / SECOND)]}

    def so_far(self, now: int) -> dict[str, tuple[int, float]]:
        """Since when (ns) and for how long (s) the start-up lasts or lasted, and each quiet phase that is not over."""
        found = {phase: (since, max(now - since, 0) / SECOND) for phase, since in sorted(self.quiet.items())}
        if self.first is not None:
            found[START_UP] = self.first, max((now if self.began is None else self.began) - self.first, 0) / SECOND
        return found


def summed_up(steps: Sequence[StepPace], phases: Sequence[PhasePace]) -> JobPace | None:
    """The attempts of a healthy job as one, null where none of them has done steps."""
    seconds = [one for pace in steps for one in pace.early][:MOST_WINDOWS]
    lasted = {
        START_UP: [
            (one.began - one.first) / SECOND for one in phases if one.began is not None and one.first is not None
        ]
    }
    for phase in sorted(QUIET_PHASES):
        lasted[phase] = [took for one in phases for took in one.lasted.get(phase, [])]
    if not any(lasted.values()):
        return None
    middle = median(seconds) if seconds else 0.0
    batches = {one.batch for one in steps if one.batch is not None}
    return JobPace(
        step_s=_rounded(middle),
        spread_s=_rounded(spread(seconds, middle)) if seconds else 0.0,
        windows=len(seconds),
        steps=sum(one.counted for one in steps),
        batch=next(iter(batches)) if len(batches) == 1 else 0.0,
        phases={name: _rounded(max(median(took), 0.0)) for name, took in sorted(lasted.items()) if took},
    )


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")
