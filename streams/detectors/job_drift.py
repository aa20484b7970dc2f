"""The job's own pace (slowness): steps that take longer, or rates that fall, against the job's own past.

Ranks that train together share the duration of a step, so one rank's word stands for all, and nobody is named: who it
is that holds the others up is for the contrast of ranks to say. A verified shift (``streams/shift.py``) is a hint until
it has lasted ``least_s``; steps during which somebody's phase turned, as for a checkpoint or an evaluation, do not
count. Where steps take longer but as many tokens a second are done, or the size of the batch changes, the steps have
become others. Where all own work of all ranks takes longer by one factor from one step on and stays there, they most
likely have (``streams/alike.py``): nothing that breaks does that.
"""

from __future__ import annotations

import re
from functools import lru_cache
from math import log1p
from statistics import median

import msgspec

from schemas.results import Anomaly, Series, Severity
from streams.alike import Alike, scaled_together
from streams.attempt_window import AttemptWindow
from streams.checks import require
from streams.detectors.registry import JobDetector, register
from streams.lines.names import STEP_TIME, in_common
from streams.lines.phases import QUIET_PHASES
from streams.nobodys import NOBODY
from streams.shift import Level, ShiftRule, Track, Watcher
from streams.stall import over
from streams.timers import kind_of_timer, scale_ns
from streams.view import AttemptView

SECOND = 1_000_000_000
MOST_NAMES = 8
MOST_TIMERS = 32
RATES = frozenset({"tokens_per_s", "tflops", "mfu"})
BATCH = "global_batch_size"
CONSUMED = "consumed_samples"
"""Samples so far: what it grows by in a step is the size of its batch, where that is not printed."""
_WHOLE = re.compile(r"(?:total|step|iteration|iter|batch)(?:_time|_duration)?_m?s$")


class JobDriftConfig(msgspec.Struct, frozen=True, kw_only=True):
    """``rule`` makes a shift, which becomes a warning once it has lasted ``least_s``.

    Another rank's word is taken once the one that spoke has reported nothing for ``patience_windows`` windows. A shift
    is told until no report came for ``patience_reports`` times as long as the last one took, and ``patience_s``.
    """

    rule: ShiftRule = ShiftRule()
    least_s: float = 60.0
    patience_windows: int = 6
    patience_reports: float = 3.0
    patience_s: float = 60.0

    def __post_init__(self) -> None:
        require(self, above_0=("least_s", "patience_windows", "patience_reports", "patience_s"))


class Pace(msgspec.Struct, kw_only=True):
    """One series of the job: whose word it is, up to which iteration and window, and the shift that stands.

    ``gap`` is how far the last two reports lie apart (ns). ``first`` is where the shift began, ``shift`` the latest
    that was verified.
    """

    rank: int
    iteration: int = -1
    time: int = 0
    gap: int = 0
    end: int = 0
    track: Track = msgspec.field(default_factory=Track)
    first: Level | None = None
    shift: Level | None = None


class JobDriftState(msgspec.Struct, kw_only=True):
    """Series by printed name; ``batch`` is the size of the batch that was last told.

    ``consumed`` is the last iteration and the samples until then. ``drifts`` are the latest shifts of ranks' own
    timers, by timer and rank.
    """

    paces: dict[str, Pace] = {}
    batch: float | None = None
    consumed: tuple[int, float] | None = None
    drifts: dict[str, dict[int, Alike]] = {}


@lru_cache(maxsize=4096)
def common_of(name: str) -> str:
    """``step_time_s``, or the rate that a series is, by its printed name; empty where it is neither."""
    common = in_common(name, 1.0)
    if common is not None and (common[0] == STEP_TIME or common[0] in RATES):
        return common[0]
    return STEP_TIME if _WHOLE.match(name) else ""


def duration_of(name: str, value: float) -> float:
    """Seconds of a step, or of one unit of what a rate counts; 0 where the value is neither."""
    common = in_common(name, value)
    number = value if common is None else common[1]
    if number <= 0 or not common_of(name):
        return 0.0
    if common is None:
        return number * scale_ns(name) / SECOND
    return 1 / number if common[0] in RATES else number


