"""What a worker's window is sent on as: stamped events and the summary, in records that their topics take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from schemas.codec import encode, kind_of, parts_of
from schemas.events import Batch, Event
from schemas.identity import Identity
from schemas.results import Window
from schemas.topics import STAMPED, TOPICS
from streams.stages.outputs import Output

PRODUCER = "rank-stage"

MOST_BYTES = 500_000
"""Of one batch, encoded; a worker may say more in a window than a topic takes in one record."""


def stamped_outputs(identity: Identity, stamped: Sequence[Event], window: str, time: int) -> list[Output]:
    """The events of a worker's window, named ``window``, kind by kind; those of no stamped topic are left out."""
    by_kind: dict[str, list[Event]] = {}
    for event in stamped:
        kind = kind_of(event)
        if kind in STAMPED:
            by_kind.setdefault(kind, []).append(event)
    return [
        Output(topic=STAMPED[kind], key=identity.key, record=batch, time=time)
        for kind in sorted(by_kind)
        for batch in _batches(identity, window, by_kind[kind])
    ]


def _batches(identity: Identity, window: str, stamped: list[Event]) -> Iterator[Batch[Any]]:
    whole = Batch(producer=PRODUCER, boot=window, seq=0, identity=identity, events=stamped)
    for seq, part in enumerate(parts_of(whole, MOST_BYTES)):
        yield msgspec.structs.replace(whole, seq=seq, events=part)


def bounded(summary: Window) -> Window:
    """A summary that its topic takes: without it the rank would be missing, so its lines go first, then its series."""
    topic, key = TOPICS["windows"], len(summary.identity.job.encode("utf-8", "replace"))
    for field in ("signatures", "series", "stacks"):
        if topic.takes(key + len(encode(summary))):
            return summary
        dropped = {**summary.dropped, f"{field} too large": len(getattr(summary, field))}
        summary = msgspec.structs.replace(summary, dropped=dropped, **{field: []})
        if field == "signatures":
            summary = msgspec.structs.replace(summary, tail=[])
    return summary
