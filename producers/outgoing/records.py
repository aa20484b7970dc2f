"""Records on their way to a log, and dead letters of what cannot go there."""

from __future__ import annotations

import msgspec

from schemas.codec import encode, headers
from schemas.ids import stable_id
from schemas.results import DeadLetter

DEAD_LETTERS = "dead-letters"
STAGE = "producer"
OVERHEAD = 600
_MOST_KEY = 1_000
_MOST_REASON = 500


class Record(msgspec.Struct, frozen=True, array_like=True):
    """One record of a log before it has a place there. ``time`` is the send time (ns); ``events`` how many it holds."""

    topic: str
    key: bytes
    value: bytes
    headers: dict[str, str]
    time: int
    events: int

    @property
    def size(self) -> int:
        """Bytes that it takes in memory, about."""
        return len(self.value) + len(self.key) + OVERHEAD


def dead_letter(topic: str, key: bytes, value: bytes, described: dict[str, str], reason: str, most: int) -> DeadLetter:
    """What did not reach ``topic``, its value cut at ``most`` bytes; a hash stands for the offset it never got."""
    if len(value) > most:
        reason = f"{reason[: _MOST_REASON - 100]}; the first {most} of {len(value)} bytes are kept"
    name = stable_id(topic, key.decode("latin-1"), value.decode("latin-1"))
    return DeadLetter(
        topic=topic,
        partition=-1,
        offset=int(name, 16) >> 1,
        stage=STAGE,
        reason=reason[:_MOST_REASON],
        key=key[:_MOST_KEY],
        value=value[:most],
        headers=described,
    )


def letter_record(letter: DeadLetter, time: int) -> Record:
    """The record that brings a dead letter to its topic."""
    key = f"{letter.topic}|{letter.partition}|{letter.offset}".encode()
    return Record(DEAD_LETTERS, key, encode(letter), headers("dead_letter"), time, 1)
