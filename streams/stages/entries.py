"""Log entries to records, with what cannot be read as dead letters: failure is a value until the edge."""

from __future__ import annotations

from typing import Any

from schemas.codec import CodecError, decode
from schemas.ports import Entry
from schemas.results import DeadLetter
from streams.stages.outputs import Output


def read_entry(
    entry: Entry, topic: str, partition: int, stage: str, kinds: tuple[str, ...]
) -> tuple[str, Any] | DeadLetter:
    """(kind, record) of an entry, or the dead letter that says why it has none."""
    kind = entry.headers.get("schema", "")
    try:
        if kind not in kinds:
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


def failed_window(key: str, end: int, stage: str, error: Exception) -> DeadLetter:
    """What is left of a window that made a stage fail; its end stands for the offset, no one entry is to blame."""
    reason = f"window could not be summed up: {type(error).__name__}: {error}"
    return DeadLetter(
        topic="windows", partition=-1, offset=end, stage=stage, reason=reason[:500], key=key.encode(), value=b""
    )


def dead_letter_output(letter: DeadLetter, time: int) -> Output:
    """The output that sends a dead letter to its topic."""
    key = f"{letter.topic}|{letter.partition}|{letter.offset}"
    return Output(topic="dead-letters", key=key, record=letter, time=time)
