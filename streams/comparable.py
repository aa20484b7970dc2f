"""A window's gauges as what can be compared over ranks: levels, and of counters what they gained.

A process that began earlier has counted more, so totals are never compared. A counter that fell in the window tells
nothing, since nobody knows what it had gained before; a value in another unit than most ranks' is left out.
"""

from __future__ import annotations

from collections import Counter

import msgspec
import numpy as np
from numpy.typing import NDArray

from streams.gauges import GaugeTable
from streams.metric_names import counts_up

Matrix = NDArray[np.float64]
MOST_DEVICES = 64
"""Devices of one rank and name."""
OWN = "own device"
"""Stands for the device where every rank has one of its own, whatever it is called."""


class Measured(msgspec.Struct, frozen=True, order=True):
    """What one row measures; the device is empty where it is the process's own."""

    name: str
    device: str
    unit: str = ""

    @property
    def key(self) -> str:
        """Names the row in a state."""
        return f"{self.name}|{self.device}"


class Comparable(msgspec.Struct, frozen=True):
    """``values`` are [row, rank], NaN where nothing is known; ``measured`` says what the rows are, ``ranks`` ascend."""

    measured: list[Measured]
    ranks: list[int]
    values: Matrix


def comparable(table: GaugeTable) -> Comparable:
    """What can be compared of the gauges of a window.

    Devices are held against those of the same name on other ranks where most ranks have all of them, else by their
    order on each rank; where no rank has several, its only one is its own.
    """
    units, others = _units(table)
    values = _levels(table, units)
    values[others] = np.nan
    rows: list[tuple[Measured, Matrix]] = []
    for name in sorted({name for name, _ in table.metrics}):
        places = table.places(name)
        unit = units[places[0]]
        if not table.metrics[places[0]][1]:
            rows.append((Measured(name, "", unit), values[places.pop(0)]))
        if places:
            named = [table.metrics[at][1] for at in places]
            rows.extend((Measured(name, device, unit), row) for device, row in _devices(named, values[places]))
    rows.sort(key=lambda row: row[0])
    matrix = np.array([row for _, row in rows]).reshape(len(rows), len(table.ranks))
    return Comparable([measured for measured, _ in rows], table.ranks, matrix)


def _devices(names: list[str], values: Matrix) -> list[tuple[str, Matrix]]:
    """The rows of one metric's devices, by what a device is held against."""
    known = np.isfinite(values)
    of_rank = known.sum(axis=0)
    if of_rank.max(initial=0) <= 1:
        name = names[0] if len(names) == 1 else OWN
        return [(name, np.where(of_rank > 0, np.where(known, values, 0).sum(axis=0), np.nan))]
    if known.sum(axis=1).min() * 2 >= (of_rank > 0).sum():
        return list(zip(names, values, strict=True))[:MOST_DEVICES]
    order = np.argsort(~known, axis=0, kind="stable")
    ordered = np.take_along_axis(values, order, axis=0)[: min(int(of_rank.max()), MOST_DEVICES)]
    return [(f"device {place}", row) for place, row in enumerate(ordered)]


def _units(table: GaugeTable) -> tuple[list[str], NDArray[np.bool_]]:
    """Each metric's unit on most ranks, and where it is another one, [metric, rank]."""
    place = {metric: at for at, metric in enumerate(table.metrics)}
    found: list[Counter[str]] = [Counter() for _ in table.metrics]
    told: list[tuple[list[int], list[int], list[str]]] = []
    for (names, devices), columns in table.alike.items():
        at = [place.get(pair, -1) for pair in zip(names, devices, strict=True)]
        alike: dict[tuple[str, ...], list[int]] = {}
        for column in columns:
            alike.setdefault(tuple(table.rows[column].units), []).append(column)
        for units, who in alike.items():
            told.append((at, who, list(units)))
            for row, unit in zip(at, units, strict=True):
                if row >= 0:
                    found[row][unit] += len(who)
    usual = [min(one, key=lambda unit, one=one: (-one[unit], unit), default="") for one in found]  # type: ignore[misc]
    others = np.zeros((len(table.metrics), len(table.ranks)), dtype=np.bool_)
    for at, who, units_told in told:
        apart = [row for row, unit in zip(at, units_told, strict=True) if row >= 0 and unit != usual[row]]
        others[np.ix_(apart, who)] = True
    return usual, others


def _levels(table: GaugeTable, units: list[str]) -> Matrix:
    values = np.array(table.means)
    rows = [at for at, (name, _) in enumerate(table.metrics) if counts_up(name, units[at])]
    if rows:
        first, last = table.column("firsts")[rows], table.column("lasts")[rows]
        counts = table.column("counts")[rows]
        rose = (table.column("minima")[rows] == first) & (table.column("maxima")[rows] == last) & (counts >= 2)
        # Of n samples there are n - 1 gains; a rank that is sampled more often has no more.
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            values[rows] = np.where(rose, (last - first) * counts / (counts - 1), np.nan)
    return values
