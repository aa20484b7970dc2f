"""A window's gauges as what can be compared over ranks: levels, and of counters what they gained.

A process that began earlier has counted more, so totals are never compared. A counter that fell in the window tells
nothing, since nobody knows what it had gained before; a value in another unit than most ranks', by its name or by its
size, is left out.
"""

from __future__ import annotations

from collections import Counter

import msgspec
import numpy as np
from numpy.typing import NDArray

from streams.attempt_window import AttemptWindow
from streams.gauges import GaugeTable
from streams.metric_names import counts_up
from streams.robust import median_of
from streams.view import AttemptView

Matrix = NDArray[np.float64]
_SIZED = frozenset({"bytes", "s", "ms", "us", "W", "J", "MHz"})
_LEAST_ALIKE = 3
"""Ranks of which most can tell what size a unit has."""
_NEAR = 0.1
"""By how much a logarithm may be off."""


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


def ranks_compared(view: AttemptView, window: AttemptWindow) -> Comparable:
    """What can be compared of the window's ranks, made once; its values are not to be changed."""
    return window.once("ranks_compared", view, lambda: comparable(window.gauges))


def comparable(table: GaugeTable) -> Comparable:
    """What can be compared of the gauges of a window."""
    units, others = _units(table)
    values = _levels(table, units)
    values[others] = np.nan
    values[_mistaken(table, values, units)] = np.nan
    measured = [Measured(name, device, unit) for (name, device), unit in zip(table.metrics, units, strict=True)]
    return Comparable(measured, table.ranks, values)


def _units(table: GaugeTable) -> tuple[list[str], NDArray[np.bool_]]:
    """Each metric's unit on most ranks, and where it is another one, [metric, rank]."""
    place: dict[tuple[str, str | None], int] = {metric: at for at, metric in enumerate(table.metrics)}
    found: list[Counter[str]] = [Counter() for _ in table.metrics]
    told: list[tuple[list[int], list[int], list[str]]] = []
    for (names, devices), columns in table.alike.items():
        at = [place.get(pair, -1) for pair in zip(names, devices, strict=True)]
        shared: dict[int, list[int]] = {}
        for column in columns:
            shared.setdefault(id(table.rows[column].units), []).append(column)
        alike: dict[tuple[str, ...], list[int]] = {}
        for who in shared.values():
            alike.setdefault(tuple(table.rows[who[0]].units), []).extend(who)
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


def _mistaken(table: GaugeTable, values: Matrix, units: list[str]) -> NDArray[np.bool_]:
    """Which values have the unit's name and another size: they are a thousand or 1024 times their like, once or more.

    So is hardly anything that is measured rightly. Levels in units that come in sizes only: what idles gains nothing.
    """
    pairs = enumerate(zip(table.metrics, units, strict=True))
    rows = [at for at, ((name, _), unit) in pairs if unit in _SIZED and not counts_up(name, unit)]
    found = np.zeros(values.shape, dtype=np.bool_)
    if not rows or values.shape[1] < _LEAST_ALIKE:
        return found
    with np.errstate(invalid="ignore", divide="ignore"):
        apart = np.abs(np.log(values[rows] / median_of(values[rows])[:, None]))
        for step in (np.log(1000), np.log(1024)):
            times = np.round(apart / step)
            found[rows] |= (times >= 1) & (np.abs(apart - times * step) < _NEAR)
    return found


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
