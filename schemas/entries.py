"""Log entries to records, with what cannot be read as dead letters: failure is a value until the edge."""

from __future__ import annotations

from typing import Any

from schemas.codec import CodecError, decode
from schemas.ports import Entry
from schemas.results import DeadLetter
from schemas.topics import TOPICS


def read_entry(entry: Entry, topic: str, partition: int, stage: str) -> tuple[str, Any] | DeadLetter:
    """(kind, record) of an entry, or the dead letter that says why it has none; ``stage`` is who reads."""
    kind = entry.headers.get("schema", "")
    try:
        if kind not in TOPICS[topic].kinds:
            raise CodecError(f"schema {kind!r} does not belong on topic {topic}")
        return kind, decode(kind, entry.value)
    except CodecError as error:
        return dead_letter(entry, topic, partition, stage, str(error))


def dead_letter(entry: Entry, topic: str, partition: int, stage: str, reason: str) -> DeadLetter:
    """The entry as a dead letter, its bytes unchanged."""
    return DeadLetter(
        topic=topic,
        partition=partition,
        offset=entry.offset,
        stage=stage,
        reason=reason,
        key=entry.key,
        value=entry.value,
        headers=dict(entry.headers),
    )
