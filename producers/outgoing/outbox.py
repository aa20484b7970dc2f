"""Records on their way to the log: memory while all goes well, the disk spool otherwise, in order either way.

``put`` may be called from any thread: it only touches the inbox, under the inbox's lock. Everything else belongs to the
one thread of the wiring that calls ``pump`` and ``close``; disk and transport are used there only, so neither can hold
a caller up. The transport's callbacks only note what became of a record, whichever thread they come in.

A record that is not safe after ``unspooled_s``, or for which memory has no room, is written to the spool; all that came
before it and is not safe either is written first. So the spool is in order, and once anything there is unread, all that
comes later goes there too.
"""

from __future__ import annotations

from collections import deque
from functools import partial

from producers.outgoing.config import OutgoingConfig
from producers.outgoing.counters import Counters, DropReason
from producers.outgoing.flight import Flight, Held
from producers.outgoing.inbox import Inbox
from producers.outgoing.records import DEAD_LETTERS, Record, dead_letter, letter_record
from producers.outgoing.spool import Spool
from schemas.ports import Refusal, Transport, refusal_of

_MOST_SAID = 1_000
_MOST_REASON = 300


class Outbox:
    """Brings records to the log at least once or counts them as dropped.

    A process that is killed loses what came since the last pump and what was in memory for less than ``unspooled_s``.
    """

    def __init__(self, transport: Transport, spool: Spool, config: OutgoingConfig, counters: Counters) -> None:
        self._transport = transport
        self._spool = spool
        self._config = config
        self._inbox = Inbox(config.inbox_bytes, counters)
        self._flight = Flight(config.flight_bytes, config.flight_records, config.lane_records, config.retry_ns)
        self._results: deque[tuple[Held, str | None]] = deque()
        self._said: set[str] = set()
        self._messages: list[str] = []
        self._closed = False
        self.counters = counters

    @property
    def memory_bytes(self) -> int:
        """Bytes of all records in memory, at most ``inbox_bytes`` and ``flight_bytes`` together."""
        return self._inbox.bytes + self._flight.bytes

    @property
    def spool_bytes(self) -> int:
        """Bytes of the spool's files, which hold safe records too until all of a file are."""
        return self._spool.bytes

    @property
    def idle(self) -> bool:
        """Whether everything is safe; before ``close`` the wiring pumps until it is, or until its patience ends."""
        return not (len(self._inbox) or len(self._flight) or self._spool.unread)

    def put(self, record: Record) -> None:
        """Take the record in. Never waits, never fails; what there is no room for is counted."""
        self._inbox.put(record)

    def pump(self, now: int) -> list[str]:
        """Do all that can be done without waiting for the log; call it every 20 to 100 ms, also when idle.

        ``now`` is in ns. Returns what the operator should know, each thing once.
        """
        if not self._closed:
            self._settle(now)
            self._admit(now)
            self._fill(now)
            self._send(now)
            self._spill(now)
            self._flight.forget(self._spool.oldest)
            self._spool.save()
        return self._news()

    def close(self, now: int) -> list[str]:
        """Write all that is not safe to the spool and let go of it; what cannot be written is counted as dropped."""
        if self._closed:
            return []
        self._settle(now)
        self._inbox.close()
        left = [held.record for held in self._flight.unspooled()]
        while (record := self._inbox.take()) is not None:
            left.append(record)
        for record in left:
            if not self._spool.append(record):
                self.counters.drop(DropReason.SPOOL_FAILED, 1, record.events)
        messages = self._news()
        self._spool.close()
        self._closed = True
        return messages

    def _settle(self, now: int) -> None:
        """Take in what became of the records that the transport had."""
        self._transport.poll()
        while self._results:
            held, reason = self._results.popleft()
            if not held.sent:
                continue
            self._flight.back(held)
            refusal = None if reason is None else refusal_of(reason)
            if held.dropped:
                self._flight.remove(held)
            elif reason is None:
                self.counters.sent_records += 1
                self.counters.sent_events += held.record.events
                self._over(held)
            elif refusal is not None:
                self._refused(held.record, refusal, reason[:_MOST_REASON], now)
                self._over(held)
            else:
                self.counters.failed_records += 1
                held.failed = now

    def _over(self, held: Held) -> None:
        """Nothing more will be done for it."""
        self._flight.remove(held)
        if held.place is not None:
            self._spool.ack(held.place)

    def _refused(self, record: Record, refusal: Refusal, reason: str, now: int) -> None:
        """The log will never take it: a dead letter says so, unless it is one."""
        self.counters.drop(DropReason.REFUSED, 1, record.events)
        self._say(f"records for topic {record.topic} are refused: {refusal}", reason)
        if record.topic != DEAD_LETTERS:
            most = self._config.letter_bytes
            letter = dead_letter(record.topic, record.key, record.value, record.headers, reason, most)
            self._inbox.put(letter_record(letter, now))

    def _fill(self, now: int) -> None:
        """Read from the spool what memory has room for."""
        while (room := self._flight.room()) is None or room >= 0:
            stored = self._spool.read(room)
            if stored is None:
                return
            self._flight.add(stored.record, now, stored.place)

    def _admit(self, now: int) -> None:
        """Hold what callers put, or store it if something before it is unread or memory is full."""
        for _ in range(len(self._inbox)):
            record = self._inbox.take()
            if record is None:
                return
            if not self._spool.unread and self._flight.fits(record):
                self._flight.add(record, now)
            else:
                self._store(record)

    def _store(self, record: Record) -> None:
        """Write the record to the spool behind all that came before it."""
        stored = self._spill(None) and self._spool.append(record)
        if not stored:
            self.counters.drop(DropReason.SPOOL_FAILED, 1, record.events)

    def _spill(self, now: int | None) -> bool:
        """Write down what is in memory only and old enough at ``now``, all if null; false if the disk refuses.

        A record from the future is old: the clock was set back.
        """
        for held in self._flight.unspooled():
            if now is not None and 0 <= now - held.since < self._config.unspooled_ns:
                break
            place = self._spool.append_taken(held.record)
            if place is None:
                return False
            self._flight.spooled(held, place)
        return True

    def _send(self, now: int) -> None:
        """Hand over what the transport has room for."""
        for held in self._flight.sendable(now):
            record = held.record
            done = partial(self._on_done, held)
            if not self._transport.send(record.topic, record.key, record.value, record.headers, record.time, done):
                return
            self._flight.out(held)

    def _on_done(self, held: Held, reason: str | None) -> None:
        self._results.append((held, reason))

    def _news(self) -> list[str]:
        """What has not been said yet."""
        self._say(self._spool.trouble)
        for reason, records in self.counters.dropped_records.items():
            if records and reason is not DropReason.REFUSED:
                self._say(f"records are being dropped, reason: {reason}")
        messages, self._messages = self._messages, []
        return messages

    def _say(self, text: str, details: str = "") -> None:
        if text and text not in self._said and len(self._said) < _MOST_SAID:
            self._said.add(text)
            self._messages.append(f"{text} ({details})" if details and details not in text else text)
