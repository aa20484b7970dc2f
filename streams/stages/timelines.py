"""The timelines of a worker in one window that its summary has room for."""

from __future__ import annotations

from schemas import events
from schemas.codec import encode

MOST_BYTES = 512_000
"""Of a worker's timelines in one window, encoded; of more the last steps are kept."""


class Timelines:
    """Collects a worker's timelines, in canonical order; ``left_out`` counts those without room."""

    def __init__(self) -> None:
        self.left_out = 0
        self._found: list[events.Timeline] = []

    def take(self, event: events.Timeline) -> None:
        """Take in one step."""
        self._found.append(event)

    def kept(self) -> list[events.Timeline]:
        """The last steps, in their order; of all workers alike, so that what is kept can be compared."""
        ordered = sorted(self._found, key=lambda one: (-1 if one.iteration is None else one.iteration, one.time))
        room = MOST_BYTES
        for at in range(len(ordered) - 1, -1, -1):
            room -= len(encode(ordered[at]))
            if room < 0:
                self.left_out = at + 1
                return ordered[at + 1 :]
        return ordered
