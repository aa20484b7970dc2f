"""Records in memory until they are safe: waiting for the transport or with it, in order."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from producers.outgoing.position import Place
from producers.outgoing.records import OVERHEAD, Record


class Held(msgspec.Struct, eq=False):
    """One record. ``since`` (ns) is when it came; ``place`` where it lies on disk, null if it is in memory only.

    ``sent`` while the transport has it; ``failed`` (ns) is when it last came back; ``dropped`` once its file is gone:
    it is counted and not sent again.
    """

    record: Record
    serial: int
    since: int
    place: Place | None = None
    sent: bool = False
    failed: int | None = None
    dropped: bool = False

    @property
    def lane(self) -> tuple[str, bytes]:
        """What keeps its order: topic and key."""
        return self.record.topic, self.record.key


class Flight:
    """What is held, in order, bounded in bytes and records; ``bytes`` is what it takes."""

    def __init__(self, most_bytes: int, most_records: int, lane_records: int, retry_ns: int) -> None:
        self._most_bytes = most_bytes
        self._most_records = most_records
        self._lane_records = lane_records
        self._retry_ns = retry_ns
        self._oldest = 0
        self._held: dict[int, Held] = {}
        self._unspooled: dict[int, Held] = {}
        self._lanes: dict[tuple[str, bytes], int] = {}
        self._serial = 0
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._held)

    def room(self) -> int | None:
        """Bytes that the next record may have; null if it may have any number, since nothing else is held."""
        if not self._held:
            return None
        if len(self._held) >= self._most_records:
            return -1
        return self._most_bytes - self.bytes - OVERHEAD

    def fits(self, record: Record) -> bool:
        """Whether the record may be added."""
        return len(self._held) < self._most_records and self.bytes + record.size <= self._most_bytes

    def add(self, record: Record, now: int, place: Place | None = None) -> None:
        """Hold the record behind all others."""
        held = Held(record, self._serial, now, place)
        self._held[held.serial] = held
        if place is None:
            self._unspooled[held.serial] = held
        self._serial += 1
        self.bytes += record.size

    def remove(self, held: Held) -> None:
        """It is safe or lost."""
        del self._held[held.serial]
        self._unspooled.pop(held.serial, None)
        self.bytes -= held.record.size

    def sendable(self, now: int) -> Iterator[Held]:
        """What may be sent next, in order: nothing overtakes another record of its lane. Mark each with ``out``.

        What has failed waits for a while, and its lane behind it.
        """
        behind: set[tuple[str, bytes]] = set()
        for held in list(self._held.values()):
            if held.sent or held.dropped:
                continue
            lane = held.lane
            if lane in behind:
                continue
            if self._lanes.get(lane, 0) >= self._lane_records or self._pausing(held, now):
                behind.add(lane)
                continue
            yield held

    def _pausing(self, held: Held, now: int) -> bool:
        # A failure in the future is none: the clock was set back.
        return held.failed is not None and 0 <= now - held.failed < self._retry_ns

    def out(self, held: Held) -> None:
        """The transport has it."""
        held.sent = True
        self._lanes[held.lane] = self._lanes.get(held.lane, 0) + 1

    def back(self, held: Held) -> None:
        """The transport has it no longer."""
        held.sent = False
        left = self._lanes.pop(held.lane) - 1
        if left:
            self._lanes[held.lane] = left

    def unspooled(self) -> list[Held]:
        """What is in memory only, in order."""
        return list(self._unspooled.values())

    def spooled(self, held: Held, place: Place) -> None:
        """It lies on disk too, at ``place``."""
        held.place = place
        del self._unspooled[held.serial]

    def forget(self, oldest: int) -> None:
        """The files before number ``oldest`` are gone: what lay there is not sent again."""
        if oldest == self._oldest:
            return
        self._oldest = oldest
        for held in list(self._held.values()):
            if held.place is not None and held.place.segment < oldest:
                held.dropped = True
                if not held.sent:
                    self.remove(held)
