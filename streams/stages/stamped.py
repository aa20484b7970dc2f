"""Events on their way on, stamped with phase and iteration: in batches of one kind that their topics take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from schemas.codec import encode, kind_of
from schemas.events import Batch, Event
from schemas.identity import Identity
from schemas.topics import STAMPED
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
    for seq, part in enumerate(_parts(identity, window, stamped)):
        yield Batch(producer=PRODUCER, boot=window, seq=seq, identity=identity, events=part)


def _parts(identity: Identity, window: str, stamped: list[Event]) -> list[list[Event]]:
    """Halved until each part fits: where it is cut depends on nothing but the events."""
    whole = Batch(producer=PRODUCER, boot=window, seq=0, identity=identity, events=stamped)
    if len(stamped) == 1 or len(encode(whole)) <= MOST_BYTES:
        return [stamped]
    middle = len(stamped) // 2
    return _parts(identity, window, stamped[:middle]) + _parts(identity, window, stamped[middle:])
