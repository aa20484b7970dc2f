"""Events in, records safe in the log: the batcher and the outbox of one node's producer, for many threads."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from threading import Lock

from producers.outgoing.batcher import Batcher
from producers.outgoing.config import OutgoingConfig
from producers.outgoing.counters import Counters
from producers.outgoing.outbox import Outbox
from producers.outgoing.records import Record, letter_record
from producers.outgoing.spool import Spool
from schemas.events import Event
from schemas.identity import Identity
from schemas.ports import Transport
from schemas.results import DeadLetter


class Sender:
    """``add`` may be called from any thread, ``pump`` and ``close`` from one; times are in ns.

    One lock guards the batcher and the step into the outbox, so that batches go in as they are numbered. It is held
    while a batch is encoded, never while anything is read, written or sent. Raises SpoolError if another process
    holds the spool.
    """

    def __init__(
        self, producer: str, boot: str, transport: Transport, root: Path, config: OutgoingConfig | None = None
    ) -> None:
        config = config or OutgoingConfig()
        self.counters = Counters()
        spool = Spool(root, spool_bytes=config.spool_bytes, segment_bytes=config.segment_bytes, counters=self.counters)
        self.outbox = Outbox(transport, spool, config, self.counters)
        self._batcher = Batcher(producer, boot, config)
        self._lock = Lock()
        self._closed = False

    def add(self, identity: Identity, event: Event, now: int) -> None:
        """Take an event in. Never waits for disk or log. Raises CodecError for an event of no known kind."""
        with self._lock:
            self._put(self._batcher.add(identity, event, now), now)
            if self._closed:
                # Nothing may be left in a batch that nobody will ask for; the outbox counts it.
                self._put(self._batcher.flush(now), now)

    def pump(self, now: int) -> list[str]:
        """Send what is due; returns what the operator should know, each thing once. See ``Outbox.pump``."""
        with self._lock:
            self._put(self._batcher.due(now), now)
        return self.outbox.pump(now)

    def flush(self, now: int) -> None:
        """Send what is not due yet with the next pump, as before the end."""
        with self._lock:
            self._put(self._batcher.flush(now), now)

    def close(self, now: int) -> list[str]:
        """Write to the spool what is not safe; events that come later are counted as dropped."""
        with self._lock:
            self._closed = True
            self._put(self._batcher.flush(now), now)
        return self.outbox.close(now)

    @property
    def memory_bytes(self) -> int:
        """Bytes of events and records in memory, as they are encoded."""
        return self._batcher.open_bytes + self.outbox.memory_bytes

    def _put(self, out: Iterable[Record | DeadLetter], now: int) -> None:
        for item in out:
            self.outbox.put(letter_record(item, now) if isinstance(item, DeadLetter) else item)
