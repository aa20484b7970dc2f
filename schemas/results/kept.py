"""What is kept of the work itself: records that could not be read, and stages' snapshots."""

from __future__ import annotations

import msgspec

from schemas.results.words import Record


class DeadLetter(Record, frozen=True, omit_defaults=True, kw_only=True):
    """A record that could not be read: its bytes unchanged, where it stood, and why."""

    topic: str
    partition: int
    offset: int
    stage: str
    reason: str
    key: bytes
    value: bytes
    headers: dict[str, str] = {}


class Snapshot(Record, frozen=True, omit_defaults=True, kw_only=True):
    """A stage's state at a window boundary, with the offsets from which to read on.

    ``config`` names the configuration under which it was written; under another it means something else.
    """

    stage: str
    partition: int
    end: int
    config: str
    offsets: dict[str, int]
    state: msgspec.Raw
