"""Per-rank drift: a step timer that has shifted against the rank's own past, by river's Page-Hinkley, verified.

Page-Hinkley alone raises false alarms; a shift counts only if the median moved by at least ``shift`` over at least
``steps`` steps (GREYHOUND: verification brings a change-point detector from 69-78 % right to 99-100 %). Its thresholds
are absolute, so values are standardised by the rank's own median and MAD first.
"""

from __future__ import annotations

from statistics import median
from typing import Any

import msgspec
from river.drift import PageHinkley

from schemas.results import Drift, Series
from streams.checks import require
from streams.detectors.registry import SeriesDetector, register
from streams.timers import kind_of_timer


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """``threshold`` and ``delta`` are in sigmas of the reference; ``shift`` is a share of its median.

    The first ``warm_up_steps`` do not count, the next ``reference_steps`` are the reference; the spread has a floor of
    a share of the median. A shift counts over ``steps`` steps; ``memory_steps`` are remembered.
    """

    warm_up_steps: int = 5
    reference_steps: int = 20
    steps: int = 10
    shift: float = 0.1
    threshold: float = 20.0
    delta: float = 0.5
    floor: float = 0.01
    memory_steps: int = 256

    def __post_init__(self) -> None:
        require(self, above_0=("steps", "shift", "threshold", "delta", "floor"))
        if self.reference_steps < self.steps or self.memory_steps < 2 * self.reference_steps:
            raise ValueError("timer_drift: steps <= reference_steps <= memory_steps / 2 must hold")


class Track(msgspec.Struct, kw_only=True):
    """One timer: ``reference`` values, then those since, as columns."""

    skipped: int = 0
    reference: list[float] = []
    iterations: list[int] = []
    times: list[int] = []
    values: list[float] = []
    alarmed: bool = False


class State(msgspec.Struct, kw_only=True):
    """Tracks by timer name."""

    tracks: dict[str, Track] = {}


@register
class TimerDrift(SeriesDetector[Config, State]):
    """Watches every own-work and whole-step timer of one rank."""

    name = "timer_drift"
    config_type = Config
    state_type = State

    def __init__(self, config: Config | None = None) -> None:
        super().__init__(config)
        self._watchers: dict[str, Any] = {}

    def restore(self, raw: msgspec.Raw) -> None:
        """Take up a written state; river's part follows from the values, so nothing is unpickled."""
        super().restore(raw)
        self._watchers = {}

    def observe(self, series: list[Series]) -> list[Drift]:
        """Returns the shifts that this window's values made certain."""
        found = []
        for one in series:
            if kind_of_timer(one.name) not in ("own", "total"):
                continue
            track = self.state.tracks.setdefault(one.name, Track())
            for iteration, time, value in zip(one.iterations, one.times, one.values, strict=True):
                # A value that is not finite would blind river for good; it is an event of its own.
                if value is not None and self._step(one.name, track, iteration, time, value):
                    drift = self._verified(one.name, track)
                    if drift is not None:
                        found.append(drift)
        return found

    def _step(self, name: str, track: Track, iteration: int, time: int, value: float) -> bool:
        """Take one value in; true once there is an alarm to verify."""
        if track.skipped < self.config.warm_up_steps:
            track.skipped += 1
            return False
        if len(track.reference) < self.config.reference_steps:
            track.reference.append(value)
            return False
        watcher = self._watcher(name, track)
        track.iterations.append(iteration)
        track.times.append(time)
        track.values.append(value)
        watcher.update(self._standard(track, value))
        track.alarmed = track.alarmed or bool(watcher.drift_detected)
        if len(track.values) > self.config.memory_steps and not track.alarmed:
            self._forget(name, track, self.config.reference_steps)
        return track.alarmed

    def _standard(self, track: Track, value: float) -> float:
        center = median(track.reference)
        spread = median(abs(one - center) for one in track.reference) * 1.4826
        scale = max(spread, self.config.floor * abs(center), 1e-9)
        return max(-10.0, min(10.0, (value - center) / scale))

    def _watcher(self, name: str, track: Track) -> Any:
        if name not in self._watchers:
            watcher = PageHinkley(min_instances=5, delta=self.config.delta, threshold=self.config.threshold, mode="up")
            for value in track.values:
                watcher.update(self._standard(track, value))
            self._watchers[name] = watcher
        return self._watchers[name]

    def _verified(self, name: str, track: Track) -> Drift | None:
        """The alarm as a drift once the shift is large and long enough; a false alarm is forgotten."""
        cut = _change_point(track.reference, track.values)
        after = track.values[cut:]
        if len(after) < self.config.steps:
            return None
        before = median([*track.reference, *track.values[:cut]])
        level = median(after[-self.config.steps :])
        drift = None
        if before > 0 and level / before - 1 >= self.config.shift:
            drift = Drift(
                metric=name,
                iteration=track.iterations[cut],
                time=track.times[cut],
                before=before,
                after=level,
                steps=len(after),
            )
        elif len(track.values) < self.config.memory_steps:
            # A trend may still be on its way to the bound.
            return None
        self._forget(name, track, self.config.reference_steps)
        return drift

    def _forget(self, name: str, track: Track, keep: int) -> None:
        """Begin again with the latest values as the reference."""
        track.reference = track.values[-keep:] if len(track.values) >= keep else track.reference
        track.iterations, track.times, track.values = [], [], []
        track.alarmed = False
        self._watchers.pop(name, None)


def _change_point(reference: list[float], values: list[float]) -> int:
    """Index in ``values`` at which a level shift fits best: least squares with one step up, reference before it."""
    base = sum(reference) / len(reference)
    best, cut = float("-inf"), 0
    total = 0.0
    for index in range(len(values) - 1, -1, -1):
        total += values[index] - base
        gain = total * abs(total) / (len(values) - index)
        if gain > best:
            best, cut = gain, index
    return cut
