"""The series of a window by name: which ranks report what, as arrays of ranks by readings.

Ranks that train together mostly report the same names at the same iterations. Those that do are one block, so that what
looks at all of them looks at arrays; whoever wants a rank's series as such still gets it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from math import isnan

import msgspec
import numpy as np
from numpy.typing import NDArray

from schemas.packs import SeriesPack
from schemas.results import Series, Window
from streams.packing import pack_of

Indices = NDArray[np.int64]
Values = NDArray[np.float64]


class Block(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Ranks that report a series at the same ``iterations``, ``[reading]``, in the order of their summaries.

    ``places`` are where these stand in the window; ``times`` and ``values`` are ``[rank, reading]``, NaN where there is
    none. ``nonfinite`` are (iteration, what it was) by the place of the rank in the block, of those that have any.
    """

    name: str
    unit: str
    ranks: list[int]
    places: Indices
    iterations: Indices
    times: Indices
    values: Values
    nonfinite: dict[int, list[tuple[int, str]]]

    def series(self, at: int) -> Series:
        """The series of the rank at this place of the block."""
        values = self.values[at].tolist()
        return Series(
            name=self.name,
            unit=self.unit,
            iterations=self.steps,
            times=self.times[at].tolist(),
            values=[None if isnan(value) else value for value in values],
            nonfinite=self.nonfinite.get(at, []),
        )

    @property
    def flat(self) -> Flat:
        """Rank by rank."""
        return Flat(
            ranks=np.array(self.ranks, dtype=np.int64),
            places=self.places,
            lengths=np.full(len(self.ranks), len(self.iterations)),
            iterations=np.tile(self.iterations, len(self.ranks)),
            times=self.times.ravel(),
            values=self.values.ravel(),
        )

    @cached_property
    def steps(self) -> list[int]:
        """The iterations as numbers."""
        found: list[int] = self.iterations.tolist()
        return found


class Flat(msgspec.Struct, frozen=True, kw_only=True):
    """Reports of one name one behind the other: by report its rank, place and length; by reading all else.

    ``values`` are NaN where there is none.
    """

    ranks: Indices
    places: Indices
    lengths: Indices
    iterations: Indices
    times: Indices
    values: Values

    def at(self, reports: Indices) -> Flat:
        """Those of the reports, in this order, ``[report]``."""
        lengths = self.lengths[reports]
        begins = (np.cumsum(self.lengths) - self.lengths)[reports]
        readings = np.repeat(begins - (np.cumsum(lengths) - lengths), lengths) + np.arange(lengths.sum())
        return Flat(
            ranks=self.ranks[reports],
            places=self.places[reports],
            lengths=lengths,
            iterations=self.iterations[readings],
            times=self.times[readings],
            values=self.values[readings],
        )

    def only(self, kept: NDArray[np.bool_]) -> Flat:
        """Those of the reports, ``[report]``."""
        return self if kept.all() else self.at(np.flatnonzero(kept))


def one_behind_another(found: Sequence[Flat]) -> Flat:
    """All of them, in this order."""
    if len(found) == 1:
        return found[0]
    return Flat(
        ranks=np.concatenate([one.ranks for one in found]),
        places=np.concatenate([one.places for one in found]),
        lengths=np.concatenate([one.lengths for one in found]),
        iterations=np.concatenate([one.iterations for one in found]),
        times=np.concatenate([one.times for one in found]),
        values=np.concatenate([one.values for one in found]),
    )


