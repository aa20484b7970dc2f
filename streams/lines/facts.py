"""What is known of a log record from its text alone, found out once for all lines that differ only in variables.

Most lines of a job are some line seen before with other numbers. Folded they are the same, so such a line costs the
folding and one look into a table. Turn, masked text and signature are those of the line itself; the rest only says
where somebody has to look closer.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from streams.lines import phases
from streams.lines.chatter import Chatter, chatter_of
from streams.lines.devices import tells_device
from streams.lines.fatal import predefined_id, speaks_of_trouble
from streams.lines.layout import tells_layout
from streams.lines.phases import downloads, turn_of
from streams.lines.series import readings_of
from streams.lines.signature import HEX, UUID, XID, fold, shape, shape_of_line, signature_of
from streams.lines.traceback import has_traceback

LONGEST = phases.LONGEST
"""Characters; every reader of lines looks at least so far, and a longer line is seldom seen again."""

KNOWN = 16_384
"""Folded lines that are remembered."""


class Facts(msgspec.Struct, frozen=True):
    """``masked`` is the record's text with variables masked, ``signature`` the id of that.

    ``predefined`` is the id of its predefined template, if any, ``chatter`` what kind of chatter it is. ``turn`` is the
    phase that it begins; it may be fatal, tell a layout or a device or give readings only where these are true.
    """

    masked: str
    signature: str
    predefined: str
    chatter: Chatter
    turn: str
    downloads: bool
    trouble: bool
    layout: bool
    readings: bool
    device: bool


def facts_of(text: str) -> Facts:
    """The facts of a log record."""
    if _is_foldable(text):
        return _of_folded(fold(text))
    return _facts(text, shape(text), certain=False)


def may_be_trouble(text: str) -> bool:
    """Whether a log record may be fatal, which is all that is asked on its arrival."""
    return _of_folded(fold(text)).trouble if _is_foldable(text) else speaks_of_trouble(text)


def _is_foldable(text: str) -> bool:
    if len(text) > LONGEST or "\n" in text or has_traceback(text):
        return False
    # The code of an Xid tells lines apart, and folded it is gone.
    return not (("Xid" in text or "NVSwitch" in text) and XID.search(text))


@lru_cache(maxsize=KNOWN)
def _of_folded(line: str) -> Facts:
    # A hexadecimal word may hold a number that a reader takes: 12345e10.
    return _facts(line, shape_of_line(line), certain=HEX not in line and UUID not in line)


def _facts(text: str, masked: str, *, certain: bool) -> Facts:
    signature, trouble = signature_of(masked), speaks_of_trouble(text)
    return Facts(
        masked=masked,
        signature=signature,
        predefined=predefined_id(text, signature) if trouble else "",
        chatter=chatter_of(text),
        turn=turn_of(text),
        downloads=downloads(text),
        trouble=trouble,
        layout=not certain or tells_layout(text),
        readings=not certain or bool(readings_of(text)),
        device=tells_device(text),
    )
