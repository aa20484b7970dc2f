"""What was read and not taken in yet, bounded in bytes: between the readers of an event loop and who takes it."""

from __future__ import annotations

import asyncio

from schemas.ports import Entry
from streams.runner import Place

ENTRY_BYTES = 500
"""What an entry takes in memory besides its bytes: ticks are small and many."""


class Inbox:
    """For one event loop: many put, one takes. ``most_bytes`` of entries may lie in it before those who put wait."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._entries: dict[Place, list[Entry]] = {}
        self._bytes = 0
        self._arrived, self._room = asyncio.Event(), asyncio.Event()

    async def put(self, place: Place, entry: Entry) -> None:
        """Put an entry behind those of its place; waits while there is no room."""
        while self._bytes > self._most_bytes:
            self._room.clear()
            await self._room.wait()
        self._entries.setdefault(place, []).append(entry)
        self._bytes += len(entry.value) + len(entry.key) + ENTRY_BYTES
        self._arrived.set()

    async def taken(self) -> list[tuple[Place, list[Entry]]]:
        """All that lies in it, as soon as there is something."""
        await self._arrived.wait()
        return self.emptied()

    def emptied(self) -> list[tuple[Place, list[Entry]]]:
        """All that lies in it now."""
        found, self._entries, self._bytes = list(self._entries.items()), {}, 0
        self._arrived.clear()
        self._room.set()
        return found
