"""How far an attempt has come: the iterations that its ranks report, and when one last moved on."""

from __future__ import annotations

from statistics import median

import msgspec
import numpy as np
from numpy.typing import NDArray

from schemas.packs import SeriesPack, whole_numbers
from schemas.results import Window
from streams.falls import MOST_FALLS, Fall, fall_of, judged
from streams.lines.names import STEP_TIME, in_common
from streams.packing import pack_of

TIMED_NS = 5_000_000_000
"""A line whose time is known less well than this tells that an iteration came, and not when."""
MOST_TOLD = 1_000
MOST_STEP_S = 86_400.0
"""A printed duration beyond this is not believed."""


class ProgressClock(msgspec.Struct, kw_only=True):
    """How far the attempt has come, and when a rank last moved on to another iteration.

    Any move counts, not only a higher number: steps are counted anew each epoch, and a rollback goes back. ``reached``
    is each rank's latest iteration, ``stride`` how many iterations the latest report told of.

    A line that prints no time has that of one before it: the earliest that it may be. ``timed`` is the latest iteration
    of which it is known when it came, ``untimed`` that of which it is not. ``told`` counts the iterations that were
    told of, as far as anybody asks. ``pause`` is for how long it once did not move on before it did (ns). ``falls`` are
    the latest places at which numbers fell back, ``started`` the end of the last window in which a rank that had
    iterated said how many there are, or which process it is, as ranks do when they start (ns).
    """

    iteration: int | None = None
    time: int | None = None
    began: int | None = None
    total: int | None = None
    steps: list[int] = []
    reached: dict[int, int] = {}
    stride: int = 1
    timed: int | None = None
    untimed: int | None = None
    told: int = 0
    pause: int = 0
    falls: list[Fall] = []
    started: int | None = None

    def __post_init__(self) -> None:
        # A clock that was written down before iterations were counted has seen as many as it knows durations of.
        self.told = max(self.told, len(self.steps))

    @property
    def is_timed(self) -> bool:
        """Whether the time of the latest iteration is known.

        Where those without a time go no further than the next report that would have one, they show nothing else.
        """
        return self.untimed is None or (self.timed is not None and self.untimed < self.timed + self.stride)

    @property
    def step_ns(self) -> int | None:
        """Median duration of an iteration over the last windows, or null before two are known."""
        return int(median(self.steps)) if self.steps else None

    @property
    def steps_done(self) -> int:
        """How many iterations it has done at least, by the time that passed: their numbers may begin anew."""
        if self.time is None or self.began is None or self.step_ns is None:
            return 0
        return (self.time - self.began) // self.step_ns

    def advance(self, windows: list[Window]) -> None:
        """Take in one window of all ranks, in any order."""
        before = (self.iteration, self.time)
        moved = [window for window in windows if self._moved(window)]
        back = [window for window in moved if self._went_back(window)]
        self._note_fall(windows, moved)
        for window in moved:
            self.time = max(self.time or 0, window.iteration_time or 0)
        if before[1] is not None and self.time is not None:
            self.pause = max(self.pause, self.time - before[1])
        for window in windows:
            if window.identity.rank is not None and window.iteration is not None:
                self.reached[window.identity.rank] = window.iteration
            if window.total_iterations is not None:
                self.total = window.total_iterations
        told = sorted(told_of(moved))
        self._stride(told, back)
        if moved and self.told < MOST_TOLD:
            self.told = min(self.told + max(len(told), 1) * max(self.stride, 1), MOST_TOLD)
        self._times(moved, back)
        numbers = [window.iteration for window in back or moved if window.iteration is not None]
        known = [] if back or self.iteration is None else [self.iteration]
        self.iteration = max([*numbers, *known], default=self.iteration)
        self.began = self.time if self.began is None else self.began
        durations = steps_of(windows)
        if not durations and not back:
            durations = self._since(*before)
        if durations:
            self.steps = [*self.steps, int(median(durations))][-20:]

    def _note_fall(self, windows: list[Window], moved: list[Window]) -> None:
        """Remember whether numbers fell back in this window, and who has said that it starts."""
        starts = [one.end for one in windows if one.identity.rank in self.reached and (one.world_size or one.announced)]
        self.started = max([*starts, self.started or 0]) or None
        if self.iteration is None:
            return
        fall = fall_of(moved, self.reached, self.iteration, self.time, self.stride)
        # In the window of a fall a rank's latest iteration is its highest, so it falls in the next one once more.
        if fall is not None and not (self.falls and fall.since < self.falls[-1].time):
            self.falls = [*self.falls, judged(fall, self.falls, self.started, self.stride)][-MOST_FALLS:]

    def _stride(self, told: list[int], back: list[Window]) -> None:
        """How far the last two numbers that any rank reports lie apart."""
        if back or not told:
            return
        before = [self.iteration] if self.iteration is not None and self.iteration < told[0] else []
        chain = [*before, *told]
        if len(chain) > 1:
            self.stride = chain[-1] - chain[-2]

    def _times(self, moved: list[Window], back: list[Window]) -> None:
        """Of which iterations it is known when they came; where they are counted anew, of those alone."""
        if back:
            self.timed = self.untimed = None
        for window in back or moved:
            if window.iteration is None:
                continue
            if window.iteration_within_ns > TIMED_NS:
                self.untimed = max(window.iteration, self.untimed or 0)
            else:
                self.timed = max(window.iteration, self.timed or 0)

    def _since(self, iteration: int | None, time: int | None) -> list[int]:
        """How long an iteration took since an earlier state of the clock, where no window holds two of them."""
        if None in (iteration, time, self.iteration, self.time):
            return []
        span, duration = (self.iteration or 0) - (iteration or 0), (self.time or 0) - (time or 0)
        return [max(duration // span, 1)] if span > 0 and duration > 0 else []

    def _moved(self, window: Window) -> bool:
        """Whether the rank came to another iteration in this window."""
        rank = window.identity.rank
        if rank is None or window.iteration is None or window.iteration_time is None:
            return False
        if self.reached.get(rank) != window.iteration:
            return True
        pack = pack_of(window)
        return pack is not None and any(first != last for first, last, _, _ in pack.spans())

    def _went_back(self, window: Window) -> bool:
        before = self.reached.get(window.identity.rank if window.identity.rank is not None else -1)
        return before is not None and window.iteration is not None and window.iteration < before


def told_of(windows: list[Window]) -> set[int]:
    """The iterations that their series tell of; nearly all tell of the same."""
    packs = [pack for window in windows if (pack := pack_of(window)) is not None]
    return set().union(*(whole_numbers(iterations) for iterations in {pack.iterations for pack in packs}))


def steps_of(windows: list[Window]) -> list[int]:
    """How long an iteration took on each rank that tells (ns): by the times of its lines, else as they print it."""
    alike: dict[tuple[bytes, bytes], list[tuple[Window, SeriesPack]]] = {}
    for window in windows:
        if (pack := pack_of(window)) is not None:
            alike.setdefault((bytes(pack.words), pack.iterations), []).append((window, pack))
    durations: list[int] = []
    for told in alike.values():
        timed = _timed([pack for _, pack in told])
        durations += timed[timed > 0].tolist()
        printed = [_printed(told[at][0]) for at in np.flatnonzero(timed == 0).tolist()]
        durations += [step for step in printed if step is not None]
    return durations


def _timed(packs: list[SeriesPack]) -> NDArray[np.int64]:
    """How long an iteration took by the first series that has two at two times, of packs alike; 0 without one."""
    behind = np.array(packs[0].names.starts)
    first, last = behind[:-1], behind[1:] - 1
    steps = np.frombuffer(packs[0].iterations, dtype="<i8")
    times = np.frombuffer(b"".join([pack.times for pack in packs]), dtype="<i8").reshape(len(packs), -1)
    found = np.zeros(len(packs), dtype=np.int64)
    for span, took in zip((steps[last] - steps[first]).tolist(), (times[:, last] - times[:, first]).T, strict=True):
        if span > 0:
            found = np.where((found == 0) & (took > 0), np.maximum(took // span, 1), found)
    return found


def _printed(window: Window) -> int | None:
    """How long an iteration took as lines print it (ns)."""
    printed = [
        found[1]
        for series in window.reported
        for value in series.values
        if value is not None and (found := in_common(series.name, value)) is not None and found[0] == STEP_TIME
    ]
    longest = max(printed, default=0.0)
    return int(longest * 1e9) if MOST_STEP_S > longest > 0 else None
