"""Summaries in windows that are still open; beyond a bound those whose turn comes last are left in the log."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence

from schemas.codec import decode
from schemas.ports import Entry
from schemas.results import Window

Read = Callable[[int, int], Sequence[Entry]]
"""Given an offset and a number: up to so many entries of the windows partition from that offset on."""

READ_LIMIT = 1_000
"""Entries read back at once."""


class _Open:
    """One open window: ``summaries`` is null while they are left in the log, at ``offsets``, in ``size`` bytes.

    ``lost`` of them the log held no more when they were read back.
    """

    def __init__(self) -> None:
        self.summaries: dict[str, Window] | None = {}
        self.offsets = array("q")
        self.size = 0
        self.lost = 0


class Summaries:
    """Open windows of one windows partition by their ends (ns).

    A partition that is far behind holds all windows of the others open, and no topic could be made to wait for it: what
    lets the windows close comes behind them. So what is too much is read again, with ``read``, when its turn comes.
    """

    def __init__(self, read: Read | None = None) -> None:
        self._read = read
        self._open: dict[int, _Open] = {}
        self._most_bytes = 0

    def __len__(self) -> int:
        return len(self._open)

    @property
    def ends(self) -> Sequence[int]:
        """Ends (ns) of open windows, in order."""
        return sorted(self._open)

    @property
    def count(self) -> int:
        """Summaries in memory."""
        return sum(len(one.summaries or ()) for one in self._open.values())

    @property
    def held_bytes(self) -> int:
        """What is in memory, as it lies in the log."""
        return sum(one.size for one in self._open.values() if one.summaries is not None)

    @property
    def first_offset(self) -> int | None:
        """Where the oldest entry lies that is still needed."""
        return min((one.offsets[0] for one in self._open.values()), default=None)

    def add(self, entry: Entry, window: Window) -> None:
        """Take a summary in; offsets only grow."""
        one = self._open.setdefault(window.end, _Open())
        one.offsets.append(entry.offset)
        one.size += len(entry.value)
        if one.summaries is not None:
            one.summaries[window.id] = window

    def bound(self, most_bytes: int) -> None:
        """Let go of the windows whose turn comes last until at most so much is in memory; the next one stays."""
        self._most_bytes = most_bytes
        held = self.held_bytes
        for end in self.ends[:0:-1]:
            if held <= most_bytes or self._read is None:
                return
            one = self._open[end]
            if one.summaries is not None:
                one.summaries = None
                held -= one.size

    def pop(self, end: int) -> tuple[list[Window], int]:
        """The summaries of a window, which is open no longer, and how many of them the log did not keep so long."""
        one = self._open.get(end)
        if one is None:
            return [], 0
        if one.summaries is None:
            self._read_back(end)
        del self._open[end]
        return list((one.summaries or {}).values()), one.lost

    def _read_back(self, end: int) -> None:
        """Read a window from the log, and those after it that there is room for."""
        room = self._most_bytes - self.held_bytes
        wanted: dict[int, _Open] = {}
        for one in [self._open[later] for later in self.ends if later >= end]:
            room -= one.size if one.summaries is None else 0
            if wanted and room < 0:
                break
            if one.summaries is None:
                one.summaries, one.lost = {}, len(one.offsets)
                wanted |= dict.fromkeys(one.offsets, one)
        for entry in self._entries(min(wanted), max(wanted)):
            found = wanted.get(entry.offset)
            if found is not None and found.summaries is not None:
                window = decode("window", entry.value)
                found.summaries[window.id] = window
                found.lost -= 1

    def _entries(self, offset: int, last: int) -> Iterator[Entry]:
        while self._read is not None and offset <= last:
            entries = self._read(offset, READ_LIMIT)
            yield from entries
            if not entries:
                return
            offset = entries[-1].offset + 1
