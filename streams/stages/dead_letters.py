"""Dead letters of the stages: windows that could not be summed up, and where what cannot be read goes."""

from __future__ import annotations

import msgspec

from schemas.identity import said_ranks, shortened
from schemas.results import DeadLetter, Snapshot, Window
from streams.stages.outputs import Output


def failed_window(key: str, end: int, stage: str, error: Exception) -> DeadLetter:
    """What is left of a window that made a stage fail; its end stands for the offset, no one entry is to blame."""
    return _lost(key, end, stage, f"window could not be summed up: {_said(error)}")


def failed_detector(key: str, detector: str, end: int, stage: str, error: Exception) -> DeadLetter:
    """What is left of what a detector would have found in the window of an attempt, ``key``, that ends at ``end``."""
    return _lost(f"{key}|{detector}", end, stage, f"detector {detector} failed and begins anew: {_said(error)}")


def invented_ranks(key: str, end: int, stage: str, left_out: list[Window]) -> DeadLetter:
    """What is left of summaries of ranks that an attempt, ``key``, has no room for in a window."""
    ranks = {one.identity.rank for one in left_out if one.identity.rank is not None}
    said = f"{len(left_out)} summaries of ranks that no job has, or too many beyond the announced world, are left out: "
    return _lost(key, end, stage, said + shortened(said_ranks(ranks), 200))


def _lost(key: str, end: int, stage: str, reason: str) -> DeadLetter:
    return DeadLetter(
        topic="windows", partition=-1, offset=end, stage=stage, reason=reason[:500], key=key.encode(), value=b""
    )


def _said(error: Exception) -> str:
    """What went wrong, in one line of what can be written down."""
    words = " ".join(f"{type(error).__name__}: {error}".split())
    return words.encode("utf-8", "replace").decode()


def lost_summaries(partition: int, end: int, count: int, stage: str) -> DeadLetter:
    """What is left of summaries that the log did not keep until their window's turn came."""
    reason = f"{count} summaries were no longer in the topic when their window was closed"
    return DeadLetter(topic="windows", partition=partition, offset=end, stage=stage, reason=reason, key=b"", value=b"")


def too_large(output: Output, stage: str, reason: str) -> DeadLetter:
    """What is left of a record of ours that its topic does not take; of a dead letter everything but its bytes."""
    if isinstance(output.record, DeadLetter):
        reason = f"{output.record.reason}; its {len(output.record.value)} bytes are too many and stay where they were"
        return msgspec.structs.replace(output.record, reason=reason, value=b"")
    return DeadLetter(
        topic=output.topic,
        partition=-1,
        offset=output.time,
        stage=stage,
        reason=reason,
        key=output.key.encode(),
        value=b"",
    )


def unsaved(snapshot: Snapshot, reason: str) -> DeadLetter:
    """What is left of a snapshot that its topic does not take: the one before it stays, and what was read since."""
    key = f"{snapshot.stage}|{snapshot.partition}"
    reason = f"the state of {key} is not written down, so whoever comes next reads again what came since: {reason}"
    return DeadLetter(
        topic="snapshots",
        partition=snapshot.partition,
        offset=snapshot.end,
        stage=snapshot.stage,
        reason=reason,
        key=key.encode(),
        value=b"",
    )


def dead_letter_output(letter: DeadLetter, time: int) -> Output:
    """The output that sends a dead letter to its topic."""
    key = f"{letter.topic}|{letter.partition}|{letter.offset}"
    return Output(topic="dead-letters", key=key, record=letter, time=time)
