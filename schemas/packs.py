"""Series and gauges of a window as packs: names once, as JSON, and numbers side by side, as bytes.

Ten thousand ranks say the same few names and millions of numbers. Read one by one, each of those costs more than all
that is done with it; and who has seen the names of one rank has seen those of all. Numbers are little-endian words of
8 bytes, in base64.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Annotated, TypeVar

import msgspec

Names = TypeVar("Names")
Number = TypeVar("Number", int, float)

WORD = 8
"""Bytes of a number."""
COLUMNS = 6
"""Of a pack of gauges."""

Row = tuple[str, str, list[int], list[int], list[float | None], list[tuple[int, str]]]
"""Name, unit, iterations, times, values and what is not finite, as a ``Series`` has them."""


class SeriesNames(msgspec.Struct, frozen=True, dict=True):
    """Series in order. An axis is so many readings, its iterations and times; each series has one of the ``axes``."""

    names: list[str]
    units: list[str]
    axes: list[Annotated[int, msgspec.Meta(ge=0)]]
    lengths: list[Annotated[int, msgspec.Meta(ge=1)]]

    def __post_init__(self) -> None:
        if not len(self.names) == len(self.units) == len(self.axes) or max(self.axes, default=0) >= len(self.lengths):
            raise ValueError("names, units and axes of series do not belong together")

    @cached_property
    def starts(self) -> list[int]:
        """Where each axis begins among the iterations, and behind them where the last one ends."""
        return _sums(self.lengths)

    @cached_property
    def value_starts(self) -> list[int]:
        """The same for each series among the values."""
        return _sums([self.lengths[axis] for axis in self.axes])


class GaugeNames(msgspec.Struct, frozen=True, gc=False):
    """Gauges in order, as ``Gauges`` has them."""

    names: list[str]
    devices: list[str]
    units: list[str]

    def __post_init__(self) -> None:
        if not len(self.names) == len(self.devices) == len(self.units):
            raise ValueError("names, devices and units of gauges do not belong together")


class SeriesPack(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """Metrics by iteration. ``words`` are ``SeriesNames`` as JSON: ``names``, ``units``, ``axes`` and ``lengths``.

    ``iterations`` and ``times`` are whole numbers, axis by axis; ``values`` are of double precision, series by series,
    NaN where there is none. ``nonfinite`` are (number of the series, iteration, what it was).
    """

    words: msgspec.Raw
    iterations: bytes
    times: bytes
    values: bytes
    nonfinite: list[tuple[int, int, str]] = []

    def __post_init__(self) -> None:
        names = self.names
        axes, values = WORD * names.starts[-1], WORD * names.value_starts[-1]
        if not len(self.iterations) == len(self.times) == axes or len(self.values) != values:
            raise ValueError("a pack of series of another length")

    @property
    def names(self) -> SeriesNames:
        """What is packed."""
        return series_names(bytes(self.words))

    def axes(self) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
        """Iterations and times of each axis."""
        starts = self.names.starts
        iterations, times = whole_numbers(self.iterations), whole_numbers(self.times)
        for start, stop in pairwise(starts):
            yield iterations[start:stop], times[start:stop]

    def spans(self) -> Iterator[tuple[int, int, int, int]]:
        """The first and the last iteration of each axis, and when these were."""
        starts = self.names.starts
        for start, behind in pairwise(starts):
            first, last = WORD * start, WORD * (behind - 1)
            yield _at(self.iterations, first), _at(self.iterations, last), _at(self.times, first), _at(self.times, last)

    def rows(self) -> Iterator[Row]:
        """Series by series."""
        names, axes, values = self.names, list(self.axes()), numbers(self.values)
        starts = names.value_starts
        nonfinite: dict[int, list[tuple[int, str]]] = {}
        for number, iteration, what in self.nonfinite:
            nonfinite.setdefault(number, []).append((iteration, what))
        for number, (name, unit) in enumerate(zip(names.names, names.units, strict=True)):
            iterations, times = axes[names.axes[number]]
            own = [value if _is_finite(value) else None for value in values[starts[number] : starts[number + 1]]]
            yield name, unit, list(iterations), list(times), own, nonfinite.get(number, [])


class GaugePack(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Sampled metrics over a window. ``words`` are ``GaugeNames`` as JSON: ``names``, ``devices`` and ``units``.

    ``numbers`` are six columns as long: counts (whole numbers), means, minima, maxima, firsts and lasts.
    """

    words: msgspec.Raw
    numbers: bytes

    def __post_init__(self) -> None:
        if len(self.numbers) != WORD * COLUMNS * len(self.names.names):
            raise ValueError("a pack of gauges of another length")

    @property
    def names(self) -> GaugeNames:
        """What is packed."""
        return gauge_names(bytes(self.words))

    def columns(self) -> tuple[Sequence[int], list[Sequence[float]]]:
        """The counts, and the other columns in order."""
        size = len(self.numbers) // COLUMNS
        others, each = numbers(self.numbers[size:]), size // WORD
        return whole_numbers(self.numbers[:size]), [others[at * each : (at + 1) * each] for at in range(COLUMNS - 1)]


@lru_cache(maxsize=256)
def series_names(words: bytes) -> SeriesNames:
    """The names in a pack of series. Raises ValueError where they are none."""
    return _read(words, SeriesNames)


@lru_cache(maxsize=256)
def gauge_names(words: bytes) -> GaugeNames:
    """The names in a pack of gauges. Raises ValueError where they are none."""
    return _read(words, GaugeNames)


def packed_whole(found: Sequence[int]) -> bytes:
    """Whole numbers as bytes. Raises OverflowError for one that has no room."""
    return _in_order(array("q", found)).tobytes()


def packed(found: Sequence[float]) -> bytes:
    """Numbers as bytes."""
    return _in_order(array("d", found)).tobytes()


def whole_numbers(data: bytes) -> array[int]:
    """The whole numbers again."""
    return _in_order(array("q", data))


def numbers(data: bytes) -> array[float]:
    """The numbers again."""
    return _in_order(array("d", data))


def _in_order(found: array[Number]) -> array[Number]:
    if sys.byteorder == "big":
        found.byteswap()
    return found


def _at(data: bytes, place: int) -> int:
    return int.from_bytes(data[place : place + WORD], "little", signed=True)


def _is_finite(value: float) -> bool:
    return value - value == 0


def _sums(lengths: list[int]) -> list[int]:
    sums = [0]
    for length in lengths:
        sums.append(sums[-1] + length)
    return sums


def _read(words: bytes, kind: type[Names]) -> Names:
    try:
        return msgspec.json.decode(words, type=kind)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise ValueError(f"names of a pack: {error}") from None
