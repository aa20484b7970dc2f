"""When and among whom lines can be contrasted, and the statistics for it; shared by the detectors of logs.

Lines tell ranks apart only while the job trains: at the start each rank has something else to say, once ranks fail or
leave the lines show that, and in a checkpoint or an evaluation a few print for all. What a rank does not print means
something only where its own producer is known to live.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from schemas.results import Symptom
from streams.attempt_window import AttemptWindow
from streams.lines.phases import TRAIN
from streams.printed import Marks, Printed, Table
from streams.stall import SECOND, StallRule, over, stall_of
from streams.view import AttemptView

LIMITED = "limited"
FAILING = ("candidate", "cascade")
LEFT_OUT = frozenset({"signatures", "signatures too large"})
"""For these reasons a summary does not have all signatures that its rank printed."""


class Calm(msgspec.Struct, kw_only=True):
    """Whether nothing has failed, or the job has gone on since; ``trouble`` is when something last failed or ended."""

    trouble: int | None = None

    def holds(self, view: AttemptView, window: AttemptWindow) -> bool:
        """Take one window in; whether its lines show ranks at work."""
        failed = [
            fatal.time
            for summary in window.summaries
            for fatal in summary.fatals
            if summary.identity.rank is not None and fatal.role in FAILING
        ]
        failed += [end.time for _, end in window.exits]
        if failed:
            self.trouble = max([*failed, self.trouble or 0])
        if failed or window.unavailable or over(view):
            return False
        return self.trouble is None or (view.clock.time or 0) > self.trouble + 2 * max(view.clock.step_ns or 0, SECOND)


def warming_up(view: AttemptView, window: AttemptWindow, windows: int) -> bool:
    """Whether the window lies in the first so many since training began, or before."""
    began = view.clock.began
    return began is None or window.start < began + windows * (window.end - window.start)


def trains(view: AttemptView) -> bool:
    """Whether the job has done an iteration and is in no phase in which few print for all."""
    return view.clock.began is not None and view.phase == TRAIN


def observed(view: AttemptView, window: AttemptWindow) -> list[int]:
    """Ranks of which it is known what they printed in the whole window, be it nothing; ascending.

    A rank that came or left in it, whose lines were cut or of which no line was ever seen is not among them; nor is
    one that shows nothing while its node's producer is silent as well.
    """
    return window.once("observed", view, lambda: _observed(view, window))


def _observed(view: AttemptView, window: AttemptWindow) -> list[int]:
    cut = {summary.identity.rank for summary in window.summaries if LEFT_OUT & summary.dropped.keys()}
    heard = {summary.identity.rank for summary in window.summaries}
    cut |= {
        rank
        for line, counts in zip(window.printed.lines, window.printed.counts, strict=True)
        if line.chatter == LIMITED
        for rank in np.array(window.printed.ranks)[counts > 0].tolist()
    }
    return [
        rank
        for rank, member in sorted(view.members.items())
        if rank not in cut
        and member.first_seen < window.start
        and member.exit is None
        and member.requested is None
        and member.finished is None
        and member.zombie is None
        and member.last_log is not None
        and (rank in heard or view.node_life.get(view.node_of(rank), 0) > window.start)
    ]


def classes(table: Printed) -> list[Printed]:
    """The table's rows by kind of chatter, each with those ranks only that print that kind.

    So rank 0's progress bar is held against those that print one, and is no finding where none does.
    """
    found = []
    for kind in sorted({line.chatter for line in table.lines} - {LIMITED}):
        rows = [row for row, line in enumerate(table.lines) if line.chatter == kind]
        part = msgspec.structs.replace(
            table, lines=[table.lines[row] for row in rows], counts=table.counts[rows], before=table.before[rows]
        )
        found.append(part.of(table.printers.get(kind, [])) if kind else part)
    return found


def own_lines(table: Printed) -> Printed:
    """The table without chatter."""
    rows = [row for row, line in enumerate(table.lines) if not line.chatter]
    lines = [table.lines[row] for row in rows]
    return msgspec.structs.replace(table, lines=lines, counts=table.counts[rows], before=table.before[rows])


def printing_apart(group: Printed, few: float) -> list[int]:
    """Who printed a line in the window that only a ``few`` of the group print, chatter aside."""
    printing = own_lines(group).counts > 0
    apart = printing & (printing.sum(axis=1, keepdims=True) <= few_of(len(group.ranks), few))
    return [group.ranks[column] for column in np.flatnonzero(apart.any(axis=0))]


def speakers(groups: Iterable[list[int]], printers: Iterable[int]) -> set[int]:
    """Who may print for others: rank 0, the first and the last of each group, as frameworks have it, and ``printers``.

    What these alone print says nothing of themselves.
    """
    return {0, *printers, *(rank for group in groups if group for rank in (group[0], group[-1]))}


def few_of(ranks: int, share: float) -> int:
    """How many of so many ranks are few."""
    return max(1, int(share * ranks))


def typical(counts: Table, few: int) -> Table:
    """For each row the count that all but ``few`` ranks do not exceed."""
    return np.sort(counts, axis=1)[:, max(counts.shape[1] - few - 1, 0), None]


def above_peers(counts: Table, few: int, ratio: float, surprise: float) -> Marks:
    """Which of the ``few`` with the most printed a row's lines far more often than all others.

    ``surprise`` is the least G (the likelihood ratio of a rank's count against the sum of its own and the others', all
    being observed for the same time, with Yates's correction for continuity); and the count is over ``ratio`` times
    what is typical.
    """
    others = max(counts.shape[1] - few, 0)
    total = counts + np.sort(counts, axis=1)[:, :others].sum(axis=1, keepdims=True).astype(np.float64)
    expected = total / (others + 1)
    own = counts - 0.5
    rest = total - own
    with np.errstate(divide="ignore", invalid="ignore"):
        g = 2 * (own * np.log(own / expected) + rest * np.log(rest / (total - expected)))
    high: Marks = (own > expected) & (np.nan_to_num(g, nan=0.0) >= surprise)
    high &= counts > ratio * typical(counts, few)
    return high


def lacking(counts: Table, used: Marks, share: float, least: int) -> Marks:
    """Who printed none of a row's lines but ``used`` to, while ``share`` of the others do, ``least`` on the median."""
    printing = (counts > 0).sum(axis=1, keepdims=True)
    common = printing >= share * (counts.shape[1] - 1)
    often = np.median(counts, axis=1, keepdims=True) >= least if counts.shape[1] else np.zeros((len(counts), 1), bool)
    found: Marks = (counts == 0) & used & common & often
    return found


def symptom_now(view: AttemptView, window: AttemptWindow) -> Symptom:
    """What a fault would show as at present: lines have no symptom of their own."""
    return "hang" if stall_of(view, window, StallRule()) is not None else "slowdown"
