"""Reads a log and stores it: decode, collect columns, insert, and only then move on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from schemas.entries import dead_letter, read_entry
from schemas.ports import Entry, Log
from schemas.results import DeadLetter
from schemas.topics import TOPICS
from sinks.clickhouse import Client
from sinks.errors import SinkError
from sinks.rows import Block, Columns, blocks_of, dead_letter_block
from sinks.writer import Writer

SINK_TOPICS: tuple[str, ...] = tuple(name for name, topic in TOPICS.items() if "sink" in topic.readers)
"""Topics that are stored."""

STAGE = "sink"
"""Who could not use a record, in the dead letters of this package."""

Place = tuple[str, int]
"""Topic and partition."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """When a batch is cut: at whichever bound an entry reaches first."""

    rows: int = 50_000
    value_bytes: int = 64 * 1024 * 1024
    entries_per_read: int = 500


class Sink:
    """Stores what lies in a log from ``offsets`` on; a topic and partition that it does not name begins at 0.

    At least once: entries are inserted before ``offsets`` moves past them, and rows stored twice fold by their sort
    key. So ``offsets`` may be saved at any time, and an old one only costs work. ``run_id`` is empty for live.
    """

    def __init__(
        self,
        log: Log,
        client: Client,
        *,
        run_id: str = "",
        topics: Sequence[str] = SINK_TOPICS,
        offsets: Mapping[Place, int] | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.offsets: dict[Place, int] = dict(offsets or {})
        self._log = log
        self._storer = Storer(client, run_id)
        self._topics = tuple(topics)
        self._limits = limits or Limits()

    def drain(self) -> dict[str, int]:
        """Store all that lies in the log now; returns the rows inserted, by table.

        Raises SinkError if ClickHouse fails; what was not stored is read again by the next call.
        """
        counts: Counter[str] = Counter()
        for topic in self._topics:
            batch = Batch()
            for partition, entry in self._unread(topic):
                batch.add(partition, entry, self._storer.blocks(topic, partition, entry))
                if batch.is_full(self._limits):
                    counts.update(self._store(topic, batch))
                    batch = Batch()
            counts.update(self._store(topic, batch))
        return dict(sorted(counts.items()))

    def _unread(self, topic: str) -> Iterator[tuple[int, Entry]]:
        """Partition after partition, so that equal logs give equal batches."""
        try:
            partitions = self._log.partitions(topic)
        except KeyError:
            raise SinkError(f"the log has no topic {topic}") from None
        for partition in range(partitions):
            offset, end = self.offsets.get((topic, partition), 0), self._log.end(topic, partition)
            while offset < end:
                entries = self._log.read(topic, partition, offset, min(self._limits.entries_per_read, end - offset))
                if not entries:
                    break
                yield from ((partition, entry) for entry in entries)
                offset = entries[-1].offset + 1

    def _store(self, topic: str, batch: Batch) -> dict[str, int]:
        counts, offsets = self._storer.store(topic, batch)
        self.offsets |= offsets
        return counts


class Storer:
    """Puts batches of entries into the tables; records that cannot be decoded or stored become dead letters there."""

    def __init__(self, client: Client, run_id: str) -> None:
        self._writer = Writer(client)
        self._run_id = run_id

    def blocks(self, topic: str, partition: int, entry: Entry) -> list[Block]:
        """The rows of one entry, by table."""
        read = read_entry(entry, topic, partition, STAGE)
        if isinstance(read, DeadLetter):
            return [dead_letter_block(read, self._run_id, entry.time)]
        kind, record = read
        return blocks_of(kind, record, self._run_id, entry.time)

    def store(self, topic: str, batch: Batch) -> tuple[dict[str, int], dict[Place, int]]:
        """Insert a batch; returns its rows by table, and the offsets behind it. Raises SinkError."""
        blocks = batch.blocks()
        if any(self._writer.misfit(block) for block in blocks):
            batch = self._without_misfits(topic, batch)
            blocks = batch.blocks()
        origin = f"{self._run_id}:{topic}:{batch.origin}"
        counts = {block.table: self._writer.write(block, origin) for block in blocks}
        return counts, {(topic, partition): last + 1 for partition, (_, last) in batch.spans.items()}

    def _without_misfits(self, topic: str, batch: Batch) -> Batch:
        clean = Batch()
        for partition, entry in batch.entries:
            blocks = self.blocks(topic, partition, entry)
            reason = next((why for block in blocks if (why := self._writer.misfit(block))), None)
            if reason:
                letter = dead_letter(entry, topic, partition, STAGE, reason)
                blocks = [dead_letter_block(letter, self._run_id, entry.time)]
            clean.add(partition, entry, blocks)
        return clean


class Batch:
    """Entries of one topic and their rows, collected by table."""

    def __init__(self) -> None:
        self.entries: list[tuple[int, Entry]] = []
        self.spans: dict[int, tuple[int, int]] = {}
        self.rows = 0
        self.value_bytes = 0
        self._tables: dict[str, Columns] = {}

    def add(self, partition: int, entry: Entry, blocks: Sequence[Block]) -> None:
        """Add an entry that stands behind all others of its partition, and its rows."""
        self.entries.append((partition, entry))
        self.spans[partition] = (self.spans.get(partition, (entry.offset, 0))[0], entry.offset)
        self.value_bytes += len(entry.value)
        for block in blocks:
            self.rows += block.rows
            columns = self._tables.setdefault(block.table, {name: [] for name in block.columns})
            for name, values in block.columns.items():
                columns[name].extend(values)

    def is_full(self, limits: Limits) -> bool:
        """Whether it has reached a bound."""
        return self.rows >= limits.rows or self.value_bytes >= limits.value_bytes

    def blocks(self) -> list[Block]:
        """All rows, by table."""
        return [Block(table, columns) for table, columns in sorted(self._tables.items())]

    @property
    def origin(self) -> str:
        """Partitions with first and last offset, ``0:5-9,1:0-3``."""
        return ",".join(f"{partition}:{first}-{last}" for partition, (first, last) in sorted(self.spans.items()))
