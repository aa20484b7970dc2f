"""How much is kept of what is told by name: whoever invents nodes or ranks must not fill the memory."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TypeVar

MOST_NODES = 20_000

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
