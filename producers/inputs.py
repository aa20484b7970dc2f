"""What a reading used and what it left aside, and why."""

from __future__ import annotations

import msgspec


class Unused(msgspec.Struct, frozen=True):
    """Something that was left aside or mended: ``line`` counts from 1, 0 means the whole file."""

    file: str
    line: int
    reason: str
    count: int = 1


class Inputs(msgspec.Struct, frozen=True):
    """How many files were recognised, how many rows and log records they held, and what was left aside."""

    files: int
    records: int
    unused: list[Unused]


class UnreadableRecording(ValueError):  # noqa: N818 - the name says what the user gave, not what went wrong
    """A folder out of which nothing can be read; the message is for the user."""


UNRECOGNISED = "not a recognised format"
"""The reason given for a file that no reader knows."""


def canonical(unused: list[Unused]) -> list[Unused]:
    """The notes in canonical order, by file, line and reason."""
    return sorted(unused, key=lambda note: (note.file, note.line, note.reason, note.count))
