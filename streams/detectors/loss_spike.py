"""Numerics: a loss or gradient norm that is suddenly far above its recent past, and whether it stays there.

Far above is by a ratio to the median and by so many deviations, in logarithms too: what is close to zero varies by
factors, for many reports at a time, so how far it goes from its median by nature is remembered for long. A loss that
may be negative or zero has no ratio. What comes back at once is information, as are gradients and the losses of parts,
which swing in healthy jobs; a loss that stays up is a warning, unless it is falling again, as training does that goes
on. A rank is named only where its own series rose alone, stayed up, and those of all others rose only after it.
"""

from __future__ import annotations

from math import exp, log
from statistics import median

import msgspec

from schemas.results import Anomaly, Severity, Suspect
from streams.attempt_window import AttemptWindow
from streams.checks import require
from streams.complete_steps import Step, Steps
from streams.detectors.registry import JobDetector, register
from streams.forerunners import Alone, Forerunners
from streams.nobodys import NOBODY
from streams.numerics import kind_of, stages_of
from streams.robust import spread, usual
from streams.stall import over
from streams.view import AttemptView

MOST_NAMES = 8
LONGEST = 50.0
"""Logarithm of the largest factor that is reckoned with."""
IN_NATS = frozenset({"lm_loss"})
"""Losses that are known to be cross entropies."""


class LossSpikeConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A value stands out above ``loss_ratio`` (``gradient_ratio``) times the median of the last ``past`` reports.

    It must be ``sigmas`` deviations above it as well, which have a ``floor``, a share of the median; of ``least``
    reports. By their logarithms it must be as many deviations above it as the last ``swings`` reports were from the
    medians before them; where these are more than ``varying``, ``varying_least`` of them are asked for.

    It stays up if ``stay`` reports stand out before ``recovered`` in a row do not, more than a hard file has. It falls
    again while the later half of the last ``2 * stay`` reports lies below the earlier half by a share of ``falling`` of
    how far that was up. A cross entropy must rise by ``least_nats`` to be worth a warning. After ``settled`` reports
    the level is the usual one.

    One rank alone comes before all others by at most ``ahead`` reports, of at least ``reporters`` ranks. Who has
    reported nothing for ``patience_windows`` windows is not waited for, nor is an iteration that was first reported as
    long ago.
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
    stay: int = 16
    falling: float = 0.1
    least_nats: float = 0.05
    recovered: int = 3
    settled: int = 256
    reporters: int = 3
    ahead: int = 5
    patience_windows: int = 3

    def __post_init__(self) -> None:
        counts = ("past", "least", "stay", "recovered", "settled", "reporters", "ahead", "patience_windows")
        swings = ("swings", "varying", "varying_least")
        require(
            self,
            above_0=("loss_ratio", "gradient_ratio", "sigmas", "least_nats", *swings, *counts),
            shares=("floor", "falling"),
        )
        if self.least > self.past:
            raise ValueError("loss_spike: least <= past must hold")


class Rise(msgspec.Struct, kw_only=True):
    """Reports that stand out: the first, how many, the highest, how many in a row have not since, the usual value.

    ``alone`` is the rank whose own series rose before the others'.
    """

    iteration: int
    time: int
    usual: float
    highest: float
    count: int = 1
    below: int = 0
    alone: Alone | None = None
    latest: list[float] = []


class Course(msgspec.Struct, kw_only=True):
    """One series of the job: the usual values of late, and the steps of all ranks that are not complete yet.

    ``swings`` are the logarithms of usual values as shares of the medians before them; ``signed`` says that one was
    negative or zero.
    """

    steps: Steps = msgspec.field(default_factory=Steps)
    past: list[float] = []
    swings: list[float] = []
    signed: bool = False
    rise: Rise | None = None
    forerunners: Forerunners = msgspec.field(default_factory=Forerunners)


class LossSpikeState(msgspec.Struct, kw_only=True):
    """Series by name."""

    courses: dict[str, Course] = {}


