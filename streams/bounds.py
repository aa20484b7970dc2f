"""How much is kept of what is told by name: whoever invents nodes or ranks must not fill the memory."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping
from typing import TypeVar

from schemas.identity import MOST_RANKS

MOST_NODES = 20_000
MOST_OTHERS = 32_768
"""Ranks of an attempt beyond its announced world, which may be unknown or not be all."""
MOST_AXES = 64
"""Axes of a layout; frameworks name fewer than ten."""

Named = TypeVar("Named", int, str)


def kept(told: Mapping[Named, int], first: Container[Named], most: int, *, newest: bool = False) -> dict[Named, int]:
    """At most so many of whom something was told, with its time: those of ``first``, then the earliest or the newest.

    >>> kept({"b": 5, "a": 7, "c": 6, "d": 5}, {"a"}, 2), kept({"b": 5, "a": 7, "c": 6}, (), 2, newest=True)
    ({'a': 7, 'b': 5}, {'a': 7, 'c': 6})
    """
    if len(told) <= most:
        return dict(told)
    turn = -1 if newest else 1
    in_order = sorted(told, key=lambda one: (one not in first, turn * told[one], one))
    return {one: told[one] for one in sorted(in_order[:most])}


def admitted(told: Collection[int], known: Collection[int], world: int, most: int = MOST_OTHERS) -> set[int]:
    """Which of the ranks of whom something was told are members: those ``known``, those of the announced ``world``.

    Of others the lowest, until there are ``most`` with those that are known; none that no job has.

    >>> sorted(admitted([7, 3, 10**9, -1, 9, 2, 8], {9}, world=3, most=3))
    [2, 3, 7, 9]
    """
    new = set(told).difference(known)
    if not new:
        return set(told)
    room = max(most - sum(rank >= world for rank in known), 0)
    others = sorted(rank for rank in new if world <= rank < MOST_RANKS)[:room]
    return {*others, *(rank for rank in told if rank not in new or 0 <= rank < world)}


def take_layout(known: dict[str, int], told: Mapping[str, int]) -> int:
    """Take sizes into a layout of at most so many axes; returns how many further ones were left out.

    >>> take_layout({}, {f"axis {number}": 2 for number in range(MOST_AXES + 3)})
    3
    """
    left_out = 0
    for axis, size in told.items():
        if axis in known or len(known) < MOST_AXES:
            known[axis] = size
        else:
            left_out += 1
    return left_out
