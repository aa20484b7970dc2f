"""Protocols that stand between the side packages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec


class Entry(msgspec.Struct, frozen=True):
    """One record of a log as it lies there. ``time`` is the send time, never the event's."""

    offset: int
    key: bytes
    value: bytes
    headers: Mapping[str, str]
    time: int


class Log(Protocol):
    """Named partitions that are appended to and read in order."""

    def partitions(self, topic: str) -> int:
        """How many partitions the topic has, fixed at creation. Raises KeyError for an unknown topic."""

    def append(
        self, topic: str, key: bytes, value: bytes, headers: Mapping[str, str], time: int, partition: int | None = None
    ) -> tuple[int, int]:
        """Append to the key's partition, or to ``partition``; returns partition and offset."""

    def read(self, topic: str, partition: int, offset: int, limit: int) -> Sequence[Entry]:
        """Up to ``limit`` entries from ``offset`` on, in order; empty at the end."""

    def end(self, topic: str, partition: int) -> int:
        """The offset that the next entry will get."""
