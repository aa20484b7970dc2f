"""Numbers by metric and rank that a detector carries from window to window, as columns of a few bytes a cell."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import DTypeLike, NDArray

from streams.comparable import Comparable, Measured
from streams.metric_names import priority

MOST_CELLS = 1 << 20
"""Metrics times ranks; twenty thousand ranks of fifty metrics."""
PATIENCE_WINDOWS = 30
"""What was not measured for so long is forgotten."""


K = TypeVar("K", Measured, int)


class Cells(msgspec.Struct, kw_only=True):
    """``planes`` are matrices [row, rank] by name, as bytes; rows are sorted, ranks ascend.

    ``unseen_rows`` and ``unseen_ranks`` count the windows since each was last measured, ``left_out`` how many rows
    found no room in all.
    """

    rows: list[Measured] = []
    ranks: list[int] = []
    planes: dict[str, bytes] = {}
    unseen_rows: list[int] = []
    unseen_ranks: list[int] = []
    left_out: int = 0

    def fit(self, window: Comparable) -> NDArray[np.float64]:
        """Make room for what a window measured and forget what no longer is; its values in the place of the cells."""
        known = np.flatnonzero(np.isfinite(window.values).any(axis=1)).tolist()
        seen_rows = [window.measured[at] for at in known]
        ranks, unseen_ranks = _kept(self.ranks, self.unseen_ranks, window.ranks)
        rows, unseen_rows = _kept(self.rows, self.unseen_rows, seen_rows)
        room = MOST_CELLS // max(len(ranks), 1)
        if len(rows) > room:
            self.left_out += len(rows) - room
            old = set(self.rows)
            wanted = set(sorted(rows, key=lambda row: (row not in old, priority(row.name), row))[:room])
            rows, unseen_rows = _those(rows, unseen_rows, wanted)
        if (rows, ranks) != (self.rows, self.ranks):
            self._move(rows, ranks)
        self.unseen_rows, self.unseen_ranks = unseen_rows, unseen_ranks
        return self._placed(window)

    def plane(self, name: str, dtype: DTypeLike, *depth: int) -> NDArray[Any]:
        """A matrix [row, rank, depth …] by its name, zeros where it is new; to be written to, and ``put`` back."""
        shape = (len(self.rows), len(self.ranks), *depth)
        if name not in self.planes:
            return np.zeros(shape, dtype=dtype)
        return np.frombuffer(self.planes[name], dtype=np.dtype(dtype).newbyteorder("<")).reshape(shape).astype(dtype)

    def put(self, name: str, plane: NDArray[Any]) -> None:
        """Keep a matrix."""
        self.planes[name] = plane.astype(plane.dtype.newbyteorder("<"), copy=False).tobytes()

    def _move(self, rows: list[Measured], ranks: list[int]) -> None:
        place = {row: at for at, row in enumerate(rows)}
        from_rows = np.array([at for at, row in enumerate(self.rows) if row in place], dtype=np.int64)[:, None]
        to_rows = np.array([place[row] for row in self.rows if row in place], dtype=np.int64)[:, None]
        from_ranks = np.flatnonzero(np.isin(self.ranks, ranks))
        to_ranks = np.searchsorted(ranks, np.array(self.ranks, dtype=np.int64)[from_ranks])
        shape = (len(self.rows), len(self.ranks))
        before, self.planes = self.planes if shape[0] * shape[1] else {}, {}
        for name, plane in before.items():
            cells = np.frombuffer(plane, dtype=f"V{len(plane) // (shape[0] * shape[1])}").reshape(shape)
            moved = np.zeros((len(rows), len(ranks)), dtype=cells.dtype)
            moved[to_rows, to_ranks] = cells[from_rows, from_ranks]
            self.planes[name] = moved.tobytes()
        self.rows, self.ranks = rows, ranks

    def _placed(self, window: Comparable) -> NDArray[np.float64]:
        place = {row: at for at, row in enumerate(self.rows)}
        told = [at for at, row in enumerate(window.measured) if row in place]
        values = np.full((len(self.rows), len(self.ranks)), np.nan)
        columns = np.searchsorted(self.ranks, np.array(window.ranks, dtype=np.int64))
        rows = np.array([place[window.measured[at]] for at in told], dtype=np.int64)
        values[rows[:, None], columns] = window.values[told]
        return values


def _kept(known: list[K], unseen: list[int], seen: list[K]) -> tuple[list[K], list[int]]:
    """All that was measured of late, in order, and for how many windows each has not been."""
    if known == seen:
        return known, [0] * len(known)
    since = {one: windows + 1 for one, windows in zip(known, unseen, strict=True)} | dict.fromkeys(seen, 0)
    return _those(sorted(since), [since[one] for one in sorted(since)], None)


def _those(known: list[K], unseen: list[int], wanted: Collection[K] | None) -> tuple[list[K], list[int]]:
    pairs = [
        (one, windows)
        for one, windows in zip(known, unseen, strict=True)
        if windows <= PATIENCE_WINDOWS and (wanted is None or one in wanted)
    ]
    return [one for one, _ in pairs], [windows for _, windows in pairs]
