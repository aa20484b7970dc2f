"""The ranks of a process group in few numbers: runs of equal steps, as parallel layouts make them.

Each member of a group tells all of its members: of ten thousand ranks a hundred million numbers, and none that the
others have not told.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

Run = tuple[int, int, int]
"""First rank, step, and how many."""


def runs_of(ranks: Sequence[int]) -> list[Run]:
    """The ranks in their order, as runs that are as long as can be from the first on."""
    if (
        len(ranks) > 1
        and (step := ranks[1] - ranks[0])
        and ranks == [*range(ranks[0], ranks[0] + step * len(ranks), step)]
    ):
        # As nearly all groups are; a look at one rank after the other takes ten times as long.
        return [(ranks[0], step, len(ranks))]
    runs: list[Run] = []
    at = 0
    while at < len(ranks):
        end = at + 1
        step = ranks[end] - ranks[at] if end < len(ranks) else 1
        while end < len(ranks) and ranks[end] - ranks[end - 1] == step:
            end += 1
        runs.append((ranks[at], step, end - at))
        at = end
    return runs


class Members(Sequence[int]):
    """The ranks of these runs; asking for one takes as long as there are runs."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self._runs = [
            range(first, first + step * count, step) if step else [first] * count for first, step, count in runs
        ]

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    @overload
    def __getitem__(self, at: int) -> int: ...
    @overload
    def __getitem__(self, at: slice) -> list[int]: ...
    def __getitem__(self, at: int | slice) -> int | list[int]:
        if isinstance(at, slice):
            return list(self)[at]
        place = at + len(self) if at < 0 else at
        for run in self._runs:
            if 0 <= place < len(run):
                return run[place]
            place -= len(run)
        raise IndexError(at)

    def __contains__(self, rank: object) -> bool:
        return any(rank in run for run in self._runs)

    def __iter__(self) -> Iterator[int]:
        for run in self._runs:
            yield from run
