"""Numerics: a loss or gradient norm that is suddenly far above its recent past, and whether it stays there.

Far above is by a ratio to the median and by so many deviations; a loss that may be negative or zero has no ratio. What
comes back at once is information, as are gradients and the losses of parts, which swing in healthy jobs; a loss that
stays up is a warning. A rank is named only where its own series rose alone, and those of all others only after it.
"""

from __future__ import annotations

from statistics import median

import msgspec

from schemas.results import Anomaly, Severity
from streams.checks import require
from streams.detectors.registry import JobDetector, register
from streams.numerics import kind_of, stages_of, usual
from streams.stall import over
from streams.view import AttemptView, AttemptWindow

MOST_NAMES = 8
MOST_PENDING = 512
MOST_HABITUAL = 64


class LossSpikeConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A value stands out above ``loss_ratio`` (``gradient_ratio``) times the median of the last ``past`` reports.

    It must be ``sigmas`` deviations above it as well, which have a ``floor``, a share of the median; of ``least``
    reports. It stays up if ``stay`` reports stand out before ``recovered`` in a row do not; after ``settled`` reports
    the level is the usual one. One rank alone comes before all others by at most ``ahead`` reports, of at least
    ``reporters`` ranks; who has reported nothing for ``patience_windows`` windows is not waited for.
    """

    loss_ratio: float = 1.5
    gradient_ratio: float = 5.0
    sigmas: float = 5.0
    floor: float = 0.01
    past: int = 64
    least: int = 20
    stay: int = 10
    recovered: int = 3
    settled: int = 256
    reporters: int = 3
    ahead: int = 5
    patience_windows: int = 3

    def __post_init__(self) -> None:
        counts = ("past", "least", "stay", "recovered", "settled", "reporters", "ahead", "patience_windows")
        require(self, above_0=("loss_ratio", "gradient_ratio", "sigmas", *counts), shares=("floor",))
        if self.least > self.past:
            raise ValueError("loss_spike: least <= past must hold")


class Rise(msgspec.Struct, kw_only=True):
    """Reports that stand out: the first, how many, the highest, how many in a row have not since, the usual value.

    ``rank`` is the one whose own series rose before the others'.
    """

    iteration: int
    time: int
    usual: float
    highest: float
    count: int = 1
    below: int = 0
    rank: int | None = None
    latest: list[float] = []


class Course(msgspec.Struct, kw_only=True):
    """One series of the job: the usual values of late, those of iterations that some ranks have not reported yet.

    ``reporters`` has the latest iteration of each rank and the window's end in which it came. ``alone`` is the rank
    that stood out alone, at which iteration and time, ``waited`` for how many reports; ``habitual`` ones had before.
    """

    past: list[float] = []
    pending: dict[int, dict[int, tuple[float, int]]] = {}
    reporters: dict[int, tuple[int, int]] = {}
    judged_to: int = -1
    rise: Rise | None = None
    alone: tuple[int, int, int] | None = None
    waited: int = 0
    habitual: list[int] = []


class LossSpikeState(msgspec.Struct, kw_only=True):
    """Series by name."""

    courses: dict[str, Course] = {}


@register
class LossSpike(JobDetector[LossSpikeConfig, LossSpikeState]):
    """Holds losses and gradient norms against their own recent past."""

    name = "loss_spike"
    config_type = LossSpikeConfig
    state_type = LossSpikeState

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """At most one finding a series and window: when it rises, and in each window in which it stays up."""
        self._collect(window)
        found = []
        for name, course in sorted(self.state.courses.items()):
            began, stays = self._judge(name, course, window)
            if over(view):
                continue
            if stays is not None:
                found.append(self._finding(view, window, name, stays, stays=True))
            elif began is not None:
                found.append(self._finding(view, window, name, began, stays=False))
        return found

    def _collect(self, window: AttemptWindow) -> None:
        courses = self.state.courses
        for name, told in window.series.items():
            if kind_of(name) == "none" or (name not in courses and len(courses) >= MOST_NAMES):
                continue
            course = courses.setdefault(name, Course())
            for rank, series in told:
                _begin_anew(course, rank, series.iterations[0])
                for iteration, time, value in zip(series.iterations, series.times, series.values, strict=True):
                    if value is not None and iteration > course.judged_to:
                        course.pending.setdefault(iteration, {})[rank] = (value, time)
                course.reporters[rank] = (series.iterations[-1], window.end)

    def _ready(self, course: Course, window: AttemptWindow) -> list[int]:
        """Iterations that everybody has reported who reports at all, in order."""
        patience = self.config.patience_windows * (window.end - window.start)
        course.reporters = {rank: one for rank, one in course.reporters.items() if one[1] > window.end - patience}
        low = min((iteration for iteration, _ in course.reporters.values()), default=None)
        waiting = sorted(course.pending)
        return [
            at
            for place, at in enumerate(waiting, 1)
            if low is None or at <= low or place <= len(waiting) - MOST_PENDING
        ]

    def _judge(self, name: str, course: Course, window: AttemptWindow) -> tuple[Rise | None, Rise | None]:
        """The rise that began, and the one that stays, with the reports that are complete by now."""
        began = stays = None
        for iteration in self._ready(course, window):
            values = course.pending.pop(iteration)
            course.judged_to = iteration
            if 2 * len(values) < len(course.reporters):
                continue
            before = course.rise
            self._step(name, course, iteration, values)
            rise = course.rise
            began = rise if rise is not None and rise is not before else began
            stays = rise if rise is not None and rise.count >= self.config.stay else stays
        return began, stays

    def _step(self, name: str, course: Course, iteration: int, values: dict[int, tuple[float, int]]) -> None:
        value = median(one for one, _ in values.values())
        time = min(at for _, at in values.values())
        center, limit = self._limit(name, course.past)
        if course.rise is not None:
            self._go_on(course, course.rise, value, limit)
        elif value > limit:
            course.rise = Rise(iteration=iteration, time=time, usual=center, highest=value, latest=[value])
            if course.alone is not None:
                course.rise.rank, course.rise.iteration, course.rise.time = course.alone
        else:
            course.past = [*course.past, value][-self.config.past :]
            self._stand_alone(course, iteration, values, limit)

    def _limit(self, name: str, past: list[float]) -> tuple[float, float]:
        """The usual value, and above which one stands out."""
        config = self.config
        if len(past) < config.least:
            return 0.0, float("inf")
        center, sigma = usual(past, config.floor)
        limit = max(center + config.sigmas * sigma, *past)
        if min(past) <= 0:
            return center, max(limit, center + config.gradient_ratio * median(abs(value) for value in past))
        return center, max(
            limit, center * (config.gradient_ratio if kind_of(name) == "gradient" else config.loss_ratio)
        )

    def _go_on(self, course: Course, rise: Rise, value: float, limit: float) -> None:
        rise.latest = [*rise.latest, value][-self.config.past :]
        rise.highest = max(rise.highest, value)
        rise.count += value > limit
        rise.below = 0 if value > limit else rise.below + 1
        if rise.below >= self.config.recovered:
            course.rise = course.alone = None
        elif rise.count >= self.config.settled:
            course.past, course.rise, course.alone = rise.latest, None, None

    def _stand_alone(self, course: Course, iteration: int, values: dict[int, tuple[float, int]], limit: float) -> None:
        """Remember who stands out alone: a rank that does so often has its own kind of data."""
        high = [rank for rank, (value, _) in sorted(values.items()) if value > limit]
        if course.alone is not None:
            course.waited += 1
            if course.waited > self.config.ahead:
                course.alone = None
        elif len(high) == 1 and len(values) >= self.config.reporters and high[0] not in course.habitual:
            course.alone, course.waited = (high[0], iteration, values[high[0]][1]), 0
        course.habitual = [*course.habitual, *(rank for rank in high if rank not in course.habitual)][-MOST_HABITUAL:]

    def _finding(self, view: AttemptView, window: AttemptWindow, name: str, rise: Rise, *, stays: bool) -> Anomaly:
        telling = kind_of(name) == "loss" and rise.usual > 0
        severity: Severity = "warning" if stays and telling else "info"
        times = f", {rise.highest / rise.usual:.1f} times" if rise.usual > 0 else ", where"
        suspects = []
        # What came through earlier stages may have risen there.
        if rise.rank is not None and not stages_of(view):
            why = f"its own {name} rose at iteration {rise.iteration}, before that of any other rank"
            suspects = [view.suspect(rise.rank, 0.8, why)]
        return self.anomaly(
            window,
            name,
            onset=rise.time,
            axis="space" if suspects else "time",
            layer="metric",
            symptom="numerics",
            area="unknown",
            grounds="stays_up" if stays and telling else "spike",
            severity=severity,
            text=f"{name} up to {rise.highest:.4g}{times} its usual {rise.usual:.4g}"
            + (f", for {rise.count} reports" if stays else ""),
            peers="rose after it" if suspects else "every rank's alike, or one rank's alone is printed",
            iteration=rise.iteration,
            phase=view.phase,
            suspects=suspects,
        )


def _begin_anew(course: Course, rank: int, iteration: int) -> None:
    """Iterations counted anew, or a rollback: what was not judged of them before is not judged any more."""
    if rank in course.reporters and iteration < course.reporters[rank][0]:
        course.pending, course.reporters, course.judged_to = {}, {}, -1
