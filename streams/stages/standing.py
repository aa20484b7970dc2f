"""Where a stage stands, for those who watch the pipeline itself."""

from __future__ import annotations

import msgspec


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """``closed`` is the end (ns) of the last window closed, null before the first.

    ``held_bytes`` counts the entries that ``open_windows`` hold, ``duplicates`` batches that came twice, ``ahead_ns``
    how far an event of the open windows ran ahead of its partition's ticks at most. ``waits_for`` are the partitions of
    the stage before it whose word alone is missing, with the end (ns) up to which each has reported, if at all.
    """

    closed: int | None
    open_windows: int
    held_bytes: int
    duplicates: int = 0
    ahead_ns: int = 0
    waits_for: dict[int, int | None] = {}