@register
class LossSpike(JobDetector[LossSpikeConfig, LossSpikeState]):
    """Holds losses and gradient norms against their own recent past."""

    name = "loss_spike"
    grounds = frozenset({"spike", "stays_up"})
    version = 2
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
        for name, told in window.of_job.items():
            if kind_of(name) == "none" or not self._has_room(name):
                continue
            course = self.state.courses.setdefault(name, Course())
            if course.steps.take(told, window.end):
                # What was usual before, and what rose, is not judged by any more.
                course.forerunners.alone = None
                self.state.courses[name] = Course(
                    steps=course.steps, forerunners=course.forerunners, signed=course.signed
                )

    def _has_room(self, name: str) -> bool:
        """Whether a series is watched: the loss itself before gradients, and those before the losses of parts."""
        courses = self.state.courses
        if name not in courses and len(courses) >= MOST_NAMES:
            last = max(courses, key=_place)
            if _place(last)[0] <= _place(name)[0]:
                return False
            del courses[last]
        return True

    def _judge(self, name: str, course: Course, window: AttemptWindow) -> tuple[Rise | None, Rise | None]:
        """The rise that began, and the one that stays, with the reports that are complete by now."""
        began = stays = None
        since = window.end - self.config.patience_windows * (window.end - window.start)
        for iteration, step in course.steps.complete(since):
            before = course.rise
            self._step(name, course, iteration, step)
            rise = course.rise
            began = rise if rise is not None and rise is not before else began
            stays = rise if rise is not None and rise.count >= self.config.stay else stays
        return began, stays

    def _step(self, name: str, course: Course, iteration: int, step: Step) -> None:
        value = step.value
        course.signed = course.signed or value <= 0
        center, limit = self._limit(name, course)
        if course.rise is not None:
            self._go_on(course, course.rise, step, limit)
        elif value > limit:
            course.rise = Rise(
                iteration=iteration,
                time=step.time,
                usual=center,
                highest=value,
                latest=[value],
                alone=course.forerunners.at_rise(),
            )
        else:
            course.past = [*course.past, value][-self.config.past :]
            if center > 0 and value > 0:
                course.swings = [*course.swings, log(value) - log(center)][-self.config.swings :]
            course.forerunners.take(iteration, step, limit, self.config.ahead, self.config.reporters)

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

    def _go_on(self, course: Course, rise: Rise, step: Step, limit: float) -> None:
        value = step.value
        rise.latest = [*rise.latest, value][-self.config.past :]
        rise.highest = max(rise.highest, value)
        rise.count += value > limit
        rise.below = 0 if value > limit else rise.below + 1
        if rise.alone is not None:
            rise.alone.note(step)
        if rise.below >= self.config.recovered:
            course.rise = None
        elif rise.count >= self.config.settled:
            course.past, course.rise = rise.latest, None

    def _finding(self, view: AttemptView, window: AttemptWindow, name: str, rise: Rise, *, stays: bool) -> Anomaly:
        signed = self.state.courses[name].signed
        telling = kind_of(name) == "loss" and rise.usual > 0 and not signed and not self._passes(name, rise)
        severity: Severity = "warning" if stays and telling else "info"
        times = f", {rise.highest / rise.usual:.1f} times" if rise.usual > 0 and not signed else ", where"
        suspects = self._ahead(view, name, rise)
        began = rise.alone if suspects and rise.alone else rise
        return self.anomaly(
            window,
            name,
            onset=began.time,
            axis="space" if suspects else "time",
            layer="metric",
            symptom="numerics",
            area="unknown",
            grounds="stays_up" if stays and telling else "spike",
            severity=severity,
            text=f"{name} up to {rise.highest:.4g}{times} its usual {rise.usual:.4g}"
            + (f", for {rise.count} reports" if stays else ""),
            peers="rose after it" if suspects else "every rank's alike, or one rank's alone is printed",
            iteration=began.iteration,
            phase=view.phase,
            suspects=suspects,
        )

    def _ahead(self, view: AttemptView, name: str, rise: Rise) -> list[Suspect]:
        """The rank that rose before all others by its numbers and by its times, where no stage may have come first."""
        alone = rise.alone
        if (
            alone is None
            or alone.rank == NOBODY
            or stages_of(view)
            or not alone.leads(rise.iteration, view.clock.step_ns)
        ):
            return []
        why = f"its own {name} rose at iteration {alone.iteration}, before that of any other rank"
        return [view.suspect(alone.rank, 0.8, why)]

    def _passes(self, name: str, rise: Rise) -> bool:
        """Whether a loss that is up is coming down again, or is up by next to nothing."""
        latest = rise.latest[-2 * self.config.stay :]
        half = len(latest) // 2
        before, now = median(latest[:half] or latest), median(latest[half:])
        small = name in IN_NATS and now - rise.usual < self.config.least_nats
        return small or before - now >= self.config.falling * (before - rise.usual)


def _place(name: str) -> tuple[int, str]:
    return ("loss", "gradient", "other_loss").index(kind_of(name)), name
