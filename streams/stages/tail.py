"""In which order a worker printed its lines, folded: a loop's turn is each of its lines once, by iteration."""

from __future__ import annotations

from collections.abc import Iterable

from schemas.events import Event, Log
from schemas.results import SignatureCount

MOST_PAIRS = 40


def tail_of(stamped: Iterable[Event], signatures: list[SignatureCount]) -> list[tuple[int, int | None]]:
    """The last pairs of (place in ``signatures``, iteration), each where it first came.

    Lines that were not counted, and chatter, which repeats as it likes, have no place.
    """
    places = {one.signature: place for place, one in enumerate(signatures) if not one.chatter}
    pairs: dict[tuple[int, int | None], None] = {}
    for event in stamped:
        if isinstance(event, Log) and event.signature in places:
            pairs.setdefault((places[event.signature], event.iteration))
    return list(pairs)[-MOST_PAIRS:]
