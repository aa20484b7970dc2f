"""The sampled metrics of all ranks in one window as matrices, for what is compared over ranks and metrics at once."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from schemas.results import Gauges, Window

MOST_METRICS = 1024
"""Of more pairs of name and device those that most ranks have are kept: what one rank alone has can be compared to
nothing, and nobody may fill the memory with names."""

Column = Literal["counts", "means", "minima", "maxima", "firsts", "lasts"]
Layout = tuple[tuple[str, ...], tuple[str, ...]]
"""Names and devices of one rank's gauges, in order; mostly all ranks have the same."""


class GaugeTable(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """What was sampled of the ``metrics``, sorted pairs of name and device, on the ``ranks``, which ascend.

    The device of what is a process's own is empty. ``rows`` are the ranks' own gauges, in the order of ``ranks``;
    ``alike`` are the places of those that have the same names and devices.
    """

    metrics: list[tuple[str, str]]
    ranks: list[int]
    rows: list[Gauges]
    alike: dict[Layout, list[int]]

    @property
    def means(self) -> NDArray[np.float64]:
        """The means, ``[metric, rank]``; see ``column``."""
        return self.column("means")

    def column(self, name: Column) -> NDArray[np.float64]:
        """One column of all gauges as a matrix ``[metric, rank]``, made once; NaN where a rank has none."""
        if name not in self._made:
            self._made[name] = self._matrix(name)
        return self._made[name]

    def own(self, name: str, column: Column) -> NDArray[np.float64]:
        """One column of the processes' own gauges of that name, ``[rank]``; NaN where a rank has none."""
        found = np.full(len(self.ranks), np.nan)
        for (names, devices), places in self.alike.items():
            at = bisect_left(names, name)
            if at < len(names) and names[at] == name and not devices[at]:
                found[places] = [getattr(self.rows[place], column)[at] for place in places]
        return found

    def where(self, marks: NDArray[np.bool_]) -> list[int]:
        """The ranks that are marked, ``[rank]``, ascending."""
        return [self.ranks[place] for place in np.flatnonzero(marks).tolist()]

    def places(self, name: str) -> list[int]:
        """Where the metrics of that name stand, the process's own first, then by device."""
        return [at for at, (own, _) in enumerate(self.metrics) if own == name]

    @cached_property
    def _made(self) -> dict[str, NDArray[np.float64]]:
        return {}

    def _matrix(self, name: Column) -> NDArray[np.float64]:
        matrix = np.full((len(self.metrics), len(self.ranks)), np.nan)
        place = {metric: at for at, metric in enumerate(self.metrics)}
        for (names, devices), columns in self.alike.items():
            pairs = list(zip(names, devices, strict=True))
            kept = [at for at, pair in enumerate(pairs) if pair in place]
            packed = b"".join([array("d", getattr(self.rows[column], name)) for column in columns])
            values = np.frombuffer(packed).reshape(len(columns), len(pairs))
            matrix[np.ix_([place[pairs[at]] for at in kept], columns)] = values[:, kept].T
        matrix.flags.writeable = False
        return matrix


class PackedGauges:
    """Gauges as they are kept until their window closes: words are in memory once, numbers lie side by side.

    Ten thousand ranks have millions of numbers, and each as an object of its own costs more than the number.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], list[str]] = {}

    def of(self, gauges: Gauges) -> Gauges:
        """The same gauges; their columns are not to be changed."""
        return Gauges(
            names=self._shared(gauges.names),
            devices=self._shared(gauges.devices),
            units=self._shared(gauges.units),
            counts=array("q", gauges.counts),
            means=array("d", gauges.means),
            minima=array("d", gauges.minima),
            maxima=array("d", gauges.maxima),
            firsts=array("d", gauges.firsts),
            lasts=array("d", gauges.lasts),
        )

    def _shared(self, words: list[str]) -> list[str]:
        return self._known.setdefault(tuple(words), words)


def gauge_table(summaries: Sequence[Window]) -> GaugeTable:
    """The gauges of the summaries of ranks; of several summaries of a rank the last that has any counts."""
    found: dict[int, Gauges] = {}
    for summary in summaries:
        if summary.identity.rank is not None and (measured := summary.measured):
            found[summary.identity.rank] = measured
    ranks = sorted(found)
    rows = [found[rank] for rank in ranks]
    alike = _alike(rows)
    return GaugeTable(metrics=_metrics(alike), ranks=ranks, rows=rows, alike=alike)


def _alike(rows: Sequence[Gauges]) -> dict[Layout, list[int]]:
    """The places of rows by their names and devices; columns that are shared are looked at once."""
    shared: dict[tuple[int, int], list[int]] = {}
    for at, row in enumerate(rows):
        shared.setdefault((id(row.names), id(row.devices)), []).append(at)
    alike: dict[Layout, list[int]] = {}
    for places in shared.values():
        row = rows[places[0]]
        alike.setdefault((tuple(row.names), tuple(row.devices)), []).extend(places)
    return alike


def _metrics(alike: Mapping[Layout, Sequence[int]]) -> list[tuple[str, str]]:
    seen: Counter[tuple[str, str]] = Counter()
    for (names, devices), places in alike.items():
        seen.update(dict.fromkeys(zip(names, devices, strict=True), len(places)))
    return sorted(sorted(seen, key=lambda metric: (-seen[metric], metric))[:MOST_METRICS])
