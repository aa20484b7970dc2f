"""What was measured of one worker in a window: series by iteration, and gauges as columns."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from schemas.events import Int64
from schemas.packs import GaugePack
from schemas.results.words import Record


class Series(Record, frozen=True, omit_defaults=True, kw_only=True):
    """A metric by iteration, columns of equal length; null values stand in ``nonfinite`` as (iteration, what).

    Columns of different length are refused.
    """

    name: str
    iterations: list[int]
    times: list[int]
    values: list[float | None]
    unit: str = ""
    nonfinite: list[tuple[int, str]] = []

    def __post_init__(self) -> None:
        if not len(self.iterations) == len(self.times) == len(self.values):
            raise ValueError("columns of different length")


class Gauge(Record, frozen=True, omit_defaults=True, kw_only=True):
    """A sampled metric over a window; without a device it is the process's own."""

    name: str
    count: int
    mean: float
    minimum: float
    maximum: float
    first: float
    last: float
    unit: str = ""
    device: str | None = None


class Gauges(Record, frozen=True, omit_defaults=True, kw_only=True):
    """Sampled metrics over a window, columns of equal length, sorted by name and device; each pair stands there once.

    The device of what is the process's own is empty, so this stands first of its name. Columns of different length are
    refused.
    """

    names: list[str] = []
    devices: list[str] = []
    units: list[str] = []
    counts: Sequence[Int64] = []
    means: Sequence[float] = []
    minima: Sequence[float] = []
    maxima: Sequence[float] = []
    firsts: Sequence[float] = []
    lasts: Sequence[float] = []

    def __post_init__(self) -> None:
        size = len(self.names)
        if not (
            size == len(self.devices) == len(self.units) == len(self.counts) == len(self.means)
            and size == len(self.minima) == len(self.maxima) == len(self.firsts) == len(self.lasts)
        ):
            raise ValueError("columns of different length")

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[Gauge]:
        return map(self._row, range(len(self.names)))

    def own(self, name: str) -> Gauge | None:
        """The process's own gauge of that name, or null."""
        at = bisect_left(self.names, name)
        if at == len(self.names) or self.names[at] != name or self.devices[at]:
            return None
        return self._row(at)

    def _row(self, at: int) -> Gauge:
        return Gauge(
            name=self.names[at],
            device=self.devices[at] or None,
            unit=self.units[at],
            count=self.counts[at],
            mean=self.means[at],
            minimum=self.minima[at],
            maximum=self.maxima[at],
            first=self.firsts[at],
            last=self.lasts[at],
        )


def gauges_of(rows: Sequence[Gauge]) -> Gauges:
    """The gauges as columns; of those of one name and device the last is kept."""
    found = {(row.name, row.device or ""): row for row in rows}
    keys = sorted(found)
    ordered = [found[key] for key in keys]
    return Gauges(
        names=[name for name, _ in keys],
        devices=[device for _, device in keys],
        units=[row.unit for row in ordered],
        counts=[row.count for row in ordered],
        means=[row.mean for row in ordered],
        minima=[row.minimum for row in ordered],
        maxima=[row.maximum for row in ordered],
        firsts=[row.first for row in ordered],
        lasts=[row.last for row in ordered],
    )


def gauges_in(pack: GaugePack) -> Gauges:
    """The gauges of a pack as columns."""
    names = pack.names
    counts, columns = pack.columns()
    means, minima, maxima, firsts, lasts = map(list, columns)
    return Gauges(
        names=names.names,
        devices=names.devices,
        units=names.units,
        counts=list(counts),
        means=means,
        minima=minima,
        maxima=maxima,
        firsts=firsts,
        lasts=lasts,
    )
