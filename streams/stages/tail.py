"""In which order a worker printed its lines, folded: a loop's turn is each of its lines once, by iteration."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from schemas.events import Event, Log
from schemas.results import SignatureCount

MOST_PAIRS = 40


def tail_of(stamped: Iterable[Event], signatures: list[SignatureCount]) -> list[tuple[int, int | None]]:
    """The last pairs of (place in ``signatures``, iteration), each where it first came in a turn.

    Lines that were not counted, and chatter, which repeats as it likes, have no place.
    """
    places = {one.signature: place for place, one in enumerate(signatures) if not one.chatter}
    pairs: deque[tuple[int, int | None]] = deque(maxlen=MOST_PAIRS)
    iteration: int | None = None
    seen: set[str] = set()
    for event in stamped:
        if not isinstance(event, Log):
            continue
        if event.iteration != iteration:
            iteration, seen = event.iteration, set()
        if event.signature not in seen:
            seen.add(event.signature)
            if event.signature in places:
                pairs.append((places[event.signature], iteration))
    return list(pairs)
