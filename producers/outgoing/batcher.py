"""Single events into batches of one kind from one worker, numbered in the order in which they go out."""

from __future__ import annotations

import msgspec

from producers.outgoing.config import OutgoingConfig
from producers.outgoing.cuts import cut_log, mended
from producers.outgoing.records import Record, dead_letter
from schemas.codec import encode, headers, kind_of
from schemas.events import Batch, Event, Log
from schemas.identity import Identity
from schemas.results import DeadLetter
from schemas.topics import RAW_TOPIC_OF

_SEQ_DIGITS = 19


class _Open(msgspec.Struct):
    """A batch that still grows; ``size`` is what it will take encoded, ``since`` (ns) when it began."""

    identity: Identity
    kind: str
    since: int
    size: int
    events: list[Event]


class Batcher:
    """Collects events by worker and kind; not guarded, one caller at a time.

    ``producer`` and ``boot`` name this process for good: the same pair must never count from zero again. ``seq`` has
    no gaps, so a gap at the reader is a record that was lost on the way.
    """

    def __init__(self, producer: str, boot: str, config: OutgoingConfig) -> None:
        self._producer = producer
        self._boot = boot
        self._config = config
        self._seq = 0
        self._open: dict[tuple[bytes, str], _Open] = {}
        self._bytes = 0

    @property
    def open_bytes(self) -> int:
        """Encoded bytes of the events that wait in open batches."""
        return self._bytes

    def add(self, identity: Identity, event: Event, now: int) -> list[Record | DeadLetter]:
        """Take an event in at ``now`` (ns); returns the batches that must go out because of it.

        A log text too long for one record is cut in its middle, marked; anything else that cannot be a record comes
        back as a dead letter. Raises CodecError for an event of no known kind.
        """
        kind = kind_of(event)
        try:
            name = encode(identity)
            envelope = len(self._encoded(identity, [])) + _SEQ_DIGITS
            event, size = self._fitting(event, self._config.record_bytes - envelope)
        except (UnicodeEncodeError, ValueError) as error:
            return [self._letter(identity, kind, event, str(error))]
        out: list[Record | DeadLetter] = []
        group = self._open.get((name, kind))
        if group is not None and group.size + size > self._config.batch_bytes:
            out.append(self._close((name, kind), now))
            group = None
        if group is None:
            group = self._open[name, kind] = _Open(identity, kind, now, envelope, [])
            self._bytes += envelope
        group.events.append(event)
        group.size += size
        self._bytes += size
        if group.size >= self._config.batch_bytes:
            out.append(self._close((name, kind), now))
        while len(self._open) > self._config.open_batches or self._bytes > self._config.open_bytes:
            out.append(self._close(next(iter(self._open)), now))
        return out

    def due(self, now: int) -> list[Record]:
        """The batches that are old enough at ``now`` (ns), oldest first; one from the future counts from now on."""
        old = []
        for name, group in self._open.items():
            group.since = min(group.since, now)
            if now - group.since >= self._config.batch_age_ns:
                old.append(name)
        return [self._close(name, now) for name in old]

    def flush(self, now: int) -> list[Record]:
        """All batches, due or not, oldest first."""
        return [self._close(name, now) for name in list(self._open)]

    def _fitting(self, event: Event, most: int) -> tuple[Event, int]:
        """The event, mended or cut if need be, and its size in a batch. Raises ValueError if it cannot fit."""
        if isinstance(event, Log):
            event = mended(event)
            if len(event.text) > most or len(encode(event)) >= most:
                event = cut_log(event, most)
        size = len(encode(event)) + 1
        if size > most:
            raise ValueError(f"an event of {size} bytes is too large for a record")
        return event, size

    def _close(self, name: tuple[bytes, str], now: int) -> Record:
        group = self._open.pop(name)
        self._bytes -= group.size
        value = self._encoded(group.identity, group.events)
        self._seq += 1
        topic, key = RAW_TOPIC_OF[group.kind], group.identity.key.encode("utf-8")
        return Record(topic, key, value, headers(group.kind), now, len(group.events))

    def _encoded(self, identity: Identity, events: list[Event]) -> bytes:
        batch = Batch(producer=self._producer, boot=self._boot, seq=self._seq, identity=identity, events=events)
        return encode(batch)

    def _letter(self, identity: Identity, kind: str, event: Event, reason: str) -> DeadLetter:
        """The event as a dead letter; where it has no bytes, as Python would show it."""
        try:
            value = encode(event)
        except UnicodeEncodeError:
            value = repr(event).encode("utf-8", "backslashreplace")
        key = identity.key.encode("utf-8", "backslashreplace")
        return dead_letter(RAW_TOPIC_OF[kind], key, value, headers(kind), reason, self._config.letter_bytes)
