"""A log in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from schemas.ports import Entry
from schemas.topics import TOPICS
from streams.log.partition import partition_of


class MemoryLog:
    """All topics of the table, each with the same number of partitions."""

    def __init__(self, partitions: int = 4) -> None:
        if partitions < 1:
            raise ValueError(f"a log needs at least one partition, not {partitions}")
        self._topics: dict[str, list[list[Entry]]] = {name: [[] for _ in range(partitions)] for name in TOPICS}

    def partitions(self, topic: str) -> int:
        """How many partitions the topic has."""
        return len(self._topics[topic])

    def append(
        self, topic: str, key: bytes, value: bytes, headers: Mapping[str, str], time: int, partition: int | None = None
    ) -> tuple[int, int]:
        """Append to the key's partition, or to ``partition``; returns partition and offset."""
        parts = self._topics[topic]
        number = partition_of(key, len(parts)) if partition is None else partition
        entries = parts[number]
        entries.append(Entry(len(entries), key, value, headers, time))
        return number, len(entries) - 1

    def flush(self) -> None:
        """Nothing to wait for: memory is as safe as it gets."""

    def read(self, topic: str, partition: int, offset: int, limit: int) -> Sequence[Entry]:
        """Up to ``limit`` entries from ``offset`` on."""
        return self._topics[topic][partition][offset : offset + limit]

    def end(self, topic: str, partition: int) -> int:
        """The offset that the next entry will get."""
        return len(self._topics[topic][partition])