class Reports(Sequence[tuple[int, Series]]):
    """Who reports the series of one name: pairs of rank and series, in the order of their summaries."""

    def __init__(self, blocks: list[Block]) -> None:
        self.blocks = blocks
        self._rows: list[tuple[int, Series]] | None = None

    @cached_property
    def ranks(self) -> list[int]:
        """The ranks in order; one that says it twice stands there twice."""
        return [self.blocks[block].ranks[at] for block, at in self._order]

    def of(self, rank: int) -> Series:
        """The series of a rank that reports it, the first where it has several."""
        return next(block.series(block.ranks.index(rank)) for block in self.blocks if rank in block.ranks)

    @cached_property
    def flat(self) -> Flat:
        """All reports one behind the other, in the order of their summaries."""
        found = one_behind_another([block.flat for block in self.blocks])
        if len(self.blocks) == 1:
            return found
        return found.at(np.argsort(found.places, kind="stable"))

    def __len__(self) -> int:
        return sum(len(block.ranks) for block in self.blocks)

    def __iter__(self) -> Iterator[tuple[int, Series]]:
        return iter(self._told)

    def __getitem__(self, at: int) -> tuple[int, Series]:  # type: ignore[override]
        return self._told[at]

    @property
    def _told(self) -> list[tuple[int, Series]]:
        if self._rows is None:
            self._rows = [(self.blocks[block].ranks[at], self.blocks[block].series(at)) for block, at in self._order]
        return self._rows

    @cached_property
    def _order(self) -> list[tuple[int, int]]:
        """Block and place in it of each rank, in the order of their summaries; of one summary as it says them."""
        if len(self.blocks) == 1:
            return [(0, at) for at in range(len(self.blocks[0].ranks))]
        found = [
            (place, number, at)
            for number, block in enumerate(self.blocks)
            for at, place in enumerate(block.places.tolist())
        ]
        return [(number, at) for _, number, at in sorted(found)]


class SharedSeries:
    """Names of series in memory once; most ranks have the same."""

    def __init__(self) -> None:
        self._known: dict[bytes, msgspec.Raw] = {}

    def share(self, pack: SeriesPack) -> None:
        """Let the pack have the names that another one had; as it was read they hold the whole record in memory."""
        words = bytes(pack.words)
        shared = self._known.get(words)
        if shared is None:
            shared = self._known[words] = msgspec.Raw(words)
        msgspec.structs.force_setattr(pack, "words", shared)


def series_table(summaries: Sequence[Window]) -> dict[str, Reports]:
    """The series of ranks by name, in order of names."""
    alike: dict[tuple[bytes, bytes], list[tuple[int, int, SeriesPack]]] = {}
    for place, summary in enumerate(summaries):
        rank, pack = summary.identity.rank, pack_of(summary)
        if rank is not None and pack is not None:
            alike.setdefault((bytes(pack.words), pack.iterations), []).append((place, rank, pack))
    found: dict[str, list[Block]] = {}
    for told in alike.values():
        for block in _blocks(told):
            found.setdefault(block.name, []).append(block)
    return {name: Reports(found[name]) for name in sorted(found)}


def _blocks(told: list[tuple[int, int, SeriesPack]]) -> Iterator[Block]:
    """Series by series what ranks say whose names and iterations are the same."""
    first = told[0][2]
    names, starts, value_starts = first.names, first.names.starts, first.names.value_starts
    iterations = np.frombuffer(first.iterations, dtype="<i8")
    times = np.frombuffer(b"".join([pack.times for _, _, pack in told]), dtype="<i8").reshape(len(told), -1)
    values = np.frombuffer(b"".join([pack.values for _, _, pack in told]), dtype="<f8").reshape(len(told), -1)
    values = np.where(np.isfinite(values), values, np.nan)
    nonfinite: dict[int, dict[int, list[tuple[int, str]]]] = {}
    for at, (_, _, pack) in enumerate(told):
        for number, iteration, what in pack.nonfinite:
            nonfinite.setdefault(number, {}).setdefault(at, []).append((iteration, what))
    places = np.array([place for place, _, _ in told], dtype=np.int64)
    ranks = [rank for _, rank, _ in told]
    for number, (name, unit, axis) in enumerate(zip(names.names, names.units, names.axes, strict=True)):
        steps = slice(starts[axis], starts[axis + 1])
        yield Block(
            name=name,
            unit=unit,
            ranks=ranks,
            places=places,
            iterations=iterations[steps].astype(np.int64, copy=False),
            times=times[:, steps].astype(np.int64, copy=False),
            values=values[:, value_starts[number] : value_starts[number + 1]],
            nonfinite=nonfinite.get(number, {}),
        )
