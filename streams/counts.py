"""What a stage has done since its process began: every entry that was not used is counted here."""

from __future__ import annotations

from collections import Counter

import msgspec

from schemas.results import DeadLetter, Late, Window

SIZES = (1_000, 10_000, 100_000, 1_000_000)
"""Bounds (bytes) between which the sizes of entries are told apart."""


class Counts:
    """Entries taken in, windows closed, and what was late, dropped or unreadable.

    ``gone`` are entries that the log did not keep long enough to be read, ``dropped`` counts by reason what windows
    left out, ``sizes`` entries by the least of ``SIZES`` that they do not exceed, else 0.
    """

    def __init__(self) -> None:
        self.entries = 0
        self.bytes = 0
        self.windows = 0
        self.late_events = 0
        self.dead_letters = 0
        self.gone = 0
        self.dropped: Counter[str] = Counter()
        self.sizes: Counter[int] = Counter()

    def entry(self, size: int) -> None:
        """Count an entry of ``size`` bytes."""
        self.entries += 1
        self.bytes += size
        self.sizes[next((bound for bound in SIZES if size <= bound), 0)] += 1

    def output(self, record: msgspec.Struct) -> None:
        """Count what a record says of things not used."""
        if isinstance(record, DeadLetter):
            self.dead_letters += 1
        elif isinstance(record, Late):
            self.late_events += record.events
        elif isinstance(record, Window):
            self.dropped.update(record.dropped)
