"""The common sequence of a group's lines, and how far each rank has come in it.

A loop's turn is one iteration: each of its lines once, in order. Where nearly all turns of nearly all ranks have the
same lines in the same order, that is the common order, and a rank stands at (iteration, lines of it done). Where they
differ by design there is none, and nothing is said. Before the first iteration there is one turn, not yet over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import msgspec

COMMON = 0.9
LEAST_TURNS = 2

Pair = tuple[int, int | None]
"""A line by its number, and the iteration in which it was printed."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """``order`` are the lines of a turn; ``at`` is by rank, those apart by design left out."""

    order: tuple[int, ...]
    at: dict[int, tuple[int, int]]


def in_loop(tails: Mapping[int, list[Pair]]) -> Standing | None:
    """Where ranks stand in their loop, or null where there is no common one."""
    turns = {rank: _turns(tail) for rank, tail in tails.items()}
    # The first turn may be cut, the last is not over.
    whole = {rank: [lines for _, lines in found[1:-1]] for rank, found in turns.items()}
    whole = {rank: found for rank, found in whole.items() if len(found) >= LEAST_TURNS}
    all_turns = [lines for found in whole.values() for lines in found]
    seen = Counter(line for lines in all_turns for line in set(lines))
    loop = {line for line, count in seen.items() if count >= COMMON * len(all_turns)}
    orders = {rank: [_only(lines, loop) for lines in found] for rank, found in whole.items()}
    order = _most([one for found in orders.values() for one in found], COMMON)
    if not order:
        return None
    at = {}
    for rank, found in orders.items():
        iteration, current = turns[rank][-1]
        done = _only(current, loop)
        if set(found) == {order} and done == order[: len(done)]:
            at[rank] = (iteration, len(done))
    return Standing(order=order, at=at)


def at_start(tails: Mapping[int, list[Pair]]) -> Standing | None:
    """Where ranks stand in what all print before the first iteration, or null where most have an order of their own."""
    lines = {rank: list(dict.fromkeys(line for line, _ in tail)) for rank, tail in tails.items()}
    seen = Counter(line for found in lines.values() for line in found)
    common = {line for line, count in seen.items() if count >= COMMON * (len(lines) - 1)}
    done = {rank: _only(found, common) for rank, found in lines.items()}
    order = _most(list(done.values()), 0.5)
    if not order:
        return None
    at = {rank: (0, len(found)) for rank, found in done.items() if found == order[: len(found)]}
    return Standing(order=order, at=at)


def front_of(standing: Standing) -> tuple[int, int] | None:
    """Where more than half of the ranks stand, or null where no place has so many."""
    counted = Counter(standing.at.values())
    place, count = max(counted.items(), key=lambda item: (item[1], item[0]), default=((0, 0), 0))
    return place if 2 * count > len(standing.at) else None


def _turns(tail: list[Pair]) -> list[tuple[int, list[int]]]:
    """Iterations in the order in which they came, with their lines; lines of none are left out."""
    turns: list[tuple[int, list[int]]] = []
    for line, iteration in tail:
        if iteration is None:
            continue
        if not turns or turns[-1][0] != iteration:
            turns.append((iteration, []))
        turns[-1][1].append(line)
    return turns


def _only(lines: list[int], wanted: set[int]) -> tuple[int, ...]:
    return tuple(line for line in lines if line in wanted)


def _most(orders: list[tuple[int, ...]], share: float) -> tuple[int, ...]:
    """The order that more than a share of all are, or nothing."""
    counted = Counter(orders)
    order, count = max(counted.items(), key=lambda item: (item[1], item[0]), default=((), 0))
    return order if count > 0.5 * len(orders) and count >= share * len(orders) else ()
