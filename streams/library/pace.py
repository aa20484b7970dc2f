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
from streams.iterations import steps_of, told_of
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
BATCH = "global_batch_size"
SECOND = 1_000_000_000


class Pace(msgspec.Struct, kw_only=True):
    """What is gathered of one attempt. ``steps`` are seconds, a number for each window that counts, from the beginning
    on, ``recent`` the last ones; ``counted`` are the iterations of all of them, ``reached`` the latest.

    ``batch`` is the size of the batch, 0 once it was told differently. ``quiet`` is since when a quiet phase lasts, by
    its name (ns), ``lasted`` how long each such phase took that is over (s).
    """

    first: int | None = None
    began: int | None = None
    warm: int | None = None
    reached: int | None = None
    counted: int = 0
    steps: list[float] = []
    recent: list[float] = []
    batch: float | None = None
    quiet: dict[str, int] = {}
    lasted: dict[str, list[float]] = {}

    def take(self, start: int, windows: Sequence[Window]) -> None:
        """Take in a window of time that begins at ``start``: the summaries of all ranks of the attempt in it."""
        if not windows:
            return
        self.first = start if self.first is None else self.first
        told = [one.iteration for one in windows if one.iteration is not None]
        if told and self.began is None:
            times = [one.iteration_time for one in windows if one.iteration_time is not None]
            self.began = min(times, default=start)
        self._batch(windows)
        turned = self._phases(windows)
        if told:
            self._steps(max(told), windows, turned=turned)

    def _steps(self, reached: int, windows: Sequence[Window], *, turned: bool) -> None:
        before = self.reached
        self.reached = reached
        if self.warm is None:
            self.warm = min(told_of(list(windows)), default=reached) + WARM_UP_STEPS
        if before is None or before < self.warm or reached <= before:
            return
        if turned and reached - before < MANY_STEPS:
            return
        durations = steps_of(list(windows))
        if not durations:
            return
        seconds = float(f"{median(durations) / SECOND:.6g}")
        self.counted += reached - before
        self.steps = self.steps if len(self.steps) >= MOST_WINDOWS else [*self.steps, seconds]
        self.recent = [*self.recent, seconds][-RECENT:]

    def _batch(self, windows: Sequence[Window]) -> None:
        """The size of the batch as lines print it."""
        if BATCH not in names_of(windows):
            return
        told = {
            value
            for window in windows
            for series in window.reported
            if series.name == BATCH
            for value in series.values
            if value is not None and value > 0
        }
        for value in sorted(told):
            self.batch = value if self.batch in (None, value) else 0.0

    def _phases(self, windows: Sequence[Window]) -> bool:
        """Follow checkpoints and evaluations; returns whether any rank's phase turned in the window."""
        turns = [one.phase_time for one in windows if one.phase_time is not None]
        for phase in sorted(QUIET_PHASES):
            began = [one.phase_time for one in windows if one.phase == phase and one.phase_time is not None]
            if phase in self.quiet:
                if not any(one.phase == phase for one in windows):
                    ended = [time for time in turns if time > self.quiet[phase]]
                    self._over(phase, max(ended, default=None))
            elif began:
                self.quiet = {**self.quiet, phase: min(began)}
        return bool(turns)

    def _over(self, phase: str, ended: int | None) -> None:
        since = self.quiet[phase]
        self.quiet = {name: time for name, time in self.quiet.items() if name != phase}
        known = self.lasted.get(phase, [])
        if ended is not None and len(known) < MOST_QUIET:
            seconds = float(f"{(ended - since) / SECOND:.6g}")
            self.lasted = {**self.lasted, phase: [*known, seconds]}

    def lasts(self, phase: str, now: int) -> float:
        """For how long a quiet phase lasts that is not over, in seconds; 0 where there is none."""
        return max(now - self.quiet[phase], 0) / SECOND if phase in self.quiet else 0.0

    @property
    def start_up_s(self) -> float:
        """From its first window to its first iteration, in seconds; 0 before that."""
        return max(self.began - self.first, 0) / SECOND if self.began is not None and self.first is not None else 0.0


def summed_up(paces: Sequence[Pace]) -> JobPace | None:
    """The attempts of a healthy job as one, null where none of them has done steps."""
    steps = [seconds for pace in paces for seconds in pace.steps][:MOST_WINDOWS]
    phases = {START_UP: [pace.start_up_s for pace in paces if pace.began is not None]}
    for phase in sorted(QUIET_PHASES):
        phases[phase] = [seconds for pace in paces for seconds in pace.lasted.get(phase, [])]
    if not any(phases.values()):
        return None
    middle = median(steps) if steps else 0.0
    batches = {pace.batch for pace in paces if pace.batch is not None}
    return JobPace(
        step_s=_rounded(middle),
        spread_s=_rounded(spread(steps, middle)) if steps else 0.0,
        windows=len(steps),
        steps=sum(pace.counted for pace in paces),
        batch=next(iter(batches)) if len(batches) == 1 else 0.0,
        phases={name: _rounded(median(seconds)) for name, seconds in sorted(phases.items()) if seconds},
    )


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")
