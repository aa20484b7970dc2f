"""Rows of what did not make it: late events and records that could not be read."""

from __future__ import annotations

from schemas.results import DeadLetter, Late
from sinks.rows.common import Block, identity_values, single

_EARLIEST, _LATEST = -(2**63), 2**63 - 1
"""What the column of send times holds: whoever sent the record may have written any number."""


def late_block(late: Late, run_id: str) -> Block:
    """One row per late batch."""
    return single(
        "late",
        {
            **identity_values(late.identity, run_id),
            "id": late.id,
            "ts": late.window_end,
            "topic": late.topic,
            "partition": late.partition,
            "producer": late.producer,
            "boot": late.boot,
            "seq": late.seq,
            "events": late.events,
        },
    )


def dead_letter_block(letter: DeadLetter, run_id: str, sent: int) -> Block:
    """One row; ``sent`` is the send time of the log record, in nanoseconds."""
    return single(
        "dead_letters",
        {
            "run_id": run_id,
            "topic": letter.topic,
            "partition": letter.partition,
            "offset": letter.offset,
            "stage": letter.stage,
            "origin": letter.key.decode("utf-8", "replace") if letter.partition < 0 else "",
            "reason": letter.reason,
            "sent": min(max(sent, _EARLIEST), _LATEST),
            "key": letter.key,
            "value": letter.value,
            "headers": letter.headers,
        },
    )
