"""The sampled metrics of all ranks in one window as matrices, for what is compared over ranks and metrics at once."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from schemas.packs import GaugePack
from schemas.results import Gauges, Window

MOST_METRICS = 1024
"""Of more names those that most ranks have are kept: what one rank alone has can be compared to nothing, and nobody may
fill the memory with names."""
MOST_ROWS = 2048
"""Of names and devices; a name for whose devices there is no room is left out."""
MOST_DEVICES = 64
"""Of one name, on one rank and by which ranks call them alike."""
OWN = "own device"
"""Stands for the first device of a rank, whatever it is called."""
_PLACE = re.compile(rf"{OWN}|device [0-9]+")
"""What stands for a device by its place on its rank; one that is really called so goes by its place as well."""

Column = Literal["counts", "means", "minima", "maxima", "firsts", "lasts"]
Layout = tuple[tuple[str, ...], tuple[str | None, ...]]
"""Names and devices of one rank's gauges, in order; mostly all ranks have the same. Null is one without room."""


class GaugeTable(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """What was sampled of the ``metrics``, sorted pairs of name and device, on the ``ranks``, which ascend.

    The device of what is a process's own is empty. A device that more than half of the ranks with that name have is
    held against those called alike; others by their order on their rank: its first is its own. ``rows`` are the ranks'
    own gauges, in the order of ``ranks``; ``alike`` are the places of those that have the same names and devices, so
    called. ``left_out`` counts the ranks' gauges for which there was no room.
    """

    metrics: list[tuple[str, str]]
    ranks: list[int]
    rows: list[Gauges]
    alike: dict[Layout, list[int]]
    left_out: int = 0

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
            if at < len(names) and names[at] == name and devices[at] == "":
                found[places] = [getattr(self.rows[place], column)[at] for place in places]
        return found

    def where(self, marks: NDArray[np.bool_]) -> list[int]:
        """The ranks that are marked, ``[rank]``, ascending."""
        return [self.ranks[place] for place in np.flatnonzero(marks).tolist()]

    def places(self, name: str) -> list[int]:
        """Where the metrics of that name stand, the process's own first, then by device."""
        return [at for at, (own, _) in enumerate(self.metrics) if own == name]

    def called(self, rank: int, name: str, device: str) -> str:
        """How a rank calls the device of one of the ``metrics`` itself; empty where it has none of that name."""
        place = bisect_left(self.ranks, rank)
        for layout, places in self.alike.items():
            pairs = list(zip(*layout, strict=True))
            if place in places and (name, device) in pairs:
                return self.rows[place].devices[pairs.index((name, device))] or ""
        return ""

    @cached_property
    def _made(self) -> dict[str, NDArray[np.float64]]:
        return {}

    def _matrix(self, name: Column) -> NDArray[np.float64]:
        matrix = np.full((len(self.metrics), len(self.ranks)), np.nan)
        place: dict[tuple[str, str | None], int] = {metric: at for at, metric in enumerate(self.metrics)}
        for (names, devices), columns in self.alike.items():
            pairs = list(zip(names, devices, strict=True))
            kept = [at for at, pair in enumerate(pairs) if pair in place]
            values = self._told(name, columns).reshape(len(columns), len(pairs))
            rows = [place[pairs[at]] for at in kept]
            if columns == list(range(len(self.ranks))):
                matrix[rows] = values.T[kept]
            else:
                matrix[np.ix_(rows, columns)] = values[:, kept].T
        matrix.flags.writeable = False
        return matrix

    def _told(self, name: Column, places: Sequence[int]) -> NDArray[np.generic]:
        """What ranks of one layout say, one behind the other; whole numbers as such where they are packed."""
        found = [getattr(self.rows[place], name) for place in places]
        codes = {one.typecode if isinstance(one, array) else "" for one in found}
        if len(codes) == 1 and codes <= {"d", "q"}:
            return np.frombuffer(b"".join(found), dtype=min(codes))
        return np.frombuffer(b"".join([array("d", one) for one in found]))


class PackedGauges:
    """Gauges as they are kept until their window closes: words are in memory once, numbers lie side by side.

    Ten thousand ranks have millions of numbers, and each as an object of its own costs more than the number.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], list[str]] = {}
        self._packs: dict[bytes, tuple[list[str], list[str], list[str]]] = {}

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

    def unpacked(self, pack: GaugePack) -> Gauges:
        """The gauges of a pack; their columns are not to be changed."""
        words = bytes(pack.words)
        shared = self._packs.get(words)
        if shared is None:
            names = pack.names
            shared = self._packs[words] = (
                self._shared(names.names),
                self._shared(names.devices),
                self._shared(names.units),
            )
        counts, (means, minima, maxima, firsts, lasts) = pack.columns()
        return Gauges(
            names=shared[0],
            devices=shared[1],
            units=shared[2],
            counts=counts,
            means=means,
            minima=minima,
            maxima=maxima,
            firsts=firsts,
            lasts=lasts,
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
    alike = _called(_alike(rows))
    metrics = _metrics(alike)
    kept = set(metrics)
    left_out = sum(
        len(places) * sum(pair not in kept for pair in zip(names, devices, strict=True))
        for (names, devices), places in alike.items()
    )
    return GaugeTable(metrics=metrics, ranks=ranks, rows=rows, alike=alike, left_out=left_out)


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


def _called(alike: Mapping[Layout, list[int]]) -> dict[Layout, list[int]]:
    """The same with devices called as they are held against each other; null is what a rank has too many of."""
    common = _common(alike)
    found: dict[Layout, list[int]] = {}
    for (names, devices), places in alike.items():
        others: Counter[str] = Counter()
        called: list[str | None] = []
        for name, device in zip(names, devices, strict=True):
            if not device or device in common[name]:
                called.append(device)
                continue
            place = others[name]
            others[name] += 1
            called.append(OWN if not place else f"device {place}" if place < MOST_DEVICES else None)
        found.setdefault((names, tuple(called)), []).extend(places)
    return {layout: sorted(places) for layout, places in found.items()}


def _common(alike: Mapping[Layout, Sequence[int]]) -> dict[str, set[str]]:
    """By name the devices that more than half of the ranks have which have any."""
    seen: Counter[tuple[str, str]] = Counter()
    ranks: Counter[str] = Counter()
    for (names, devices), places in alike.items():
        pairs = [(name, device) for name, device in zip(names, devices, strict=True) if device]
        seen.update(dict.fromkeys(pairs, len(places)))
        ranks.update(dict.fromkeys((name for name, _ in pairs), len(places)))
    common: dict[str, set[str]] = {name: set() for names, _ in alike for name in names}
    for name, device in sorted(pair for pair, count in seen.items() if 2 * count > ranks[pair[0]]):
        if len(common[name]) < MOST_DEVICES and not _PLACE.fullmatch(device):
            common[name].add(device)
    return common


def _metrics(alike: Mapping[Layout, Sequence[int]]) -> list[tuple[str, str]]:
    """The pairs of name and device for which there is room: whole names, those that most ranks have first."""
    ranks: Counter[str] = Counter()
    devices_of: dict[str, set[str]] = {}
    for (names, devices), places in alike.items():
        ranks.update(dict.fromkeys(names, len(places)))
        for name, device in zip(names, devices, strict=True):
            if device is not None:
                devices_of.setdefault(name, set()).add(device)
    found: list[tuple[str, str]] = []
    for name in sorted(ranks, key=lambda name: (-ranks[name], name))[:MOST_METRICS]:
        if len(found) + len(devices_of[name]) <= MOST_ROWS:
            found.extend((name, device) for device in devices_of[name])
    return sorted(found)
