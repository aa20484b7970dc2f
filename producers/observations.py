"""Events with their owners and places, before they are batched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from producers.clocks import BACK
from producers.rows import Row
from schemas.events import Event
from schemas.identity import Identity


class Observation(msgspec.Struct, frozen=True, gc=False):
    """One event, whose it is, when it stands in the log (ns), and where it was read."""

    identity: Identity
    arrival: int
    event: Event
    file: str
    place: int


def arrivals(rows: Iterable[Row]) -> Iterator[tuple[Row, int]]:
    """Captured rows and when (ns) they stand in the log, node by node.

    Small reorderings do not make a row early; where a file starts over in time, each row keeps its own.
    """
    latest: dict[str, int] = {}
    for row in rows:
        node = row.text("node")
        before = latest.get(node, row.time)
        latest[node] = row.time if row.time < before - BACK else max(before, row.time)
        yield row, latest[node]
