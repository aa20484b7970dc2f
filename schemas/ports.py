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


class LogError(Exception):
    """A log that cannot be used; the message is one line and holds no secret."""


class TooLargeError(LogError):
    """A record that is larger than its topic takes; nothing of it was appended."""


class Log(Protocol):
    """Named partitions that are appended to and read in order."""

    def partitions(self, topic: str) -> int:
        """How many partitions the topic has, fixed at creation. Raises KeyError for an unknown topic."""

    def append(
        self, topic: str, key: bytes, value: bytes, headers: Mapping[str, str], time: int, partition: int | None = None
    ) -> tuple[int, int] | None:
        """Append to the key's partition, or to ``partition``; gives partition and offset where they are known at once.

        Raises TooLargeError for a record that the topic never takes, and LogError where the log cannot be used.
        """

    def flush(self) -> None:
        """Return once all that was appended is safe; raises LogError where it never will be."""

    def read(self, topic: str, partition: int, offset: int, limit: int) -> Sequence[Entry]:
        """Up to ``limit`` entries from ``offset`` on, in order; empty at the end."""

    def end(self, topic: str, partition: int) -> int:
        """The offset that the next entry will get."""


class Subscription(Protocol):
    """A member of a group that shares the partitions of some topics."""

    def poll(self, limit: int, wait_s: float, *, hold: bool = False) -> Sequence[tuple[str, int, Entry]]:
        """Up to ``limit`` (topic, partition, entry), in order within a partition. Raises LogError.

        With ``hold`` none, but it stays a member.
        """

    def commit(self, offsets: Mapping[tuple[str, int], int]) -> bool:
        """Let the group begin at these offsets from now on; false where that has to be tried again. Raises LogError."""
