"""Shifts of a duration against its own past: sudden steps and slow trends, by river's Page-Hinkley, verified.

A change-point detector alone raises false alarms; a shift counts only if the level moved by at least a share over at
least so many steps (GREYHOUND: verification brings 69-78 % right to 99-100 %), by more where lengths vary, and by far
more than chance would. Levels are medians of the logarithm, so that single slow steps, as those with a checkpoint in
them, move nothing; Page-Hinkley's thresholds are absolute, so it sees values in units of the series' own spread.
"""

from __future__ import annotations

from math import exp, isfinite, log, log1p, sqrt
from statistics import median
from typing import Any

import msgspec

from streams.checks import require
from streams.robust import spread

OF_MEDIAN = 1.2533
"""How much further off the median of normal values is than their mean (square root of half of pi)."""
CLIP = 10.0
"""Sigmas beyond which a value counts no more: one step that took a minute is one slow step."""


class ShiftRule(msgspec.Struct, frozen=True, kw_only=True):
    """``threshold`` and ``delta`` are Page-Hinkley's, in sigmas of the reference; ``shift`` is a share of its level.

    The first ``warm_up_steps`` do not count, the next ``reference_steps`` are the reference; its spread has a
    ``floor``, a share of the level. Lengths vary where the spread is more than ``varying``: then a shift must be
    ``varying_shift``. It counts over ``steps`` steps, of which a share of ``held`` lies clearly above that level, and
    from ``sure`` standard errors on; ``memory_steps`` are remembered.
    """

    warm_up_steps: int = 5
    reference_steps: int = 20
    steps: int = 10
    shift: float = 0.1
    varying_shift: float = 0.25
    varying: float = 0.1
    held: float = 0.8
    sure: float = 4.0
    threshold: float = 20.0
    delta: float = 0.5
    floor: float = 0.01
    memory_steps: int = 256

    def __post_init__(self) -> None:
        positive = ("steps", "shift", "varying_shift", "varying", "sure", "threshold", "delta", "floor")
        require(self, above_0=positive, shares=("held",))
        if self.reference_steps < self.steps or self.memory_steps < 2 * self.reference_steps:
            raise ValueError("steps <= reference_steps <= memory_steps / 2 must hold")


class Level(msgspec.Struct, frozen=True, array_like=True):
    """A verified change: the levels before and after, since which iteration and time, and over how many steps.

    One that ``returned`` is back where it was before the shift.
    """

    iteration: int
    time: int
    before: float
    after: float
    steps: int
    returned: bool = False


class Track(msgspec.Struct, kw_only=True):
    """One series: logarithms of the ``reference``, then of those since, as columns.

    ``anchor`` is the lowest level of any memory so far (logarithm), against which a slow trend is held; ``normal`` is
    the level to which a shift has to return, null while there is none.
    """

    skipped: int = 0
    reference: list[float] = []
    iterations: list[int] = []
    times: list[int] = []
    values: list[float] = []
    alarmed: bool = False
    anchor: float | None = None
    normal: float | None = None


