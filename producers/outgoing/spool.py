"""A disk spool: records in files under one folder, in order, bounded in bytes; the oldest file goes when it is full.

Nothing is synced: what is written survives the death of the process, at a power cut the last seconds may be lost. No
method raises for the disk's sake; what that costs is counted, ``trouble`` says what is wrong. One thread at a time.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec

from producers.outgoing.counters import Counters, DropReason
from producers.outgoing.folder import Folder, SpoolError
from producers.outgoing.frames import HEADER, Found, Gap, Segment, SegmentReader
from producers.outgoing.position import NOWHERE, Place
from producers.outgoing.records import Record
from producers.outgoing.writer import SegmentWriter


class Stored(msgspec.Struct, frozen=True):
    """A record and where it lies."""

    place: Place
    record: Record


class Spool:
    """The spool under ``root``, made if need be; one process at a time. Raises SpoolError if another one holds it.

    A record is *unread*, then *outstanding* from ``read`` to ``ack``, then safe. A file goes once all in it is safe.
    ``bytes`` is what the files take.
    """

    def __init__(self, root: Path, *, spool_bytes: int, segment_bytes: int, counters: Counters) -> None:
        self._folder = Folder(root)
        self._most = spool_bytes
        self._writer = SegmentWriter(self._folder, segment_bytes)
        self._counters = counters
        self._segments: list[Segment] = []
        self._reader: SegmentReader | None = None
        self._read_from = 0
        self._outstanding: dict[int, dict[int, int]] = {}
        self._taken: set[Place] = set()
        self._start = NOWHERE
        self._own = 1
        self._closed = False
        self.bytes = 0
        self.trouble = ""
        with contextlib.suppress(OSError):
            self._take()

    @property
    def unread(self) -> bool:
        """Whether ``read`` may find something."""
        reader = self._reader
        if reader is not None and reader.at < reader.segment.size:
            return True
        behind = reader.segment.number if reader else self._read_from - 1
        return any(segment.number > behind and segment.size for segment in self._segments)

    @property
    def oldest(self) -> int:
        """The number of the oldest file that is kept; what lay in earlier ones is safe or counted as dropped."""
        return self._segments[0].number if self._segments else self._writer.next

    def append(self, record: Record) -> bool:
        """Write the record behind all others, dropping the oldest file if need be; false if the disk refuses."""
        return self._ready() and self._write(record)

    def append_taken(self, record: Record) -> Place | None:
        """Write a record down that the caller holds already: outstanding at once, never read.

        Null if the disk refuses.
        """
        ready, behind = self._ready(), self.unread
        if not ready or not self._write(record):
            return None
        place = Place(self._segments[-1].number, self._segments[-1].records - 1)
        self._outstanding.setdefault(place.segment, {})[place.number] = record.events
        self._taken.add(place)
        if not behind:
            self.read(None)
        return place

    def read(self, room: int | None) -> Stored | None:
        """The next unread record if it takes at most ``room`` bytes; null if there is none."""
        while self._ready() and (reader := self._current()) is not None:
            if room is not None and reader.upcoming() > room:
                return None
            found = reader.next()
            number = reader.segment.number
            if found is None:
                if reader.segment is self._writer.active:
                    return None
                self._leave(reader)
            elif self._known(number, found, reader):
                continue
            elif isinstance(found, Gap):
                self._counters.drop(DropReason.DAMAGED, found.records, found.events)
            else:
                self._outstanding.setdefault(number, {})[found.number] = found.record.events
                self._counters.recovered_records += number < self._own
                return Stored(Place(number, found.number), found.record)
        return None

    def ack(self, place: Place) -> None:
        """The record there is safe."""
        outstanding = self._outstanding.get(place.segment, {})
        outstanding.pop(place.number, None)
        if not outstanding and place.segment < self._read_from:
            self._remove(place.segment)

    def save(self) -> None:
        """Write down how far everything is safe, for the next boot."""
        if self._folder.held:
            self._folder.position.save(self._safe())

    def close(self) -> None:
        """Write down how far everything is safe, remove the files if that is all, let go of the folder."""
        self._writer.roll()
        if not self.unread:
            self.read(None)
        self.save()
        self._closed = True
        if self._reader:
            self._reader.close()
        self._folder.release()

    def _ready(self) -> bool:
        """Whether the folder is ours; tried again each time until it is."""
        if self._closed or self._folder.held:
            return not self._closed
        try:
            self._take()
        except SpoolError as error:
            self.trouble = str(error)
        except OSError:
            pass
        return self._folder.held

    def _take(self) -> None:
        """Take over what an earlier boot left. New files get higher numbers than any that its position speaks of."""
        try:
            self._segments = self._folder.take()
        except OSError as error:
            self.trouble = self._folder.said(error)
            raise
        self._start = self._folder.position.place
        self.bytes = sum(segment.size for segment in self._segments)
        self._own = max([self._start.segment, *(segment.number for segment in self._segments)]) + 1
        self._writer.next = self._own
        for segment in list(self._segments):
            if segment.number < self._start.segment:
                self._remove(segment.number)

    def _write(self, record: Record) -> bool:
        body = msgspec.msgpack.encode(record)
        length = HEADER + len(body)
        if length > self._most:
            self.trouble = f"a record of {length} bytes is larger than the spool"
            return False
        while self._segments and self.bytes + length > self._most:
            self._drop_oldest()
        try:
            self._writer.write(body, record.events)
        except OSError as error:
            self.trouble = self._folder.said(error)
            return False
        finally:
            active = self._writer.active
            if active is not None and active not in self._segments[-1:]:
                self._segments.append(active)
        self.bytes += length
        self._counters.spooled_records += 1
        self.trouble = ""
        return True

    def _current(self) -> SegmentReader | None:
        if self._reader is None:
            segment = next((s for s in self._segments if s.number >= self._read_from), None)
            if segment is None:
                return None
            self._reader = SegmentReader(segment)
            self._read_from = segment.number
        return self._reader

    def _known(self, number: int, found: Found | Gap, reader: SegmentReader) -> bool:
        """Whether what was just read was safe before this boot, or was written as taken."""
        if isinstance(found, Found) and Place(number, found.number) in self._taken:
            self._taken.discard(Place(number, found.number))
            return True
        return Place(number, reader.number) <= self._start

    def _leave(self, reader: SegmentReader) -> None:
        """All of the reader's file has been read."""
        number = reader.segment.number
        reader.close()
        self._reader = None
        self._read_from = number + 1
        if not self._outstanding.get(number):
            self._remove(number)

    def _drop_oldest(self) -> None:
        """Remove the oldest file and count what in it was not safe."""
        segment = self._segments[0]
        if segment is self._writer.active:
            self._writer.roll()
        lost = self._outstanding.pop(segment.number, {}).values()
        records, events = len(lost), sum(lost)
        if segment.number >= self._read_from:
            reader = self._current()
            while reader is not None and (found := reader.next()) is not None:
                if not self._known(segment.number, found, reader):
                    records += found.records if isinstance(found, Gap) else 1
                    events += found.events if isinstance(found, Gap) else found.record.events
            if reader is not None:
                self._leave(reader)
        self._counters.drop(DropReason.SPOOL_FULL, records, events)
        self._remove(segment.number)

    def _remove(self, number: int) -> None:
        self._outstanding.pop(number, None)
        for segment in [s for s in self._segments if s.number == number]:
            self._segments.remove(segment)
            self.bytes -= segment.size
            try:
                segment.path.unlink(missing_ok=True)
            except OSError as error:
                self.trouble = self._folder.said(error)

    def _safe(self) -> Place:
        """The place before which everything is safe, dropped or known to be damaged."""
        if not self._segments:
            return Place(self._writer.next, 0)
        front = self._segments[0].number
        number = 0
        if outstanding := self._outstanding.get(front):
            number = min(outstanding)
        elif self._reader and self._reader.segment.number == front:
            number = self._reader.number
        return max(Place(front, number), self._start)
