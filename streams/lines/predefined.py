"""Looks up predefined templates: what a line says that the field knows, under an id that is the same in every job."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from schemas.results import CausalRole
from streams.lines.signature import LIMIT, peel
from streams.lines.vocabulary import gpus, kernel, launcher, nccl, network, storage, training
from streams.lines.vocabulary.template import Predefined
from streams.lines.vocabulary.xid import FOLLOWERS, code_of, pci_id

VOCABULARY: tuple[Predefined, ...] = (
    *training.LATE_PEERS,
    *nccl.LATE_PEERS,
    *nccl.LOST_PEERS,
    *training.LOST_PEERS,
    *training.OWN_ERRORS,
    *nccl.OWN_ERRORS,
    *kernel.KERNEL,
    *gpus.GPUS,
    *network.NETWORK,
    *storage.STORAGE,
    *nccl.WATCHDOG_ENDED,
    *training.PROCESS_GROUP,
    *nccl.BESIDE,
    *training.BESIDE,
    *launcher.LAUNCHER,
)
"""All of it, in the order in which it is tried: what victims print comes before what a cause may look like."""

_NAME = re.compile(r"\(\?P<\w{1,32}>")


def any_of(patterns: Iterable[str]) -> re.Pattern[str]:
    """One pattern that is found wherever one of them is; each begins with a letter.

    Those with the same first letter stand together, so that at most places of a text one look at the letter there tells
    that none of them begins. Groups lose their names, which may be told once only.
    """
    by_letter: dict[str, list[str]] = {}
    for pattern in patterns:
        by_letter.setdefault(pattern[0], []).append(_NAME.sub("(?:", pattern[1:]))
    return re.compile("|".join(f"{letter}(?:{'|'.join(rest)})" for letter, rest in sorted(by_letter.items())))


ANY_LINE = any_of(pattern.pattern for entry in VOCABULARY for pattern in entry.lines)
"""Whether any entry speaks of a line at all: almost none does, and one search says so."""


class Spoken(msgspec.Struct, frozen=True):
    """A predefined template, found in a text, with what was extracted from it."""

    template: Predefined
    said: str
    values: dict[str, str] = {}


def said_in(text: str) -> str:
    """What of a record without a traceback is looked at: its first line, peeled and bounded."""
    return peel(text.split("\n", 1)[0][:LIMIT])


def speaks(text: str) -> bool:
    """Whether a record without a traceback says anything predefined."""
    return ANY_LINE.search(said_in(text)) is not None


def spoken_line(text: str) -> Spoken | None:
    """The predefined template of a record without a traceback, or null."""
    said = said_in(text)
    if ANY_LINE.search(said) is None:
        return None
    for entry in VOCABULARY:
        for pattern in entry.lines:
            found = pattern.search(said)
            if found is not None:
                return _spoken(entry, said, found)
    return None


def spoken_error(error: str) -> Spoken | None:
    """The predefined template of a traceback's closing line, or null."""
    for entry in VOCABULARY:
        found = entry.error.search(error) if entry.error is not None else None
        if found is not None:
            return _spoken(entry, error, found)
    return None


def _spoken(entry: Predefined, said: str, found: re.Match[str]) -> Spoken:
    values = _told(found.groupdict())
    for pattern in entry.more:
        more = pattern.search(said)
        if more is not None:
            values = _told(more.groupdict()) | values
    if "pci" in values:
        values["pci"] = pci_id(values["pci"])
    if entry.coded:
        entry = _of_code(entry, values)
    return Spoken(entry, said, values)


def _told(groups: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in groups.items() if value}


def _of_code(entry: Predefined, values: dict[str, str]) -> Predefined:
    """The entry for the code that the line has; numbers are the vendor's, so ids are no wider than they are."""
    code = str(int(values["code"]))
    values["code"] = code
    if entry.id == "sxid":
        role: CausalRole = "candidate" if values.get("severity", "").lower() == "fatal" else "confirmation"
        return msgspec.structs.replace(entry, id=f"sxid.{code}", role=role)
    known = code_of(code)
    return msgspec.structs.replace(entry, id=f"xid.{code}", role=known.role, area=known.area, action=known.action)


def follows(spoken: Spoken) -> bool:
    """Whether it is an Xid that only speaks of the one before it on the same GPU."""
    return spoken.template.id in _FOLLOWING


_FOLLOWING = frozenset(f"xid.{code}" for code in FOLLOWERS)
