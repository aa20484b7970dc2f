"""Who printed what in one window of an attempt: a table of signatures by ranks, made once for all detectors of logs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from schemas.results import SignatureCount, Window

LONGEST_TEXT = 120
Table = NDArray[np.int64]
Marks = NDArray[np.bool_]


class Line(msgspec.Struct, frozen=True):
    """One row: a signature, or the first of a template; ``first`` and ``last`` are times in the window (ns)."""

    signature: str
    template: str
    chatter: str
    text: str
    first: int
    last: int


class Printed(msgspec.Struct, frozen=True, kw_only=True):
    """Lines in rows, ranks in columns, both in canonical order; a rank without a window is there with zeros.

    ``counts`` are lines, ``before`` whether the rank had printed such in an earlier window. ``printers`` has, for each
    kind of chatter in the window, who ever printed any.
    """

    ranks: list[int]
    lines: list[Line]
    counts: Table
    before: Marks
    printers: dict[str, list[int]] = {}

    def by_template(self) -> Printed:
        """The same with one row for each template."""
        kept: dict[str, Line] = {}
        for line in self.lines:
            known = kept.setdefault(line.template, line)
            first, last = min(known.first, line.first), max(known.last, line.last)
            kept[line.template] = msgspec.structs.replace(known, first=first, last=last)
        names = sorted(kept)
        at = {name: row for row, name in enumerate(names)}
        rows = np.array([at[line.template] for line in self.lines], dtype=np.int64)
        counts = np.zeros((len(names), len(self.ranks)), dtype=np.int64)
        before = np.zeros(counts.shape, dtype=np.bool_)
        np.add.at(counts, rows, self.counts)
        np.logical_or.at(before, rows, self.before)
        return msgspec.structs.replace(self, lines=[kept[name] for name in names], counts=counts, before=before)

    def of(self, ranks: Iterable[int]) -> Printed:
        """The columns of these ranks, ascending; ranks that are not there are left out."""
        wanted = set(ranks)
        columns = [column for column, rank in enumerate(self.ranks) if rank in wanted]
        return msgspec.structs.replace(
            self,
            ranks=[self.ranks[column] for column in columns],
            counts=self.counts[:, columns],
            before=self.before[:, columns],
        )


def printed_by(
    summaries: Iterable[Window],
    members: Iterable[int],
    template_of: Callable[[str], str],
    ranks_before: Callable[[str], list[int]],
    printers: Mapping[str, list[int]],
) -> Printed:
    """The table of a window's summaries, and of members without one.

    Signatures without a template are left out. ``printers`` are those of each kind of chatter so far.
    """
    ranked = [(summary.identity.rank, summary) for summary in summaries if summary.identity.rank is not None]
    ranks = sorted({*members, *(rank for rank, _ in ranked)})
    column = {rank: index for index, rank in enumerate(ranks)}
    places: dict[str, int | None] = {}
    shown: list[SignatureCount] = []
    templates: list[str] = []
    # A row, a column, a count and two times for each cell: one pass over all that all ranks printed.
    cells: list[int] = []
    for rank, summary in ranked:
        here = column[rank]
        for one in summary.signatures:
            if one.signature not in places:
                template = template_of(one.signature)
                places[one.signature] = len(shown) if template else None
                if template:
                    shown.append(one)
                    templates.append(template)
            place = places[one.signature]
            if place is not None:
                cells += (place, here, one.count, one.first, one.last)
    order = sorted(range(len(shown)), key=lambda place: shown[place].signature)
    counts, first, last = _filled(cells, (len(shown), len(ranks)))
    before = [np.isin(ranks, ranks_before(shown[place].signature)) for place in order]
    return Printed(
        ranks=ranks,
        lines=[
            Line(
                shown[place].signature,
                templates[place],
                shown[place].chatter,
                shown[place].masked[:LONGEST_TEXT],
                int(first[place]),
                int(last[place]),
            )
            for place in order
        ],
        counts=counts[order],
        before=np.array(before, dtype=np.bool_).reshape(counts.shape),
        printers=_printers(shown, counts, ranks, printers),
    )


def _filled(cells: list[int], shape: tuple[int, int]) -> tuple[Table, NDArray[np.int64], NDArray[np.int64]]:
    """Counts, and when each row was first and last printed (ns)."""
    table = np.array(cells, dtype=np.int64).reshape(-1, 5)
    counts = np.zeros(shape, dtype=np.int64)
    first = np.full(shape[0], np.iinfo(np.int64).max)
    last = np.full(shape[0], np.iinfo(np.int64).min)
    np.add.at(counts, (table[:, 0], table[:, 1]), table[:, 2])
    np.minimum.at(first, table[:, 0], table[:, 3])
    np.maximum.at(last, table[:, 0], table[:, 4])
    return counts, first, last


def _printers(
    shown: list[SignatureCount], counts: Table, ranks: list[int], known: Mapping[str, list[int]]
) -> dict[str, list[int]]:
    """Of each kind of chatter in the window, who printed any, now or before."""
    found: dict[str, set[int]] = {}
    for place, one in enumerate(shown):
        if one.chatter:
            now = [ranks[index] for index in np.flatnonzero(counts[place]).tolist()]
            found.setdefault(one.chatter, set(known.get(one.chatter, []))).update(now)
    return {kind: sorted(found[kind]) for kind in sorted(found)}


NOTHING_PRINTED = printed_by([], [], lambda _: "", lambda _: [], {})
