"""Where callers leave records: bounded in bytes, the oldest goes when it is full."""

from __future__ import annotations

from collections import deque
from threading import Lock

from producers.outgoing.counters import Counters, DropReason
from producers.outgoing.records import DEAD_LETTERS, Record


class Inbox:
    """Records from any thread, in the order of arrival.

    One lock guards it and the counters that it writes (``put_*``, ``letters``, drops from here); it is held for a few
    steps in memory, never while anything is read, written or sent.
    """

    def __init__(self, most_bytes: int, counters: Counters) -> None:
        self._most = most_bytes
        self._counters = counters
        self._lock = Lock()
        self._records: deque[Record] = deque()
        self._closed = False
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._records)

    def put(self, record: Record) -> None:
        """Take the record in; what does not fit is dropped and counted."""
        with self._lock:
            self._counters.put_records += 1
            self._counters.put_events += record.events
            self._counters.letters += record.topic == DEAD_LETTERS
            if self._closed:
                self._counters.drop(DropReason.CLOSED, 1, record.events)
            elif record.size > self._most:
                self._counters.drop(DropReason.TOO_LARGE, 1, record.events)
            else:
                while self.bytes + record.size > self._most:
                    oldest = self._records.popleft()
                    self.bytes -= oldest.size
                    self._counters.drop(DropReason.INBOX_FULL, 1, oldest.events)
                self._records.append(record)
                self.bytes += record.size

    def take(self) -> Record | None:
        """The oldest record, or null."""
        with self._lock:
            if not self._records:
                return None
            record = self._records.popleft()
            self.bytes -= record.size
            return record

    def close(self) -> None:
        """Take nothing more in."""
        with self._lock:
            self._closed = True
