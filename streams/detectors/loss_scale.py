"""Numerics: steps that are skipped one after another, and a loss scale that has collapsed, in half precision.

A step whose gradients overflow is skipped and the scale goes down: that is part of training while it happens seldom. A
scale that begins high needs some thirty such steps; more in a row, or a scale that has come down to its floor and stays
there, mean that gradients are wrong whatever the scale. All ranks skip together, so nobody is named.
"""

from __future__ import annotations

import msgspec

from schemas.results import Anomaly, Series
from streams.checks import require
from streams.detectors.registry import JobDetector, register
from streams.numerics import counts_skipped, is_scale, tells_skipped
from streams.stall import over
from streams.view import AttemptView, AttemptWindow


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


class LossScaleState(msgspec.Struct, kw_only=True):
    """The highest scale so far; how many reports it has been on the floor for, since which iteration and time."""

    highest: float = 0.0
    on_floor: int = 0
    since: tuple[int, int] | None = None
    skips: dict[str, Skips] = {}


@register
class LossScale(JobDetector[LossScaleConfig, LossScaleState]):
    """Watches the loss scale and the counts of skipped steps, as the lowest rank has them that prints them."""

    name = "loss_scale"
    config_type = LossScaleConfig
    state_type = LossScaleState

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """A finding in each window in which steps are still skipped, and in which the scale is still on its floor."""
        lowest: dict[str, tuple[int, Series]] = {}
        for name, by_rank in window.series.items():
            if kind := _kind_of(name):
                first = min(by_rank, key=lambda one: one[0])
                lowest[kind] = min(lowest.get(kind, first), first, key=lambda one: one[0])
        told = {kind: series for kind, (_, series) in lowest.items()}
        for kind, series in sorted(told.items()):
            self._take(kind, series)
        return [] if over(view) else self._findings(view, window, told)

    def _take(self, kind: str, series: Series) -> None:
        for iteration, time, value in zip(series.iterations, series.times, series.values, strict=True):
            if value is None:
                continue
            if kind == "scale":
                self._scale(iteration, time, value)
            else:
                self._skip(self.state.skips.setdefault(kind, Skips()), kind, (iteration, time), value)

    def _scale(self, iteration: int, time: int, value: float) -> None:
        state = self.state
        state.highest = max(state.highest, value)
        if value > self.config.floor or state.highest < self.config.high:
            state.on_floor, state.since = 0, None
        else:
            state.on_floor += 1
            state.since = state.since or (iteration, time)

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

    def _findings(self, view: AttemptView, window: AttemptWindow, told: dict[str, Series]) -> list[Anomaly]:
        state, found = self.state, []
        runs = [one for kind, one in sorted(state.skips.items()) if kind in told and one.run >= self.config.skipped]
        if runs and runs[0].first is not None:
            text = f"{runs[0].run} steps in a row were skipped"
            found.append(self._finding(view, window, "steps_skipped", runs[0].first, text))
        if "scale" in told and state.on_floor >= self.config.stay and state.since is not None:
            text = (
                f"the loss scale has come down from {state.highest:g} to {self.config.floor:g} or less and stays there"
            )
            found.append(self._finding(view, window, "scale_collapsed", state.since, text))
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
