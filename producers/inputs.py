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
SHOWN = 3


def canonical(unused: list[Unused]) -> list[Unused]:
    """The notes in canonical order, by file, line and reason."""
    return sorted(unused, key=lambda note: (note.file, note.line, note.reason, note.count))


def reasons(unused: list[Unused]) -> str:
    """Why files of kinds that are known could not be used, of a few of them, as the end of a sentence."""
    # Names of files must not steer a terminal.
    told = [f"; {one.file!a}"[:200] + f": {one.reason}" for one in canonical(unused) if one.reason != UNRECOGNISED]
    more = f"; {len(told) - SHOWN} more" if len(told) > SHOWN else ""
    return "".join(told[:SHOWN]) + more
