"""One series of all ranks, step by step, each step once everybody has reported it who reports at all.

Windows part lines at any place, and ranks come, go, stand still, or begin anew from a checkpoint; nobody is waited for
without end, and what waits is bounded. Most ranks show the same after a reduction, so equal series are one. Of a rank
that reports a step several times, as once for each microbatch, one value counts: the middle one of the first window.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import isnan
from statistics import median, median_low

import msgspec
import numpy as np

from schemas.results import Series
from streams.series_table import Block, Reports

MOST_PENDING = 512
MOST_WAITING = 262_144
"""Values of ranks that wait for others, of one series."""
LARGEST = 1e300


class Step(msgspec.Struct, array_like=True):
    """A step that some ranks have not reported yet: the end of the window in which somebody did.

    ``told`` are values, the earliest time of each and the ranks whose it is, ``count`` of them in all.
    """

    end: int
    count: int = 0
    told: list[tuple[float, int, list[int]]] = []

    @property
    def value(self) -> float:
        """The median over ranks; what is so large that sums of it are endless is cut, since no snapshot holds these."""
        if len(self.told) == 1:
            value = self.told[0][0]
        else:
            value = median(value for value, _, ranks in self.told for _ in ranks)
        return max(-LARGEST, min(value, LARGEST))

    @property
    def time(self) -> int:
        """When it was first reported."""
        return min(time for _, time, _ in self.told)

    def above(self, limit: float) -> dict[int, int]:
        """The ranks whose value is above a limit, and when they reported it."""
        return {rank: time for value, time, ranks in self.told if value > limit for rank in ranks}

    def lag(self, rank: int) -> float | None:
        """How much later than most others a rank reported it (ns), null where nobody else did, or it did not."""
        own = [time for _, time, ranks in self.told if rank in ranks]
        others = [time for _, time, ranks in self.told for one in ranks if one != rank]
        return own[0] - median(others) if own and others else None


class Steps(msgspec.Struct, kw_only=True):
    """Steps that wait by iteration; each rank's latest iteration and the window's end in which it came."""

    pending: dict[int, Step] = {}
    reporters: dict[int, tuple[int, int]] = {}
    judged_to: int = -1

    def take(self, told: Reports, end: int) -> bool:
        """One window's reports; returns whether most ranks stand before what was judged, so that all begins anew."""
        groups = list(_together(told))
        latest: dict[int, tuple[int, int]] = {}
        for ranks, series, _ in groups:
            latest.update(dict.fromkeys(ranks, (series.iterations[-1], end)))
        self.reporters.update(latest)
        behind = sum(iteration < self.judged_to for iteration, _ in self.reporters.values())
        anew = 2 * behind > len(self.reporters)
        if anew:
            self.pending, self.reporters, self.judged_to = {}, latest, -1
        known = {at: {rank for _, _, ranks in step.told for rank in ranks} for at, step in self.pending.items()}
        for ranks, series, times in groups:
            for iteration, time, value in zip(series.iterations, times, series.values, strict=True):
                if value is not None and iteration > self.judged_to:
                    step = self.pending.get(iteration)
                    if step is None:
                        step = self.pending[iteration] = Step(end)
                    new = [rank for rank in ranks if rank not in known[iteration]] if iteration in known else ranks
                    if new:
                        step.count += len(new)
                        step.told.append((value, time, new))
        return anew

    def complete(self, since: int) -> Iterator[tuple[int, Step]]:
        """Steps in order that all have reported who did so after ``since``, or that have waited from before it.

        What fewer than half of them have reported tells nothing of the job and is left out.
        """
        for iteration in self._ready(since):
            step = self.pending.pop(iteration)
            if 2 * step.count >= len(self.reporters):
                self.judged_to = iteration
                yield iteration, step

    def _ready(self, since: int) -> list[int]:
        latest = set(self.reporters.values())
        if any(end <= since for _, end in latest):
            self.reporters = {rank: one for rank, one in self.reporters.items() if one[1] > since}
            latest = set(self.reporters.values())
        low = min((iteration for iteration, _ in latest), default=None)
        ready: list[int] = []
        held = 0
        for count, (at, step) in enumerate(sorted(self.pending.items(), reverse=True), 1):
            held += step.count
            full = count > MOST_PENDING or held > MOST_WAITING
            if low is None or at <= low or step.end <= since or full or ready:
                ready.append(at)
        return ready[::-1]


def _once(told: Reports) -> list[Block]:
    """Each rank once, and each of its iterations once: its middle value there, and the first time."""
    counts = Counter(rank for block in told.blocks for rank in block.ranks)
    twice = {rank for rank, count in counts.items() if count > 1}
    kept: list[Block] = []
    several: list[Block] = []
    for block in told.blocks:
        usual = len(set(block.steps)) == len(block.steps) and twice.isdisjoint(block.ranks)
        (kept if usual else several).append(block)
    ranks: dict[int, list[tuple[Block, int]]] = {}
    for block in several:
        for at, rank in enumerate(block.ranks):
            ranks.setdefault(rank, []).append((block, at))
    return kept + [one for rank, found in ranks.items() if (one := _of_one(rank, found)) is not None]


def _of_one(rank: int, found: list[tuple[Block, int]]) -> Block | None:
    """The block of one rank from all that it reports, if there is a number in it."""
    told: dict[int, list[tuple[float, int]]] = {}
    for block, at in found:
        times, values = block.times[at].tolist(), block.values[at].tolist()
        for iteration, time, value in zip(block.steps, times, values, strict=True):
            if not isnan(value):
                told.setdefault(iteration, []).append((value, time))
    if not told:
        return None
    iterations = sorted(told)
    return Block(
        name=found[0][0].name,
        unit=found[0][0].unit,
        ranks=[rank],
        places=np.array([min(int(block.places[at]) for block, at in found)]),
        iterations=np.array(iterations),
        times=np.array([[min(time for _, time in told[iteration]) for iteration in iterations]]),
        values=np.array([[median_low(value for value, _ in told[iteration]) for iteration in iterations]]),
        nonfinite={},
    )


def _together(told: Reports) -> Iterator[tuple[list[int], Series, list[int]]]:
    """The ranks that show the same, what it is, and the earliest time of each value."""
    blocks = _once(told)
    alike: dict[tuple[tuple[int, ...], bytes], dict[int, list[int]]] = {}
    for number, block in enumerate(blocks):
        steps = tuple(block.steps)
        # Nothing below zero is nothing.
        for at, values in enumerate(block.values + 0.0):
            alike.setdefault((steps, values.tobytes()), {}).setdefault(number, []).append(at)
    groups = []
    for found in alike.values():
        parts = [(blocks[number], at) for number, at in found.items()]
        who = sorted(
            (int(place), block.ranks[one])
            for block, at in parts
            for one, place in zip(at, block.places[at], strict=True)
        )
        times = np.min([block.times[at].min(axis=0) for block, at in parts], axis=0)
        series = parts[0][0].series(parts[0][1][0])
        groups.append((who[0][0], [rank for _, rank in who], series, times.tolist()))
    for _, ranks, series, earliest in sorted(groups, key=lambda one: one[0]):
        yield ranks, series, earliest