@register
class JobDrift(JobDetector[JobDriftConfig, JobDriftState]):
    """Watches step times and rates of the job as such."""

    name = "job_drift"
    grounds = frozenset({"job_shift", "other_steps"})
    version = 2
    config_type = JobDriftConfig
    state_type = JobDriftState

    def __init__(self, config: JobDriftConfig | None = None) -> None:
        super().__init__(config)
        self._watchers: dict[str, Watcher] = {}

    def restore(self, raw: msgspec.Raw) -> None:
        """Take up a written state; river's part follows from the values."""
        super().restore(raw)
        self._watchers = {}

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """At most one finding a window, while a shift stands."""
        told = window.summaries if window.nobodys is None else [*window.summaries, window.nobodys]
        turns = sorted({summary.phase_time for summary in told if summary.phase_time is not None})
        self._drifted(window)
        since = self._batch_since(window)
        for name, series in self._speakers(window):
            self._take(name, series, turns, since)
            self.state.paces[name].end = window.end
        if over(view):
            return []
        standing = [name for name, pace in sorted(self.state.paces.items()) if self._stands(pace, window.end)]
        return [self._finding(view, window, standing)] if standing else []

    def _speakers(self, window: AttemptWindow) -> list[tuple[str, Series]]:
        """Each series as the rank has it whose word counts: the lowest that prints it, as long as it does."""
        counted = []
        for name, told in window.of_job.items():
            if not common_of(name) or len(self.state.paces.keys() | {name}) > MOST_NAMES:
                continue
            pace = self.state.paces.get(name)
            rank = pace.rank if pace is not None and pace.rank in told.ranks else min(told.ranks)
            self._listen(name, rank, window)
            if self.state.paces[name].rank == rank:
                counted.append((name, told.of(rank)))
        return counted

    def _drifted(self, window: AttemptWindow) -> None:
        """Remember the latest shift of each timer of own work."""
        for summary in window.summaries:
            rank = summary.identity.rank
            for drift in summary.drifts if rank is not None else ():
                timers = self.state.drifts
                if kind_of_timer(drift.metric) == "own" and len(timers.keys() | {drift.metric}) <= MOST_TIMERS:
                    seconds = drift.after * scale_ns(drift.metric) / SECOND
                    timers.setdefault(drift.metric, {})[rank or 0] = Alike(
                        iteration=drift.iteration, ratio=drift.after / drift.before, seconds=seconds
                    )

    def _listen(self, name: str, rank: int, window: AttemptWindow) -> None:
        """Whose word counts from now on; where it is another rank's, all begins anew."""
        pace = self.state.paces.get(name)
        patience = self.config.patience_windows * (window.end - window.start)
        if pace is None or (pace.rank != rank and window.end - pace.end > patience):
            self.state.paces[name] = Pace(rank=rank)
            self._watchers.pop(name, None)

    def _batch_since(self, window: AttemptWindow) -> int:
        """The iteration before which steps in this window are of another batch size, -1 if they are not.

        A step of another batch size is another step: all that is known of their pace begins anew.
        """
        since = -1
        for iteration, size in self._sizes(window):
            if self.state.batch not in (None, size):
                since = iteration
                for name, pace in self.state.paces.items():
                    self.state.paces[name] = Pace(rank=pace.rank, iteration=pace.iteration, end=pace.end)
                self._watchers = {}
            self.state.batch = size
        return since

    def _sizes(self, window: AttemptWindow) -> list[tuple[int, float]]:
        """Sizes of batches by iteration, as the lowest rank prints them, or by the samples so far."""
        if told := window.of_job.get(BATCH):
            series = told.of(min(told.ranks))
            return [
                (at, value) for at, value in zip(series.iterations, series.values, strict=True) if value is not None
            ]
        found = []
        if told := window.of_job.get(CONSUMED):
            series = told.of(min(told.ranks))
            for at, value in zip(series.iterations, series.values, strict=True):
                before, after = self.state.consumed, (at, value) if value is not None else None
                if before is not None and after is not None and after[0] > before[0] and after[1] > before[1]:
                    found.append((at, (after[1] - before[1]) / (after[0] - before[0])))
                self.state.consumed = after
        return found

    def _take(self, name: str, series: Series, turns: list[int], since: int) -> None:
        pace = self.state.paces[name]
        watcher = self._watcher(name, pace)
        for iteration, time, value in zip(series.iterations, series.times, series.values, strict=True):
            if iteration < pace.iteration and pace.rank == NOBODY:
                # Nothing tells whether it is the same training that goes on: another's pace is no slowness.
                pace = self.state.paces[name] = Pace(rank=NOBODY)
                watcher = self._watchers[name] = Watcher(self.config.rule, pace.track)
            elif iteration < pace.iteration:
                # Counted anew or rolled back: what begins again warms up again.
                pace.track.skipped = 0
            seconds = 0.0 if value is None else duration_of(name, value)
            if iteration == pace.iteration or iteration < since or seconds <= 0:
                continue
            if not any(pace.time < turn <= time for turn in turns) or pace.time == 0:
                self._moved(pace, watcher.take(iteration, time, seconds))
            pace.gap = time - pace.time if pace.time else 0
            pace.iteration, pace.time = iteration, time

    def _watcher(self, name: str, pace: Pace) -> Watcher:
        if name not in self._watchers:
            self._watchers[name] = Watcher(self.config.rule, pace.track)
        return self._watchers[name]

    def _moved(self, pace: Pace, level: Level | None) -> None:
        if level is not None and level.returned:
            pace.first = pace.shift = None
        elif level is not None:
            pace.first = pace.first or level
            pace.shift = level

    def _stands(self, pace: Pace, end: int) -> bool:
        """Whether a shift stands and steps are still being done."""
        if pace.shift is None or pace.first is None:
            return False
        return end - pace.time <= max(self.config.patience_s * SECOND, self.config.patience_reports * pace.gap)

    def _finding(self, view: AttemptView, window: AttemptWindow, standing: list[str]) -> Anomaly:
        steps = [name for name in standing if common_of(name) == STEP_TIME]
        name = (steps or standing)[0]
        pace = self.state.paces[name]
        first, shift = pace.first, pace.shift
        assert first is not None and shift is not None
        explained = self._explained(steps, window)
        together = "" if explained or first != shift else self._together(first, window)
        lasted = pace.time - first.time
        if steps and not view.clock.is_timed:
            # Where lines print no times, steps do.
            lasted = int((pace.iteration - first.iteration) * shift.after * SECOND)
        warns = lasted >= self.config.least_s * SECOND and not explained and view.phase not in QUIET_PHASES
        severity: Severity = "warning" if warns else "info"
        return self.anomaly(
            window,
            "job",
            onset=first.time,
            axis="time",
            layer="metric",
            symptom="slowdown",
            area="workload" if explained or together else "unknown",
            grounds="other_steps" if explained else "job_shift",
            severity=severity,
            text=_said(name, first, shift),
            peers=explained or together or "the job against its own past; ranks that train together share it",
            iteration=first.iteration,
            phase=view.phase,
        )

    def _together(self, level: Level, window: AttemptWindow) -> str:
        """Which timers of all ranks took the same turn, where they are most of a step; empty where they are not."""
        whole = Alike(iteration=level.iteration, ratio=level.after / level.before, seconds=level.after)
        reporters = {name: len(told) for name, told in window.series.items() if name in self.state.drifts}
        timers = scaled_together(whole, self.state.drifts, reporters)
        said = f"all ranks' own work ({', '.join(timers)}) takes longer by as much since then"
        return f"{said}, as with larger inputs or other settings" if timers else ""

    def _explained(self, steps: list[str], window: AttemptWindow) -> str:
        """Why steps that take longer are no slowness, or that fewer are done while steps take as long as before."""
        patience = self.config.patience_windows * (window.end - window.start)
        still = [
            name
            for name, pace in sorted(self.state.paces.items())
            if pace.shift is None and window.end - pace.end <= patience and self._level(pace)
        ]
        rates = [name for name in still if common_of(name) == "tokens_per_s"]
        timed = [name for name in still if common_of(name) == STEP_TIME]
        if steps and rates:
            return f"{rates[0]} has not fallen: the steps are larger"
        if not steps and timed:
            return f"{timed[0]} has not risen: less is done in a step"
        return ""

    def _level(self, pace: Pace) -> bool:
        """Whether a series is known well enough, and has not moved by half of what makes a shift."""
        reference, latest = pace.track.reference, pace.track.values[-self.config.rule.steps :]
        if len(reference) < self.config.rule.steps:
            return False
        return not latest or median(latest) - median(reference) < log1p(self.config.rule.shift) / 2


def _said(name: str, first: Level, shift: Level) -> str:
    before, after = first.before, shift.after
    change = f"{abs(after / before - 1):.0%}"
    if common_of(name) in RATES:
        return f"{name} fell from {1 / before:.4g} to {1 / after:.4g}: a step's work takes {change} longer"
    return f"a step takes {after:.4g} s instead of {before:.4g} s, {change} longer ({name})"
