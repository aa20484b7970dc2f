"""Waiting of a training process for its own loader of data: own time, though the wait looks like one for others.

A main thread that takes a batch waits in a lock until a worker or a thread of its loader has one. So a wait within a
loader's call, of the thread that runs the steps, is the loader's; unless a call of a collective library stands between,
as where one rank reads for all. A thread of the loader itself that waits is idle and holds nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator
from typing import Literal

Part = Literal["", "loader", "wait", "talk"]
Thread = tuple[str, str]
"""Process and thread."""
MOST_NOTED = 200_000
"""Calls of loaders, waits and calls of collective libraries; of a trace with more all waits are what they look like."""
Span = tuple[int, int, int]


class Loaders:
    """The calls of a trace that tell it, by thread; each is known by its place among all calls."""

    def __init__(self) -> None:
        self._noted = 0
        self._spans: dict[tuple[Thread, Part], list[Span]] = {}

    def take(self, part: Part, thread: Thread, start: int, end: int, at: int) -> None:
        """Take note of a call, ``[start, end)``."""
        self._noted += 1
        if self._noted <= MOST_NOTED:
            self._spans.setdefault((thread, part), []).append((start, end, at))

    def waits(self, of_steps: Collection[Thread]) -> Iterator[tuple[int, int | None]]:
        """Each wait within a loader's call, and that call; null for one of a thread that is not one ``of_steps``.

        Where no steps are annotated any thread may run them.
        """
        if self._noted > MOST_NOTED:
            return
        for thread, part in sorted(self._spans):
            if part == "wait":
                loaders, talks = (_outermost(self._spans.get((thread, one), [])) for one in ("loader", "talk"))
                for span in sorted(self._spans[thread, part]):
                    loader = _around(loaders, span)
                    if loader is not None and _around(talks, span) is None:
                        yield span[2], loader if thread in of_steps or not of_steps else None


def _outermost(spans: list[Span]) -> list[Span]:
    """The calls that lie in no other one, in order."""
    found: list[Span] = []
    for span in sorted(spans, key=lambda one: (one[0], -one[1], one[2])):
        if not found or span[0] >= found[-1][1]:
            found.append(span)
    return found


def _around(spans: list[Span], inner: Span) -> int | None:
    """The call that holds all of another one."""
    at = bisect_right(spans, inner[0], key=lambda one: one[0]) - 1
    return spans[at][2] if at >= 0 and inner[1] <= spans[at][1] else None
