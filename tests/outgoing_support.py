"""A transport that does as it is told, records to send, and processes that die: for tests of the outgoing side."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from producers.outgoing.config import OutgoingConfig
from producers.outgoing.counters import Counters
from producers.outgoing.outbox import Outbox
from producers.outgoing.records import Record
from producers.outgoing.spool import Spool

SECOND = 1_000_000_000
T0 = 1_795_975_833 * SECOND
SMALL = OutgoingConfig(
    batch_bytes=2_000,
    open_bytes=20_000,
    record_bytes=8_000,
    letter_bytes=1_000,
    inbox_bytes=20_000,
    flight_bytes=16_000,
    flight_records=20,
    spool_bytes=60_000,
    segment_bytes=13_000,
)


class Sent:
    """One record that the transport took over."""

    def __init__(self, record: Record, done: Callable[[str | None], None]) -> None:
        self.record = record
        self.done = done


class FakeTransport:
    """Takes what ``room`` allows; ``answer`` decides about the first record of each poll's turn, null keeps all.

    Answers are ``""`` for safe, a reason for failed. ``delivered`` is what the log holds.
    """

    def __init__(self, room: int = 1_000_000, up: bool = True) -> None:
        self.room = room
        self.up = up
        self.failure = ""
        self.inside: list[Sent] = []
        self.delivered: list[Record] = []
        self.attempts = 0

    def send(
        self,
        topic: str,
        key: bytes,
        value: bytes,
        headers: Mapping[str, str],
        time: int,
        done: Callable[[str | None], None],
    ) -> bool:
        if len(self.inside) >= self.room:
            return False
        self.attempts += 1
        self.inside.append(Sent(Record(topic, key, value, dict(headers), time, 0), done))
        return True

    def poll(self) -> None:
        if self.failure:
            for sent in self._all():
                sent.done(self.failure)
        elif self.up:
            for sent in self._all():
                self.delivered.append(sent.record)
                sent.done(None)

    def _all(self) -> list[Sent]:
        inside, self.inside = self.inside, []
        return inside

    @property
    def values(self) -> list[bytes]:
        return [record.value for record in self.delivered]


def record(value: bytes | str, lane: str = "j|0", topic: str = "logs", events: int = 1) -> Record:
    data = value.encode() if isinstance(value, str) else value
    return Record(topic, lane.encode(), data, {"schema": "log", "version": "1"}, T0, events)


def spool_at(root: Path, config: OutgoingConfig = SMALL, counters: Counters | None = None) -> Spool:
    return Spool(
        root,
        spool_bytes=config.spool_bytes,
        segment_bytes=config.segment_bytes,
        counters=counters if counters is not None else Counters(),
    )


def outbox_at(root: Path, transport: FakeTransport, config: OutgoingConfig = SMALL) -> Outbox:
    counters = Counters()
    return Outbox(transport, spool_at(root, config, counters), config, counters)


def die(spool: Spool) -> None:
    """What the kernel does for a process that is killed: files are closed and the lock goes, nothing else happens."""
    files = [spool._folder._lock, spool._folder.position._file]
    if spool._writer.active is not None:
        files.append(spool._writer._file)
    if spool._reader is not None:
        files.append(spool._reader._file)
    for file in files:
        if file >= 0:
            os.close(file)


def files(root: Path) -> list[Path]:
    return sorted(root.glob("*.spool"))


def drain(spool: Spool) -> list[bytes]:
    """Read and acknowledge all that is there."""
    values = []
    while (stored := spool.read(None)) is not None:
        values.append(stored.record.value)
        spool.ack(stored.place)
    return values


def dropped(counters: Counters) -> dict[str, tuple[int, int]]:
    """Records and events by reason, zeros left out."""
    return {
        str(reason): (records, counters.dropped_events[reason])
        for reason, records in counters.dropped_records.items()
        if records or counters.dropped_events[reason]
    }
