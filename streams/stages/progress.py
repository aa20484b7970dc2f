"""How far the partitions of the raw topics have come, and where it was decided to go on without one.

All of it is a fact of the windows partition: a skip counts for the windows between what its partition had reported
before and the skip's end, and a summary that stands behind the skip of its window comes too late, whoever reads when.
"""

from __future__ import annotations

from collections import deque

import msgspec

from schemas.results import Progress


class Skip(msgspec.Struct, frozen=True, array_like=True):
    """Windows of ``partition`` that end in ``(after, end]`` were closed without it."""

    partition: int
    after: int
    end: int


class ProgressState(msgspec.Struct, frozen=True, kw_only=True):
    """What was true at the offset to read on from; ``told`` is null where nobody had skipped anything."""

    reached: dict[int, int] = {}
    skips: list[Skip] = []
    told: dict[int, int] | None = None


class PartitionProgress:
    """Reports of ``partitions`` partition numbers."""

    def __init__(self, partitions: int, state: ProgressState | None = None) -> None:
        state = state or ProgressState()
        self._partitions = partitions
        self._reached = dict(state.reached)
        self._skips = [(-1, skip) for skip in state.skips]
        self._reached_before = dict(state.reached)
        self._told = dict(state.reached if state.told is None else state.told)
        self._told_before = dict(self._told)
        self._reports: deque[tuple[int, Progress]] = deque()
        self._low = self._lowest()

    def report(self, offset: int, progress: Progress) -> None:
        """Take in the report that stands at ``offset``."""
        before = self._reached.get(progress.partition, -1)
        if progress.skipped and progress.end > before:
            self._skips.append((offset, Skip(progress.partition, before, progress.end)))
        self._reached[progress.partition] = max(progress.end, before)
        if not progress.skipped:
            _raise(self._told, progress)
        self._reports.append((offset, progress))
        self._low = self._lowest()

    @property
    def low(self) -> int | None:
        """The end up to which all partitions have reported, or null while one has not."""
        return self._low

    @property
    def waited_for(self) -> dict[int, int | None]:
        """The partitions that all others wait for, with how far they have reported, if at all; from any thread."""
        reached = self._reached.copy()
        unheard = [number for number in range(self._partitions) if number not in reached]
        if unheard or not reached:
            return dict.fromkeys(unheard) if reached else {}
        low = min(reached.values())
        return {number: low for number in sorted(reached) if reached[number] == low < max(reached.values())}

    def is_through(self, end: int, closed: int | None) -> bool:
        """Whether all have reported the window that ends at ``end``, or the stage is through it: up to ``closed``."""
        return (self._low is not None and end <= self._low) or (closed is not None and end <= closed)

    def has_told(self, partition: int, end: int) -> bool:
        """Whether that partition itself has reported the window that ends at ``end``, and nobody in its place."""
        return self._told.get(partition, -1) >= end

    def gone_by(self, partition: int, end: int) -> bool:
        """Whether only somebody in that partition's place has reported the window so far, however long ago."""
        return self._told.get(partition, -1) < end <= self._reached.get(partition, -1)

    def _lowest(self) -> int | None:
        return min(self._reached.values()) if len(self._reached) >= self._partitions else None

    def skipped(self, end: int) -> bool:
        """Whether some partition was left out of the window that ends at ``end``."""
        return any(skip.after < end <= skip.end for _, skip in self._skips)

    def skipped_by_partition(self, end: int) -> dict[int, bool]:
        """Of each partition that has reported whether it was left out of the window that ends at ``end``."""
        out = {skip.partition for _, skip in self._skips if skip.after < end <= skip.end}
        return {partition: partition in out for partition in sorted(self._reached)}

    def behind_skip(self, partition: int, end: int) -> bool:
        """Whether a summary of that partition and window now stands behind the skip of its window."""
        return bool(self._skips) and any(
            skip.partition == partition and skip.after < end <= skip.end for _, skip in self._skips
        )

    def checkpoint(self, offset: int, closed: int) -> ProgressState:
        """What was true at ``offset``, which only grows; what matters no longer is forgotten."""
        reached, told = self._reached_before, self._told_before
        while self._reports and self._reports[0][0] < offset:
            _, progress = self._reports.popleft()
            _raise(reached, progress)
            if not progress.skipped:
                _raise(told, progress)
        self._skips = [(at, skip) for at, skip in self._skips if skip.end > closed]
        skips = [skip for at, skip in self._skips if at < offset]
        in_order = dict(sorted(told.items()))
        same = told == reached
        return ProgressState(reached=dict(sorted(reached.items())), skips=skips, told=None if same else in_order)


def _raise(ends: dict[int, int], progress: Progress) -> None:
    ends[progress.partition] = max(progress.end, ends.get(progress.partition, progress.end))
