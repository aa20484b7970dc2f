"""Numerics: steps that are skipped one after another, and a loss scale that has collapsed, in half precision.

A step whose gradients overflow is skipped and the scale goes down: that is part of training while it happens seldom. A
scale that begins high needs some thirty such steps; more in a row, or a scale that has come down to its floor and stays
there, mean that gradients are wrong whatever the scale. All ranks skip together, so nobody is named; several models of
a job have scales and counts of their own.
"""

from __future__ import annotations

import msgspec

from schemas.results import Anomaly, Series
from streams.attempt_window import AttemptWindow
from streams.checks import require
from streams.detectors.registry import JobDetector, register
from streams.numerics import counts_skipped, is_scale, tells_skipped
from streams.stall import over
from streams.view import AttemptView

MOST_NAMES = 8


class LossScaleConfig(msgspec.Struct, frozen=True, kw_only=True):
    """``skipped`` steps in a row are too many. A scale of at most ``floor`` that was ``high`` has collapsed.

    It must stay there for ``stay`` reports; training in other formats has a scale of 1 from the beginning.
    """

    skipped: int = 35
    floor: float = 1.0
    high: float = 128.0
    stay: int = 10

    def __post_init__(self) -> None:
        require(self, above_0=("skipped", "floor", "high", "stay"))
        if self.floor >= self.high:
            raise ValueError("loss_scale: floor < high must hold")


class Skips(msgspec.Struct, kw_only=True):
    """Steps skipped in a row, by one way of telling: since which iteration and time, up to which, the last count."""

    run: int = 0
    first: tuple[int, int] | None = None
    latest: int | None = None
    count: float | None = None


class Scale(msgspec.Struct, kw_only=True):
    """The highest scale so far; how many reports it has been on the floor for, since which iteration and time."""

    highest: float = 0.0
    on_floor: int = 0
    since: tuple[int, int] | None = None


class LossScaleState(msgspec.Struct, kw_only=True):
    """Scales, and steps skipped in a row, by the names that they are printed under."""

    scales: dict[str, Scale] = {}
    skips: dict[str, Skips] = {}


@register
class LossScale(JobDetector[LossScaleConfig, LossScaleState]):
    """Watches the loss scale and the counts of skipped steps, as the lowest rank has them that prints them."""

    name = "loss_scale"
    grounds = frozenset({"steps_skipped", "scale_collapsed"})
    config_type = LossScaleConfig
    state_type = LossScaleState

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """A finding in each window in which steps are still skipped, and in which the scale is still on its floor."""
        told: list[str] = []
        for name, by_rank in window.of_job.items():
            if _kind_of(name) and self._has_room(name):
                self._take(name, by_rank.of(min(by_rank.ranks)))
                told.append(name)
        return [] if over(view) else self._findings(view, window, told)

    def _has_room(self, name: str) -> bool:
        known = self.state.scales if is_scale(name) else self.state.skips
        return name in known or len(known) < MOST_NAMES

    def _take(self, name: str, series: Series) -> None:
        kind = _kind_of(name)
        for iteration, time, value in zip(series.iterations, series.times, series.values, strict=True):
            if value is None:
                continue
            if kind == "scale":
                self._scale(self.state.scales.setdefault(name, Scale()), (iteration, time), value)
            else:
                self._skip(self.state.skips.setdefault(name, Skips()), kind, (iteration, time), value)

    def _scale(self, scale: Scale, at: tuple[int, int], value: float) -> None:
        scale.highest = max(scale.highest, value)
        if value > self.config.floor or scale.highest < self.config.high:
            scale.on_floor, scale.since = 0, None
        else:
            scale.on_floor += 1
            scale.since = scale.since or at

    def _skip(self, skips: Skips, kind: str, at: tuple[int, int], value: float) -> None:
        """One report: all steps since the last one were skipped, or the run ends."""
        iteration = at[0]
        before, skips.count = skips.count, value
        latest, skips.latest = skips.latest, iteration
        steps = iteration - latest if latest is not None else 1
        new = value if kind == "now" else value - before if before is not None else 0.0
        if steps > 0 and new >= steps:
            skips.run += steps
            skips.first = skips.first or at
        elif steps != 0:
            skips.run, skips.first = 0, None

    def _findings(self, view: AttemptView, window: AttemptWindow, told: list[str]) -> list[Anomaly]:
        """At most one of each kind: of several models that one whose trouble is the oldest."""
        state, found = self.state, []
        runs = [(one.first, name, one.run) for name in told if (one := state.skips.get(name)) and one.first]
        if long := [one for one in runs if one[2] >= self.config.skipped]:
            since, _, run = min(long)
            found.append(self._finding(view, window, "steps_skipped", since, f"{run} steps in a row were skipped"))
        scales = {name: state.scales[name] for name in told if name in state.scales}
        floored = [(one.since, name, one) for name, one in scales.items() if one.since]
        if low := [one for one in floored if one[2].on_floor >= self.config.stay]:
            since, name, scale = min(low, key=lambda one: one[:2])
            whose = "" if name == "loss_scale" else f" {name}"
            text = (
                f"the loss scale{whose} has come down from {scale.highest:g} to {self.config.floor:g} or less"
                " and stays there"
            )
            found.append(self._finding(view, window, "scale_collapsed", since, text))
        return found

    def _finding(
        self, view: AttemptView, window: AttemptWindow, grounds: str, since: tuple[int, int], text: str
    ) -> Anomaly:
        return self.anomaly(
            window,
            grounds,
            onset=since[1],
            axis="time",
            layer="metric",
            symptom="numerics",
            area="unknown",
            grounds=grounds,
            severity="warning",
            text=text,
            peers="all ranks skip a step together",
            iteration=since[0],
            phase=view.phase,
        )


def _kind_of(name: str) -> str:
    if is_scale(name):
        return "scale"
    if tells_skipped(name):
        return "now"
    return "ever" if counts_skipped(name) else ""
