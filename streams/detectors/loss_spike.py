"""Numerics: a loss or gradient norm that is suddenly far above its recent past, and whether it stays there.

Far above is by a ratio to the median and by so many deviations, in logarithms too: what is close to zero varies by
factors, for many reports at a time, so how far it goes from its median by nature is remembered for long. A loss that
may be negative or zero has no ratio. What comes back at once is information, as are gradients and the losses of parts,
which swing in healthy jobs; a loss that stays up is a warning. A rank is named only where its own series rose alone,
and those of all others only after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import exp, log
from statistics import median

import msgspec
import numpy as np

from schemas.results import Anomaly, Series, Severity
from streams.checks import require
from streams.detectors.registry import JobDetector, register
from streams.numerics import kind_of, stages_of
from streams.robust import spread, usual
from streams.series_table import Reports
from streams.stall import over
from streams.view import AttemptView, AttemptWindow

MOST_NAMES = 8
MOST_PENDING = 512
MOST_WAITING = 262_144
"""Values of ranks that wait for others, of one series."""
LONGEST = 50.0
"""Logarithm of the largest factor that is reckoned with."""
MOST_HABITUAL = 64


class LossSpikeConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A value stands out above ``loss_ratio`` (``gradient_ratio``) times the median of the last ``past`` reports.

    It must be ``sigmas`` deviations above it as well, which have a ``floor``, a share of the median; of ``least``
    reports. By their logarithms it must be as many deviations above it as the last ``swings`` reports were from the
    medians before them; where these are more than ``varying``, ``varying_least`` of them are asked for.

    It stays up if ``stay`` reports stand out before ``recovered`` in a row do not; after ``settled`` reports the level
    is the usual one. One rank alone comes before all others by at most ``ahead`` reports, of at least ``reporters``
    ranks; it does not once ``recovered`` of its own are usual again. Who has reported nothing for ``patience_windows``
    windows is not waited for, nor is an iteration that was first reported as long ago.
    """

    loss_ratio: float = 1.5
    gradient_ratio: float = 5.0
    sigmas: float = 5.0
    floor: float = 0.01
    past: int = 64
    least: int = 20
    swings: int = 512
    varying: float = 0.25
    varying_least: int = 128
    stay: int = 10
    recovered: int = 3
    settled: int = 256
    reporters: int = 3
    ahead: int = 5
    patience_windows: int = 3

    def __post_init__(self) -> None:
        counts = ("past", "least", "stay", "recovered", "settled", "reporters", "ahead", "patience_windows")
        swings = ("swings", "varying", "varying_least")
        require(self, above_0=("loss_ratio", "gradient_ratio", "sigmas", *swings, *counts), shares=("floor",))
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


class Waiting(msgspec.Struct, array_like=True):
    """An iteration that some ranks have not reported yet: the end of the window in which somebody did.

    ``told`` are values, the earliest time of each and the ranks whose it is, ``count`` of them in all: mostly all
    ranks show the same.
    """

    end: int
    count: int = 0
    told: list[tuple[float, int, list[int]]] = []