class Watcher:
    """Watches one series; ``track`` is all that it carries. River's part follows from it and is never written down."""

    def __init__(self, rule: ShiftRule, track: Track) -> None:
        self.rule = rule
        self.track = track
        self._river: Any = None
        self._scale = (0.0, 1.0)

    def take(self, iteration: int, time: int, value: float) -> Level | None:
        """Take one duration in; returns the change that it makes certain. What is no duration is passed over."""
        track, rule = self.track, self.rule
        if not (isfinite(value) and value > 0):
            # One such value would blind river for good; it is an event of its own.
            return None
        if track.skipped < rule.warm_up_steps:
            track.skipped += 1
        elif len(track.reference) < rule.reference_steps:
            track.reference.append(log(value))
        else:
            self._see(iteration, time, log(value))
            return self._judged()
        return None

    def _judged(self) -> Level | None:
        track = self.track
        found = self._returned(track.normal) if track.normal is not None else None
        if found is None and track.alarmed:
            found = self._verified()
        if found is None and len(track.values) >= self.rule.memory_steps:
            found = self._trend()
            if found is None:
                self._forget()
        return found

    def _see(self, iteration: int, time: int, value: float) -> None:
        track = self.track
        if self._river is None:
            self._river = self._page_hinkley()
        track.iterations.append(iteration)
        track.times.append(time)
        track.values.append(value)
        self._river.update(self._standard(value))
        track.alarmed = track.alarmed or bool(self._river.drift_detected)

    def _page_hinkley(self) -> Any:
        """River's detector as it stands behind the values that are kept."""
        # With all of scipy behind it, it takes longer to load than everything else here; short series need none.
        from river.drift import PageHinkley

        rule, reference = self.rule, self.track.reference
        center = median(reference)
        self._scale = center, max(spread(reference, center), rule.floor)
        river = PageHinkley(min_instances=5, delta=rule.delta, threshold=rule.threshold, mode="up")
        for value in self.track.values:
            river.update(self._standard(value))
        return river

    def _standard(self, value: float) -> float:
        center, scale = self._scale
        return max(-CLIP, min(CLIP, (value - center) / scale))

    def _verified(self) -> Level | None:
        """The alarm as a shift, once it is large and long enough."""
        track = self.track
        cut = _change_point([self._standard(value) for value in track.values])
        before = [*track.reference, *track.values[:cut]]
        level = median(before)
        since = track.values[cut:]
        # The latest steps show a trend best, all of them a small shift in much noise.
        for after in (since[-self.rule.steps :], since):
            if len(after) >= self.rule.steps and self._is_shift(level, spread(before, level), len(before), after):
                return self._shifted(cut, level)
        return None

    def _trend(self) -> Level | None:
        """What rises too slowly for any one memory, held against the lowest level so far."""
        track, values, few = self.track, self.track.values, self.rule.memory_steps // 4
        low = median(values[-few:])
        anchor = track.anchor
        track.anchor = low if anchor is None else min(anchor, low)
        sigma = spread(values, median(values))
        if anchor is None or track.normal is not None or not self._is_shift(anchor, sigma, few, values[-few:]):
            return None
        limit = anchor + log1p(self.rule.shift) / 2
        at = next(at for at in range(len(values)) if median(values[at : at + self.rule.steps]) > limit)
        return self._shifted(at, anchor)

    def _is_shift(self, level: float, sigma: float, count: int, after: list[float]) -> bool:
        """Whether nearly all of ``after`` lies a shift above a ``level`` that ``count`` values had, beyond chance."""
        rule = self.rule
        sigma = max(sigma, rule.floor)
        least = log1p(rule.varying_shift if sigma > rule.varying else rule.shift)
        error = OF_MEDIAN * sigma * sqrt(1 / count + 1 / len(after))
        held = sum(value > level + least / 4 for value in after)
        return median(after) - level >= max(least, rule.sure * error) and held >= rule.held * len(after)

    def _shifted(self, cut: int, before: float) -> Level:
        track = self.track
        after = track.values[-self.rule.steps :]
        found = Level(track.iterations[cut], track.times[cut], exp(before), exp(median(after)), len(track.values) - cut)
        track.normal = before if track.normal is None else track.normal
        self._forget()
        return found

    def _returned(self, normal: float) -> Level | None:
        """The level is back once most of a shift is gone for as many steps as make one."""
        track, rule = self.track, self.rule
        last = [*track.reference, *track.values][-rule.steps :]
        if median(last) > normal + log1p(rule.shift) / 2:
            return None
        cut = max(len(track.values) - rule.steps, 0)
        level = Level(
            track.iterations[cut], track.times[cut], exp(median(track.reference)), exp(median(last)), rule.steps, True
        )
        track.normal = None
        self._forget()
        return level

    def _forget(self) -> None:
        """Begin again with the latest values as the reference."""
        track = self.track
        track.reference = [*track.reference, *track.values][-self.rule.reference_steps :]
        track.iterations, track.times, track.values = [], [], []
        track.alarmed = False
        self._river = None


def _change_point(values: list[float]) -> int:
    """Index at which one step up from 0 fits best by least squares."""
    best, cut, total = float("-inf"), 0, 0.0
    for index in range(len(values) - 1, -1, -1):
        total += values[index]
        gain = total * abs(total) / (len(values) - index)
        if gain > best:
            best, cut = gain, index
    return cut
