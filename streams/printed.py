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
    """One row: a signature, or the first of a template; ``first`` is when it was first printed in the window (ns)."""

    signature: str
    template: str
    chatter: str
    text: str
    first: int


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
            kept[line.template] = msgspec.structs.replace(known, first=min(known.first, line.first))
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
    counted = [(summary.identity.rank, one) for summary in summaries for one in summary.signatures]
    known = [(rank, one) for rank, one in counted if rank is not None and template_of(one.signature)]
    ranks = sorted({*members, *(rank for rank, _ in known)})
    column = {rank: index for index, rank in enumerate(ranks)}
    shown: dict[str, SignatureCount] = {}
    for _, one in known:
        if one.signature not in shown or one.first < shown[one.signature].first:
            shown[one.signature] = one
    row = {signature: index for index, signature in enumerate(sorted(shown))}
    counts = np.zeros((len(row), len(ranks)), dtype=np.int64)
    kinds: dict[str, set[int]] = {}
    for rank, one in known:
        counts[row[one.signature], column[rank]] += one.count
        if one.chatter:
            kinds.setdefault(one.chatter, set(printers.get(one.chatter, []))).add(rank)
    before = [np.isin(ranks, ranks_before(signature)) for signature in row]
    return Printed(
        ranks=ranks,
        lines=[
            Line(signature, template_of(signature), one.chatter, one.masked[:LONGEST_TEXT], one.first)
            for signature, one in sorted(shown.items())
        ],
        counts=counts,
        before=np.array(before, dtype=np.bool_).reshape(counts.shape),
        printers={kind: sorted(kinds[kind]) for kind in sorted(kinds)},
    )


NOTHING_PRINTED = printed_by([], [], lambda _: "", lambda _: [], {})
