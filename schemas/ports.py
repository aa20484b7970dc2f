"""Protocols that stand between the side packages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
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


class Refusal(StrEnum):
    """Why a record will never be safe however often it is sent; every other reason is an outage that may pass."""

    TOO_LARGE = "too large"
    UNKNOWN_TOPIC = "unknown topic"
    NOT_AUTHORISED = "not authorised"


def refusal_of(reason: str) -> Refusal | None:
    """The refusal that a reason names, alone or before ``": "`` and details; null if sending again may help."""
    head = reason.partition(": ")[0]
    return Refusal(head) if head in list(Refusal) else None


class Transport(Protocol):
    """Sends records to a log without waiting."""

    def send(
        self,
        topic: str,
        key: bytes,
        value: bytes,
        headers: Mapping[str, str],
        time: int,
        done: Callable[[str | None], None],
    ) -> bool:
        """Take the record over; false if there is no room now.

        ``done`` is called from poll() later, once: with null when the record is safe, or with the reason why it is
        not. A reason that ``refusal_of`` knows is final; after any other the record will be sent again.
        """

    def poll(self) -> None:
        """Run the callbacks that are due, in the caller's thread; never waits."""
