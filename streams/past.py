"""What each rank printed of each template so far: the mean of lines a window, for as many as there is room for."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from streams.printed import Marks, Printed

MOST_CELLS = 100_000
"""Templates times ranks."""

Means = NDArray[np.float64]


class Past(msgspec.Struct, kw_only=True):
    """``means`` by template, in the order of ``ranks``, as is ``seen``: how many windows of each were taken in.

    ``windows`` counts all.
    """

    windows: int = 0
    ranks: list[int] = []
    seen: list[int] = []
    means: dict[str, list[float]] = {}

    def of(self, table: Printed) -> Means:
        """The means of the table's templates and ranks; what has no past here has none."""
        columns = {rank: column for column, rank in enumerate(self.ranks)}
        known = [(at, columns[rank]) for at, rank in enumerate(table.ranks) if rank in columns]
        found = np.zeros(table.counts.shape)
        here, there = [at for at, _ in known], [column for _, column in known]
        for row, line in enumerate(table.lines):
            if line.template in self.means:
                found[row, here] = np.array(self.means[line.template])[there]
        return found

    def known(self, table: Printed, windows: int) -> Marks:
        """Where the past is known: of ranks seen for so long, of templates followed or never printed by the rank."""
        followed = np.array([line.template in self.means for line in table.lines], dtype=np.bool_)
        found: Marks = (followed[:, None] | ~table.before) & np.isin(table.ranks, self.seen_for(windows))
        return found

    def seen_for(self, windows: int) -> list[int]:
        """Ranks that were taken in for so many windows."""
        return [rank for rank, seen in zip(self.ranks, self.seen, strict=True) if seen >= windows]

    def take(self, table: Printed, apart: Marks, weight: float, most: int) -> None:
        """Take a window's templates in, but for what stands apart; each window counts ``weight`` times the rest.

        Where there is no room for all templates, those that are printed least go.
        """
        self._widen(table.ranks)
        columns = np.searchsorted(self.ranks, table.ranks)
        row_of = {line.template: row for row, line in enumerate(table.lines)}
        seen = np.array(self.seen, dtype=np.int64)
        seen[columns] += 1
        self.seen = seen.tolist()
        share = np.maximum(weight, 1 / seen[columns])
        for name in sorted({*self.means, *row_of}):
            means = np.array(self.means.get(name, [0.0] * len(self.ranks)))
            row = row_of.get(name)
            counts = table.counts[row] if row is not None else np.zeros(len(columns), dtype=np.int64)
            kept = apart[row] if row is not None else np.zeros(len(columns), dtype=np.bool_)
            past = means[columns]
            means[columns] = np.round(np.where(kept, past, past + share * (counts - past)), 3)
            self.means[name] = means.tolist()
        self.windows += 1
        standing = {line.template for line, marks in zip(table.lines, apart, strict=True) if marks.any()}
        self._forget(max(1, min(most, MOST_CELLS // max(len(self.ranks), 1))), standing)

    def _widen(self, ranks: list[int]) -> None:
        wider = sorted({*self.ranks, *ranks})
        if wider == self.ranks:
            return
        places = np.searchsorted(wider, self.ranks)
        for name, means in self.means.items():
            room = np.zeros(len(wider))
            room[places] = means
            self.means[name] = room.tolist()
        seen = np.zeros(len(wider), dtype=np.int64)
        seen[places] = self.seen
        self.ranks, self.seen = wider, seen.tolist()

    def _forget(self, most: int, standing: set[str]) -> None:
        """Keep what stands apart at present, and of the rest what is printed most."""
        weight = {name: (name in standing, sum(means)) for name, means in self.means.items()}
        wanted = [name for name, (stands, mean) in weight.items() if stands or mean > 0]
        kept = sorted(sorted(wanted), key=lambda name: weight[name], reverse=True)[:most]
        self.means = {name: self.means[name] for name in sorted(kept)}
