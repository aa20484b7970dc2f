"""The sink of a running pipeline: reads as a member of a group, stores, and only then moves on."""

from __future__ import annotations

from collections import Counter

import msgspec

from schemas.ports import Entry, Subscription
from sinks.clickhouse import Client
from sinks.errors import SinkError
from sinks.sink import Batch, Limits, Place, Storer

FIRST_RETRY_S = 0.5
LAST_RETRY_S = 30.0
NOT_COMMITTED = "Kafka does not take the offsets"


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """``flush_s``: how long rows wait for others at most. ``wait_s``: how long one poll waits for entries."""

    flush_s: float = 1.0
    wait_s: float = 0.1


class LiveSink:
    """Stores what a group's member reads; call ``step`` again and again, with a clock in seconds that goes forward.

    At least once: offsets are committed after ClickHouse answered, rows stored twice fold by their sort key. While
    ClickHouse is away the same batches are tried again and nothing more is read. ``run_id`` has to be the same for all
    who ever store this log.
    """

    def __init__(
        self,
        client: Client,
        subscription: Subscription,
        *,
        run_id: str = "",
        limits: Limits | None = None,
        pace: Pace | None = None,
    ) -> None:
        self.counts: Counter[str] = Counter()
        self.entries = 0
        self.retries = 0
        self.trouble = ""
        self._subscription = subscription
        self._storer = Storer(client, run_id)
        self._limits = limits or Limits()
        self._pace = pace or Pace()
        self._batches: dict[str, Batch] = {}
        self._since: float | None = None
        self._commits: dict[Place, int] = {}
        self._resting = False
        self._retry_at = 0.0
        self._retry_s = FIRST_RETRY_S

    @property
    def held(self) -> int:
        """Entries read and not stored yet."""
        return sum(len(batch.entries) for batch in list(self._batches.values()))

    def forget(self) -> None:
        """Partitions went to others: whatever is not committed is read again, by whoever owns it then."""
        self._batches, self._commits, self._since = {}, {}, None
        self._settle()

    def step(self, now: float) -> None:
        """Store what is due, else read on. Raises LogError where the log cannot be used any more."""
        if self._resting:
            # A pause counts from when the try was over, not from when it began.
            self._resting, self._retry_at = False, now + self._retry_s
            self._retry_s = min(self._retry_s * 2, LAST_RETRY_S)
        if self._due(now):
            self._store()
        for topic, partition, entry in self._poll():
            self._add(topic, partition, entry, now)

    def finish(self) -> None:
        """Store and commit what is held, once; what ClickHouse or Kafka does not take now is read again later."""
        if self.trouble != NOT_COMMITTED:  # to ask again while the cluster is away would take as long as a session
            self._store()

    def _poll(self) -> list[tuple[str, int, Entry]]:
        hold = bool(self.trouble) or self._full()
        return list(self._subscription.poll(self._limits.entries_per_read, self._pace.wait_s, hold=hold))

    def _add(self, topic: str, partition: int, entry: Entry, now: float) -> None:
        self.entries += 1
        batch = self._batches.setdefault(topic, Batch())
        batch.add(partition, entry, self._storer.blocks(topic, partition, entry))
        self._since = now if self._since is None else self._since

    def _full(self) -> bool:
        return any(batch.is_full(self._limits) for batch in self._batches.values())

    def _due(self, now: float) -> bool:
        if now < self._retry_at:
            return False
        waited = self._since is not None and now - self._since >= self._pace.flush_s
        return bool(self._commits) or bool(self.trouble) or waited or self._full()

    def _store(self) -> None:
        """Each topic's batch on its own: one that was stored is never sent again, whatever becomes of the next."""
        try:
            for topic in sorted(self._batches):
                counts, offsets = self._storer.store(topic, self._batches[topic])
                del self._batches[topic]
                self.counts.update(counts)
                self._commits |= offsets
        except SinkError as error:
            self._retry(str(error))
            return
        self._since = None
        if self._commits and not self._subscription.commit(self._commits):
            self._retry(NOT_COMMITTED)
            return
        self._commits = {}
        self._settle()

    def _retry(self, reason: str) -> None:
        self.trouble = reason
        self.retries += 1
        self._resting = True

    def _settle(self) -> None:
        self.trouble, self._resting, self._retry_at, self._retry_s = "", False, 0.0, FIRST_RETRY_S