class Course(msgspec.Struct, kw_only=True):
    """One series of the job: the usual values of late, those of iterations that some ranks have not reported yet.

    ``swings`` are the logarithms of usual values as shares of the medians before them; ``signed`` says that one was
    negative or zero. ``reporters`` has the latest iteration of each rank and the window's end in which it came.
    ``alone`` is the rank that stood out alone, at which iteration and time, ``waited`` for how many reports, of which
    the last ``normal`` did not stand out; ``habitual`` ones had before.
    """

    past: list[float] = []
    swings: list[float] = []
    signed: bool = False
    pending: dict[int, Waiting] = {}
    reporters: dict[int, tuple[int, int]] = {}
    judged_to: int = -1
    rise: Rise | None = None
    alone: tuple[int, int, int] | None = None
    waited: int = 0
    normal: int = 0
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
        for name, told in window.series.items():
            if kind_of(name) == "none" or not self._has_room(name):
                continue
            course = self.state.courses.setdefault(name, Course())
            groups = list(_together(told))
            latest: dict[int, tuple[int, int]] = {}
            for ranks, series, _ in groups:
                latest.update(dict.fromkeys(ranks, (series.iterations[-1], window.end)))
            course.reporters.update(latest)
            if _is_anew(course):
                # What was usual before, and what rose, is not judged by any more.
                course = Course(habitual=course.habitual, signed=course.signed, reporters=latest)
                self.state.courses[name] = course
            for ranks, series, times in groups:
                for iteration, time, value in zip(series.iterations, times, series.values, strict=True):
                    if value is not None and iteration > course.judged_to:
                        waiting = course.pending.get(iteration)
                        if waiting is None:
                            waiting = course.pending[iteration] = Waiting(window.end)
                        waiting.count += len(ranks)
                        waiting.told.append((value, time, ranks))

    def _has_room(self, name: str) -> bool:
        """Whether a series is watched: the loss itself before gradients, and those before the losses of parts."""
        courses = self.state.courses
        if name not in courses and len(courses) >= MOST_NAMES:
            last = max(courses, key=_place)
            if _place(last)[0] <= _place(name)[0]:
                return False
            del courses[last]
        return True

    def _ready(self, course: Course, window: AttemptWindow) -> list[int]:
        """Iterations that everybody has reported who reports at all, or that have waited long enough, in order."""
        since = window.end - self.config.patience_windows * (window.end - window.start)
        latest = set(course.reporters.values())
        if any(end <= since for _, end in latest):
            course.reporters = {rank: one for rank, one in course.reporters.items() if one[1] > since}
            latest = set(course.reporters.values())
        low = min((iteration for iteration, _ in latest), default=None)
        ready: list[int] = []
        held = 0
        for count, (at, waiting) in enumerate(sorted(course.pending.items(), reverse=True), 1):
            held += waiting.count
            full = count > MOST_PENDING or held > MOST_WAITING
            if low is None or at <= low or waiting.end <= since or full or ready:
                ready.append(at)
        return ready[::-1]

    def _judge(self, name: str, course: Course, window: AttemptWindow) -> tuple[Rise | None, Rise | None]:
        """The rise that began, and the one that stays, with the reports that are complete by now."""
        began = stays = None
        for iteration in self._ready(course, window):
            waiting = course.pending.pop(iteration)
            if 2 * waiting.count < len(course.reporters):
                continue
            course.judged_to = iteration
            before = course.rise
            self._step(name, course, iteration, waiting)
            rise = course.rise
            began = rise if rise is not None and rise is not before else began
            stays = rise if rise is not None and rise.count >= self.config.stay else stays
        return began, stays

    def _step(self, name: str, course: Course, iteration: int, waiting: Waiting) -> None:
        values = waiting.told
        value = median([one for one, _, ranks in values for _ in ranks]) if len(values) > 1 else values[0][0]
        time = min(at for _, at, _ in values)
        course.signed = course.signed or value <= 0
        center, limit = self._limit(name, course)
        if course.rise is not None:
            self._go_on(course, course.rise, value, limit)
        elif value > limit:
            course.rise = Rise(iteration=iteration, time=time, usual=center, highest=value, latest=[value])
            if course.alone is not None:
                course.rise.rank, course.rise.iteration, course.rise.time = course.alone
        else:
            course.past = [*course.past, value][-self.config.past :]
            if center > 0 and value > 0:
                course.swings = [*course.swings, log(value) - log(center)][-self.config.swings :]
            self._stand_alone(course, iteration, waiting, limit)

    def _limit(self, name: str, course: Course) -> tuple[float, float]:
        """The usual value, and above which one stands out."""
        config, past = self.config, course.past
        if len(past) < config.least:
            return 0.0, float("inf")
        center, sigma = usual(past, config.floor)
        limit = max(center + config.sigmas * sigma, *past)
        if course.signed or center <= 0:
            return center, max(limit, center + config.gradient_ratio * median(abs(value) for value in past))
        swing = spread(course.swings, median(course.swings)) if course.swings else 0.0
        if swing > config.varying and len(course.swings) < config.varying_least:
            return center, float("inf")
        ratio = config.gradient_ratio if kind_of(name) == "gradient" else config.loss_ratio
        return center, max(limit, center * max(ratio, exp(min(config.sigmas * swing, LONGEST))))

    def _go_on(self, course: Course, rise: Rise, value: float, limit: float) -> None:
        rise.latest = [*rise.latest, value][-self.config.past :]
        rise.highest = max(rise.highest, value)
        rise.count += value > limit
        rise.below = 0 if value > limit else rise.below + 1
        if rise.below >= self.config.recovered:
            course.rise = course.alone = None
        elif rise.count >= self.config.settled:
            course.past, course.rise, course.alone = rise.latest, None, None

    def _stand_alone(self, course: Course, iteration: int, waiting: Waiting, limit: float) -> None:
        """Remember who stands out alone: a rank that does so often has its own kind of data."""
        high = {rank: time for value, time, ranks in waiting.told if value > limit for rank in ranks}
        if course.alone is not None:
            course.waited += 1
            course.normal = 0 if course.alone[0] in high else course.normal + 1
            if course.waited > self.config.ahead or course.normal >= self.config.recovered:
                course.alone = None
        elif len(high) == 1 and waiting.count >= self.config.reporters:
            ((rank, time),) = high.items()
            if rank not in course.habitual:
                course.alone, course.waited, course.normal = (rank, iteration, time), 0, 0
        course.habitual = [*course.habitual, *(rank for rank in sorted(high) if rank not in course.habitual)][
            -MOST_HABITUAL:
        ]

    def _finding(self, view: AttemptView, window: AttemptWindow, name: str, rise: Rise, *, stays: bool) -> Anomaly:
        signed = self.state.courses[name].signed
        telling = kind_of(name) == "loss" and rise.usual > 0 and not signed
        severity: Severity = "warning" if stays and telling else "info"
        times = f", {rise.highest / rise.usual:.1f} times" if rise.usual > 0 and not signed else ", where"
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


