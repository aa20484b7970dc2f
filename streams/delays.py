"""Who delays whom: the slow classes of C4 for collectives, and the delay matrix of sends and receives.

An operation that nobody completes before all have joined takes each rank as long as it waits for the last one, and the
transfer: duration = (latest start - own start) + transfer, the transfer being what passes from the latest start to the
end (2505.05713). So the shortest duration is that of the rank which joined last, and about the transfer itself. Starts
by the ranks' own clocks would say the same, plus how far those are apart, so durations alone are looked at.

C4 (2406.04594) tells apart, for each group: the transfer takes long for all of its ranks, *communication slow*; all
others wait for one, *non-communication slow*. That one has to be the last in more than half of the operations, and more
often than chance would have it in a group of that size: a last rank that changes is workload, and one that is the last
in a quarter to a half of them is not told from it. Of the waits between senders and receivers a hot cell of the matrix
is a link, a hot row a slow sender, a hot column a slow receiver; anything else that is hot says nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import comb
from statistics import median
from typing import Literal

import msgspec

from streams.checks import require

_JOINT = ("allreduce", "allgather", "alltoall", "reducescatter", "barrier")
"""How operations are called that nobody completes before all have joined, in small letters and without ``_``."""


class DelayBounds(msgspec.Struct, frozen=True, kw_only=True):
    """What makes a delay matter.

    A rank is *the* last where the others take ``ratio`` times as long as it does, at least ``wait_ms`` longer, and the
    next to last waits for at least half as long as they do. It is so by its own where it is the last in more than
    ``share`` of the last ``operations``, with a ``chance`` below that. Transfers and cells of the matrix are slow above
    ``ratio`` times the usual and, from ``least`` values on, ``mads`` deviations above it; deviations have a ``floor``
    as a share of the usual.
    """

    ratio: float = 1.5
    wait_ms: float = 1.0
    share: float = 0.5
    chance: float = 1e-5
    operations: int = 20
    least: int = 8
    mads: float = 5.0
    floor: float = 0.01

    def __post_init__(self) -> None:
        require(self, above_0=("wait_ms", "operations", "least", "mads", "floor"), shares=("share", "chance"))
        if self.ratio <= 1:
            raise ValueError(f"ratio must be above 1, not {self.ratio}")


class Joined(msgspec.Struct, frozen=True, array_like=True):
    """One operation: who joined last, -1 where nobody clearly did; durations (ns) of that one and of most others."""

    sequence: int
    time: int
    ranks: int
    last: int
    shortest: int
    typical: int


SlowKind = Literal["joins_last", "last_rotates", "slow_transfer"]


class Slow(msgspec.Struct, frozen=True):
    """What is slow about a group: ``share`` of operations, ``usual`` and ``now`` are durations in ns.

    ``rank`` is who joins last, null otherwise; ``since`` is the time of the first operation that shows it.
    """

    kind: SlowKind
    rank: int | None
    share: float
    usual: float
    now: float
    since: int


def waits_for_all(operation: str) -> bool:
    """Whether an operation is one that nobody completes before all have joined, by NCCL's name or by PyTorch's."""
    return operation.replace("_", "").lower().startswith(_JOINT)


def joined(sequence: int, time: int, durations: Mapping[int, int], bounds: DelayBounds) -> Joined | None:
    """What the durations (ns, by rank) of one operation show; null where fewer than two ranks are known."""
    if len(durations) < 2:
        return None
    (shortest, last), *others = sorted((taken, rank) for rank, taken in durations.items())
    typical = int(median(taken for taken, _ in others))
    wait = typical - shortest
    clear = (
        typical >= bounds.ratio * shortest
        and wait >= bounds.wait_ms * 1_000_000
        and others[0][0] - shortest >= wait / 2
    )
    return Joined(sequence, time, len(durations), last if clear else -1, shortest, typical)


def slow_of(history: Sequence[Joined], bounds: DelayBounds) -> Slow | None:
    """What the operations of one kind and size in one group, in order, show of late; null where that is nothing.

    A rank for which the others wait comes first: the transfer of those operations is that of a rank in a hurry.
    """
    recent = list(history[-bounds.operations :])
    if len(recent) < bounds.operations:
        return None
    return _late(recent, bounds) or _transfer(history[: -bounds.operations], recent, bounds)


def _late(recent: list[Joined], bounds: DelayBounds) -> Slow | None:
    waited = [one for one in recent if one.last >= 0]
    if len(waited) <= bounds.share * len(recent):
        return None
    counts = {rank: sum(one.last == rank for one in waited) for rank in sorted({one.last for one in waited})}
    rank = max(counts, key=lambda one: (counts[one], -one))
    own = [one for one in waited if one.last == rank]
    ranks = max(one.ranks for one in recent)
    share = counts[rank] / len(recent)
    if share > bounds.share and _by_chance(counts[rank], len(recent), ranks) < bounds.chance:
        return _told("joins_last", rank, share, own)
    rotates = len(counts) > 2 and share <= bounds.share / 2
    return _told("last_rotates", None, len(waited) / len(recent), waited) if rotates else None


def _told(kind: SlowKind, rank: int | None, share: float, found: list[Joined]) -> Slow:
    usual, now = median(one.shortest for one in found), median(one.typical for one in found)
    return Slow(kind, rank, share, usual, now, found[0].time)


def _by_chance(count: int, of: int, ranks: int) -> float:
    """How probable it is that any one of ``ranks`` is the last so often where each is as often as the others."""
    one = 1 / ranks
    tail = sum(comb(of, hits) * one**hits * (1 - one) ** (of - hits) for hits in range(count, of + 1))
    return min(1.0, ranks * tail)


def _transfer(before: Sequence[Joined], recent: list[Joined], bounds: DelayBounds) -> Slow | None:
    """Whether the transfer takes all ranks longer than it took this group before."""
    if len(before) < bounds.operations:
        return None
    past = [one.shortest for one in before]
    usual = median(past)
    spread = max(median(abs(one - usual) for one in past), bounds.floor * usual)
    limit = max(bounds.ratio * usual, usual + bounds.mads * spread)
    slow = [one for one in recent if one.shortest > limit]
    now = median(one.shortest for one in recent)
    if now <= limit or now - usual < bounds.wait_ms * 1_000_000:
        return None
    return Slow("slow_transfer", None, len(slow) / len(recent), usual, now, slow[0].time)


Cell = tuple[int, int]
"""Sender and receiver."""

HotKind = Literal["hot_link", "slow_sender", "slow_receiver", "hot_pair"]


class Hot(msgspec.Struct, frozen=True):
    """What stands out of a delay matrix, with the cells that show it and the usual and the least hot wait (ns).

    A *pair* is a hot cell whose sender or receiver deals with nobody else, so that it may be either or the link.
    """

    kind: HotKind
    cells: list[Cell]
    usual: float
    now: float


def hot_of(waits: Mapping[Cell, float], bounds: DelayBounds) -> Hot | None:
    """What stands out of a matrix of waits (ns) by sender and receiver; null where that is nothing or ambiguous."""
    if len(waits) < 3:
        return None
    usual = median(waits.values())
    limit = _limit(usual, waits, bounds)
    least = bounds.wait_ms * 1_000_000
    hot = sorted(cell for cell, wait in waits.items() if wait > limit and wait - usual >= least)
    if not hot or 2 * len(hot) >= len(waits):
        return None
    kind = _kind_of(hot, waits)
    return None if kind is None else Hot(kind, hot, usual, min(waits[cell] for cell in hot))


def _limit(usual: float, waits: Mapping[Cell, float], bounds: DelayBounds) -> float:
    """Above what a wait (ns) is hot; of few waits the deviation says nothing."""
    if len(waits) < bounds.least:
        return bounds.ratio * usual
    spread = median(abs(one - usual) for one in waits.values())
    return max(bounds.ratio * usual, usual + bounds.mads * max(spread, bounds.floor * usual))


def _kind_of(hot: list[Cell], waits: Mapping[Cell, float]) -> HotKind | None:
    senders, receivers = {sender for sender, _ in hot}, {receiver for _, receiver in hot}
    cool = waits.keys() - set(hot)
    if len(hot) == 1:
        ((sender, receiver),) = hot
        told = any(cell[0] == sender for cell in cool) and any(cell[1] == receiver for cell in cool)
        return "hot_link" if told else "hot_pair"
    if len(senders) == 1 and not any(cell[0] in senders for cell in cool):
        return "slow_sender" if receivers <= {cell[1] for cell in cool} else None
    if len(receivers) == 1 and not any(cell[1] in receivers for cell in cool):
        return "slow_receiver" if senders <= {cell[0] for cell in cool} else None
    return None
