"""What is known of a log record from its text alone, found out once for all lines that differ only in variables.

Most lines of a job are some line seen before with other numbers. Folded they are the same, so such a line costs the
folding and one look into a table. Whatever is asked of a folded line here gives the answer of the line itself, or one
that only makes somebody look closer.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from streams.lines.fatal import speaks_of_trouble
from streams.lines.layout import tells_layout
from streams.lines.phases import downloads, turn_of
from streams.lines.series import readings_of
from streams.lines.signature import HEX, UUID, fold, shape, shape_of_line, signature_of

LONGEST = 400
"""Characters; every reader of lines looks at least so far, and a longer line is seldom seen again."""

KNOWN = 16_384
"""Folded lines that are remembered."""


class Facts(msgspec.Struct, frozen=True):
    """``masked`` is the record's text with variables masked, ``signature`` the id of that.

    ``turn`` is the phase that it begins; it may be fatal, tell a layout or give readings only where these are true.
    """

    masked: str
    signature: str
    turn: str
    downloads: bool
    trouble: bool
    layout: bool
    readings: bool


def facts_of(text: str) -> Facts:
    """The facts of a log record."""
    if len(text) <= LONGEST and "\n" not in text:
        return _of_folded(fold(text))
    return _facts(text, shape(text))


@lru_cache(maxsize=KNOWN)
def _of_folded(line: str) -> Facts:
    facts = _facts(line, shape_of_line(line))
    # A hexadecimal word may be a number that readings take: 12345e10.
    return msgspec.structs.replace(facts, readings=True) if HEX in line or UUID in line else facts


def _facts(text: str, masked: str) -> Facts:
    return Facts(
        masked=masked,
        signature=signature_of(masked),
        turn=turn_of(text),
        downloads=downloads(text),
        trouble=speaks_of_trouble(text),
        layout=tells_layout(text),
        readings=bool(readings_of(text)),
    )
