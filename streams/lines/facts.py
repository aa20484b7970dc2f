"""What is known of a log record from its text alone, found out once for all lines that differ only in variables.

Most lines of a job are some line seen before with other numbers. Folded they are the same, so such a line costs the
folding and one look into a table. First only its digits are folded, which is cheap for many lines at once; what may be
hexadecimal then is folded by itself. Turn, masked text and signature are those of the line itself; the rest only says
where somebody has to look closer.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import compress
from typing import cast

import msgspec

from streams.lines import phases
from streams.lines.chatter import Chatter, chatter_of
from streams.lines.devices import tells_device
from streams.lines.digits import fold_digits_of, fold_hexadecimal_of
from streams.lines.fatal import predefined_id, speaks_of_trouble
from streams.lines.launcher import tells_ends
from streams.lines.layout import tells_layout
from streams.lines.phases import downloads, turn_of
from streams.lines.series import readings_of
from streams.lines.signature import (
    HEX,
    LIMIT,
    UUID,
    XID,
    fold,
    may_be_hexadecimal,
    shape,
    shape_of_line,
    signature_of,
)
from streams.lines.traceback import has_traceback

LONGEST = phases.LONGEST
"""Characters of a short line: every reader of lines looks at least so far."""

KNOWN = 16_384
"""Folded short lines that are remembered."""

KNOWN_LONG = 1_024
"""Longer lines that are remembered."""


class Facts(msgspec.Struct, frozen=True, gc=False):
    """``masked`` is the record's text with variables masked, ``signature`` the id of that.

    ``predefined`` is the id of its predefined template, if any, ``chatter`` what kind of chatter it is. ``turn`` is the
    phase that it begins; it may be fatal, tell a layout or a device, give readings or report the end of a process only
    where these are true. A ``plain`` line says none of these but ends, and no download.
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
    ends: bool
    plain: bool


def facts_of(text: str) -> Facts:
    """The facts of a log record."""
    return facts_of_all([text])[0]


def facts_of_all(texts: Sequence[str]) -> list[Facts]:
    """The facts of each of many log records."""
    short = [len(text) <= LONGEST and "\n" not in text for text in texts]
    if all(short):
        return _of_lines(texts)
    of_line = iter(_of_lines([*compress(texts, short)]))
    return [next(of_line) if is_short else _of_record(text) for text, is_short in zip(texts, short, strict=True)]


class _Known(dict[str, Facts]):
    """Facts by what is left of a line once its digits are folded; forgotten all together when there are too many."""

    def remember(self, folded: str, facts: Facts) -> None:
        """Know the facts from now on."""
        if len(self) >= KNOWN:
            self.clear()
        self[folded] = facts


_KNOWN = _Known()


def _of_lines(lines: Sequence[str]) -> list[Facts]:
    """The facts of short lines; folding their digits is all that it takes for nearly every one."""
    folded = fold_digits_of(lines)
    known = [*map(_KNOWN.get, folded)]
    if all(known):
        return cast("list[Facts]", known)
    unknown = [at for at, facts in enumerate(known) if facts is None]
    apart = {at for at in unknown if _hangs_on_its_text(lines[at])}
    folding = [at for at in unknown if at not in apart]
    for at, whole in zip(folding, fold_hexadecimal_of([lines[at] for at in folding]), strict=True):
        facts = known[at] = _of_folded(whole)
        # Others that look so with their digits folded must not hold a hexadecimal word either, nor a code.
        if whole == folded[at] and not may_be_hexadecimal(whole) and not _hangs_on_its_text(whole):
            _KNOWN.remember(whole, facts)
    return [facts or _facts(line, shape(line)) for facts, line in zip(known, lines, strict=True)]


def _of_record(text: str) -> Facts:
    """The facts of a record that is no short line."""
    known = None
    if len(text) <= LIMIT and "\n" not in text and not _hangs_on_its_text(text):
        known = _of_long_line(fold(text), fold(text[:LONGEST]))
    return known or _facts(text, shape(text))


def _hangs_on_its_text(text: str) -> bool:
    """Whether more than what is left of a line once it is folded tells it from others: an Xid by its code."""
    return has_traceback(text) or (("Xid" in text or "NVSwitch" in text) and XID.search(text) is not None)


@lru_cache(maxsize=KNOWN)
def _of_folded(line: str) -> Facts:
    return _facts(line, shape_of_line(line), seen=_seen(line))


@lru_cache(maxsize=KNOWN_LONG)
def _of_long_line(line: str, head: str) -> Facts | None:
    """The facts of a folded line and its head, folded by itself; null where its text has to be asked for trouble."""
    if speaks_of_trouble(line):
        return None
    return _facts(line, shape_of_line(line), head, seen=_seen(line))


_HEXADECIMAL = ("0", "0x0", "0a0a0a0a", "a0a0a0a0")
"""What a reader may take a hexadecimal word for: a number (12345e10 is one), one with its base, or a word."""
_UUIDS = ("0-0-0-0-0", "0-a0-a0-a0-a0", "0a0-a0-a0-a0-a0", "a0-a0-a0-a0-a0")


def _seen(folded: str) -> list[str]:
    """A folded line as a reader may see it."""
    if HEX not in folded and UUID not in folded:
        return [folded]
    pairs = zip(_HEXADECIMAL, _UUIDS, strict=True)
    return [folded.replace(HEX, word).replace(UUID, uuid) for word, uuid in pairs]


def _facts(text: str, masked: str, head: str | None = None, *, seen: Sequence[str] = ()) -> Facts:
    """The facts of a text, where ``head`` is what of it tells a turn, a download or chatter.

    What tells a layout or readings is ``seen``; where that is nothing its text has to be asked each time.
    """
    signature, trouble = signature_of(masked), speaks_of_trouble(text)
    turn, loads = turn_of(head or text), downloads(head or text)
    layout, readings = not seen or any(map(tells_layout, seen)), not seen or any(map(readings_of, seen))
    device = tells_device(text)
    return Facts(
        masked=masked,
        signature=signature,
        predefined=predefined_id(text, signature) if trouble else "",
        chatter=chatter_of(head or text),
        turn=turn,
        downloads=loads,
        trouble=trouble,
        layout=layout,
        device=device,
        readings=readings,
        ends=tells_ends(text),
        plain=not (turn or loads or trouble or layout or device or readings),
    )