def _place(name: str) -> tuple[int, str]:
    return ("loss", "gradient", "other_loss").index(kind_of(name)), name


def _is_anew(course: Course) -> bool:
    """Whether iterations are counted anew, or the job has gone back to a checkpoint: most ranks stand before it."""
    behind = sum(iteration < course.judged_to for iteration, _ in course.reporters.values())
    return 2 * behind > len(course.reporters)


def _together(told: Reports) -> Iterator[tuple[list[int], Series, list[int]]]:
    """The ranks that show the same, what it is, and the earliest time of each value."""
    alike: dict[tuple[tuple[int, ...], bytes], dict[int, list[int]]] = {}
    for number, block in enumerate(told.blocks):
        steps = tuple(block.steps)
        # Nothing below zero is nothing.
        for at, values in enumerate(block.values + 0.0):
            alike.setdefault((steps, values.tobytes()), {}).setdefault(number, []).append(at)
    groups = []
    for found in alike.values():
        parts = [(told.blocks[number], at) for number, at in found.items()]
        who = sorted(
            (int(place), block.ranks[one])
            for block, at in parts
            for one, place in zip(at, block.places[at], strict=True)
        )
        times = np.min([block.times[at].min(axis=0) for block, at in parts], axis=0)
        series = parts[0][0].series(parts[0][1][0])
        groups.append((who[0][0], [rank for _, rank in who], series, times.tolist()))
    for _, ranks, series, earliest in sorted(groups, key=lambda one: one[0]):
        yield ranks, series, earliest
