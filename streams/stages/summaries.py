"""Summaries in windows that are still open; beyond a bound those whose turn comes last are left in the log."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence

import msgspec

from schemas.codec import decode
from schemas.ports import Entry
from schemas.results import Window
from streams.gauges import PackedGauges
from streams.series_table import SharedSeries
from streams.stacks import SharedFrames

Read = Callable[[int, int], Sequence[Entry]]
"""Given an offset and a number: up to so many entries of the windows partition from that offset on."""

READ_LIMIT = 100
"""Entries read back at once; a summary may take megabytes."""

NEAR = 16
"""Entries apart that are cheaper read with what lies between than one by one."""


class _Open:
    """One open window: its summaries by id, or where in the log they were left; ``size`` in bytes either way.

    ``lost`` of them the log held no more when they were read back.
    """

    def __init__(self) -> None:
        self.summaries: dict[str, Window] = {}
        self.in_memory = True
        self.offsets = array("q")
        self.size = 0
        self.lost = 0

    def leave(self) -> None:
        """Let go of the summaries, not of where they lie."""
        self.summaries, self.in_memory = {}, False

    def expect(self) -> None:
        """All that it holds will be put back."""
        self.in_memory, self.lost = True, len(self.offsets)

    def put_back(self, window: Window) -> None:
        """One of its summaries as it was read once more."""
        self.summaries[window.id] = window
        self.lost -= 1


class Summaries:
    """Open windows of one windows partition by their ends (ns).

    A partition that is far behind holds all windows of the others open, and no topic could be made to wait for it: what
    lets the windows close comes behind them. So what is too much is read again, with ``read``, when its turn comes.
    """

    def __init__(self, read: Read | None = None) -> None:
        self._read = read
        self._open: dict[int, _Open] = {}
        self._most_bytes = 0
        self._frames = SharedFrames()
        self._gauges = PackedGauges()
        self._series = SharedSeries()

    def __len__(self) -> int:
        return len(self._open)

    @property
    def first_end(self) -> int | None:
        """The end of the window whose turn comes first."""
        return min(self._open, default=None)

    @property
    def first_offset(self) -> int | None:
        """Where the oldest entry lies that is still needed."""
        return min((one.offsets[0] for one in self._open.values()), default=None)

    @property
    def count(self) -> int:
        """Summaries in memory; from any thread."""
        return sum(len(one.summaries) for one in list(self._open.values()))

    @property
    def held_bytes(self) -> int:
        """What is in memory, as it lies in the log; from any thread."""
        return sum(one.size for one in list(self._open.values()) if one.in_memory)

    def add(self, entry: Entry, window: Window) -> None:
        """Take a summary in; offsets only grow."""
        one = self._open.get(window.end)
        if one is None:
            one = self._open[window.end] = _Open()
        one.offsets.append(entry.offset)
        one.size += len(entry.value)
        if one.in_memory:
            one.summaries[window.id] = self._sharing(window)

    def _sharing(self, window: Window) -> Window:
        """The summary with less to hold in memory: most ranks have the same stacks and the same gauges."""
        if window.stacks:
            window = msgspec.structs.replace(window, stacks=self._frames.of(window.stacks))
        if window.series_pack is not None:
            self._series.share(window.series_pack)
        if window.gauge_pack is not None:
            gauges = self._gauges.unpacked(window.gauge_pack)
            return msgspec.structs.replace(window, gauge_columns=gauges, gauge_pack=None)
        if window.gauge_columns:
            window = msgspec.structs.replace(window, gauge_columns=self._gauges.of(window.gauge_columns))
        return window

    def bound(self, most_bytes: int) -> None:
        """Let go of the windows whose turn comes last until at most so much is in memory; the next one stays."""
        self._most_bytes = most_bytes
        held = self.held_bytes
        if held <= most_bytes or self._read is None:
            return
        _, *others = sorted(self._open)
        for end in reversed(others):
            if self._open[end].in_memory and held > most_bytes:
                self._open[end].leave()
                held -= self._open[end].size

    def pop(self, end: int) -> tuple[list[Window], int]:
        """The summaries of a window, which is open no longer, and how many of them the log did not keep so long.

        Raises what ``read`` raises.
        """
        one = self._open.get(end)
        if one is None:
            return [], 0
        if not one.in_memory:
            self._read_back(end)
        del self._open[end]
        self._frames = SharedFrames()
        self._gauges = PackedGauges()
        self._series = SharedSeries()
        return list(one.summaries.values()), one.lost

    def _read_back(self, end: int) -> None:
        """Read a window from the log, and those after it that there is room for."""
        room = self._most_bytes - self.held_bytes
        owner: dict[int, _Open] = {}
        for one in [self._open[later] for later in sorted(self._open) if later >= end]:
            if one.in_memory:
                continue
            room -= one.size
            if owner and room < 0:
                break
            one.expect()
            owner |= dict.fromkeys(one.offsets, one)
        for entry in self._entries(sorted(owner)):
            owner[entry.offset].put_back(self._sharing(decode("window", entry.value)))

    def _entries(self, offsets: Sequence[int]) -> Iterator[Entry]:
        """The entries at these offsets, in order, as far as the log still has them."""
        at = 0
        while self._read is not None and at < len(offsets):
            found = self._read(offsets[at], min(_run(offsets, at), READ_LIMIT))
            if not found:
                return
            wanted = set(offsets[at : bisect_right(offsets, found[-1].offset)])
            yield from (entry for entry in found if entry.offset in wanted)
            at = bisect_right(offsets, found[-1].offset)


def _run(offsets: Sequence[int], at: int) -> int:
    """Over how many entries the offsets from number ``at`` on lie near one another."""
    last = at
    while last + 1 < len(offsets) and offsets[last + 1] - offsets[last] <= NEAR and last - at < READ_LIMIT:
        last += 1
    return offsets[last] - offsets[at] + 1
