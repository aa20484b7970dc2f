"""What a worker's window is sent on as: stamped events and the summary, in records that their topics take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from schemas.codec import KINDS, encode, parts_of
from schemas.events import Batch, Event
from schemas.identity import Identity
from schemas.results import Window
from schemas.topics import STAMPED, TOPICS
from streams.packing import with_packs
from streams.stages.outputs import Output

PRODUCER = "rank-stage"

MOST_BYTES = 500_000
"""Of one batch, encoded; a worker may say more in a window than a topic takes in one record."""


def stamped_outputs(identity: Identity, stamped: Sequence[Event], window: str, time: int) -> list[Output]:
    """The events of a worker's window, named ``window``, kind by kind; those of no stamped topic are left out."""
    types = {KINDS[type_]: type_ for type_ in {type(event) for event in stamped}}
    return [
        Output(topic=STAMPED[kind], key=identity.key, record=batch, value=value, time=time)
        for kind in sorted(types)
        if kind in STAMPED
        for batch, value in _batches(identity, window, [event for event in stamped if type(event) is types[kind]])
    ]


def _batches(identity: Identity, window: str, stamped: list[Event]) -> Iterator[tuple[Batch[Any], bytes]]:
    whole = Batch(producer=PRODUCER, boot=window, seq=0, identity=identity, events=stamped)
    value = encode(whole)
    if len(value) <= MOST_BYTES:
        yield whole, value
        return
    for seq, part in enumerate(parts_of(whole, MOST_BYTES)):
        batch = msgspec.structs.replace(whole, seq=seq, events=part)
        yield batch, encode(batch)


def summary_output(summary: Window, time: int) -> Output:
    """A summary that its topic takes: without it the rank would be missing, so what matters least goes first."""
    topic, key = TOPICS["windows"], summary.identity.job
    packed = with_packs(summary)
    value = encode(packed)
    for field in ("described", "operations", "timelines", "signatures", "series", "stacks"):
        if topic.takes(len(key.encode("utf-8", "replace")) + len(value)):
            break
        if not getattr(summary, field):
            continue
        told = getattr(summary, field)
        dropped = {**summary.dropped, f"{field} too large": len(told) if isinstance(told, list) else 1}
        summary = msgspec.structs.replace(summary, dropped=dropped, **{field: [] if isinstance(told, list) else None})
        if field == "signatures":
            summary = msgspec.structs.replace(summary, tail=[])
        packed = with_packs(summary)
        value = encode(packed)
    return Output(topic="windows", key=key, record=packed, value=value, time=time)
