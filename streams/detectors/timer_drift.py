"""Per-rank drift: a step timer that has shifted against the rank's own past, by river's Page-Hinkley, verified."""

from __future__ import annotations

import msgspec

from schemas.results import Drift, Series
from streams.detectors.registry import SeriesDetector, register
from streams.shift import Level, ShiftRule, Track, Watcher
from streams.timers import kind_of_timer


class Config(ShiftRule, frozen=True, kw_only=True):
    """When a timer has shifted: as ``ShiftRule`` says."""

    def __post_init__(self) -> None:
        try:
            super().__post_init__()
        except ValueError as error:
            raise ValueError(f"timer_drift: {error}") from error


class State(msgspec.Struct, kw_only=True):
    """What is known of each timer by its name."""

    series: dict[str, Track] = {}


@register
class TimerDrift(SeriesDetector[Config, State]):
    """Watches every own-work and whole-step timer of one rank; a timer that is back where it was is told as well."""

    name = "timer_drift"
    version = 2
    config_type = Config
    state_type = State

    def __init__(self, config: Config | None = None) -> None:
        super().__init__(config)
        self._watchers: dict[str, Watcher] = {}

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
            watcher = self._watcher(one.name)
            for iteration, time, value in zip(one.iterations, one.times, one.values, strict=True):
                level = None if value is None else watcher.take(iteration, time, value)
                if level is not None:
                    found.append(_drift(one.name, level))
        return found

    def _watcher(self, name: str) -> Watcher:
        if name not in self._watchers:
            self._watchers[name] = Watcher(self.config, self.state.series.setdefault(name, Track()))
        return self._watchers[name]


def _drift(name: str, level: Level) -> Drift:
    return Drift(
        metric=name,
        iteration=level.iteration,
        time=level.time,
        before=level.before,
        after=level.after,
        steps=level.steps,
    )
