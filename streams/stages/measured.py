"""What a worker measures in one window: readings by iteration, samples by device, and what of them is left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from schemas import events, results
from schemas.measures import is_blank
from streams.failed_reads import Read, failed_reads, read_of
from streams.hardware import HardwareWatch, WatchState
from streams.lines.iterations.reading import Reading
from streams.stages.columns import Point, gauges_of, series_of

EXTREME = 1e300
"""Beyond this sums overflow; such a sample is counted and left out."""
MOST_NAMES = 512
"""Metrics of a worker; what invents names must not fill the memory."""


class Measured:
    """Collects readings and samples in canonical order; ``left_out`` counts by reason those that are not told.

    ``names`` are the worker's metrics so far, and grow in place. ``hardware`` keeps what counters and states say.
    """

    def __init__(self, names: list[str], hardware: WatchState) -> None:
        self.hardware = HardwareWatch(hardware)
        self.left_out: Counter[str] = Counter()
        self._names = names
        self._points: dict[str, list[Point]] = {}
        self._gauges: dict[tuple[str, str], list[events.Metric]] = {}
        self._failed_reads: frozenset[Read] = frozenset()

    def series(self) -> list[results.Series]:
        """What was measured by iteration, by name."""
        return [series_of(name, points) for name, points in sorted(self._points.items())]

    def gauges(self) -> results.Gauges:
        """What was sampled, by name and device."""
        return gauges_of(self._gauges)

    def look_ahead(self, samples: Iterable[events.Metric]) -> None:
        """Tell zeros of failed reads from true ones, by all samples of the window; before any is taken."""
        self._failed_reads = failed_reads(samples, self.hardware.shown_last)

    def read(self, readings: Iterable[Reading], iteration: int, time: int) -> None:
        """Take in what a line of ``time`` (ns) measures of an iteration."""
        for one in readings:
            if not self._extreme(one.name, one.value) and self._known(one.name):
                self._reached(one, iteration, time)

    def take(self, event: events.Metric) -> None:
        """Take in a sample, or a reading that tells its iteration."""
        if self._extreme(event.name, event.value) or not self._known(event.name):
            return
        if event.iteration is not None:
            self._reached(event, event.iteration, event.time)
        elif event.value is None:
            self.left_out[f"nonfinite.{event.name}"] += 1
        elif is_blank(event.name, event.value, event.unit):
            self.left_out[f"blank.{event.name}"] += 1
        elif event.value == 0 and read_of(event) in self._failed_reads:
            self.left_out[f"failed read.{event.name}"] += 1
        elif (sample := self.hardware.take(event)) is not None:
            self._sampled(sample)

    def _reached(self, one: Reading | events.Metric, iteration: int, time: int) -> None:
        point = Point(iteration, time, one.value, one.nonfinite, one.unit)
        self._points.setdefault(one.name, []).append(point)

    def _sampled(self, sample: events.Metric) -> None:
        """Take in a sample; one name in two units is two metrics, of which the window tells the latter."""
        found = self._gauges.setdefault((sample.name, sample.device or ""), [])
        if found and found[-1].unit != sample.unit:
            self.left_out[f"unit.{sample.name}"] += len(found)
            found.clear()
        found.append(sample)

    def _extreme(self, name: str, value: float | None) -> bool:
        """Whether a value is beyond what sums can hold."""
        extreme = value is not None and abs(value) > EXTREME
        if extreme:
            self.left_out[f"extreme.{name}"] += 1
        return extreme

    def _known(self, name: str) -> bool:
        """Whether the metric is one of the worker's first so many."""
        if name in self._names:
            return True
        if len(self._names) >= MOST_NAMES:
            self.left_out["metric names"] += 1
            return False
        self._names.append(name)
        return True
