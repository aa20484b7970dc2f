"""Flight-recorder dumps of PyTorch as they lie in files: a pickle of plain values, or JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from producers.readers import pickled
from producers.rows import Fields, parse, printable
from producers.scan import Source
from producers.times import possible
from schemas.identity import MOST_RANKS

MOST_BYTES = 256 * 1024 * 1024
LONGEST_NAME = 200
_NUMBER = re.compile(r"\d{1,9}")


class Group(msgspec.Struct, frozen=True, order=True):
    """A process group: what it is for, and who belongs to it, where a dump says so.

    Its ``name`` is a number that each rank counts for itself, so it tells groups apart within one dump only.
    """

    description: str
    ranks: tuple[int, ...]
    name: str = ""

    @property
    def shared(self) -> tuple[str, tuple[int, ...]]:
        """What all members call it alike."""
        return self.description, self.ranks


class Status(msgspec.Struct, frozen=True):
    """How far one rank has come in one group, by its own count; -1 where it has not begun."""

    enqueued: int
    completed: int


class Dump(msgspec.Struct, frozen=True):
    """One dump: its file, the entries that can be used, groups by name, and status by the rank's number of a group."""

    file: str
    entries: list[Fields]
    groups: dict[str, Group]
    statuses: dict[str, Status]
    skipped: int

    @property
    def numbers(self) -> dict[str, Group]:
        """Groups by the number that ``statuses`` go by, as far as entries say which is which."""
        found: dict[str, Group] = {}
        for entry in self.entries:
            number = integer(entry.get("pg_id"))
            if number is not None:
                found[str(number)] = self.group_of(entry)
        return found

    def group_of(self, entry: Fields) -> Group:
        """The group of an entry."""
        named = entry.get("process_group")
        parts = [text(part) for part in named] if isinstance(named, list | tuple) else []
        name, description = (parts[0] if parts else ""), (parts[1] if len(parts) > 1 else "")
        known = self.groups.get(name)
        return Group(description, known.ranks if known else (), name)


def is_dump(value: Any) -> bool:
    """Whether a value is a flight-recorder dump; one in which nothing is under way may have no entries."""
    if not isinstance(value, dict):
        return False
    entries = value.get("entries", [])
    return isinstance(entries, list) and ("entries" in value or "pg_status" in value) and _names_version(value)


def _names_version(value: Fields) -> bool:
    return bool({"pg_status", "pg_config", "version"} & value.keys())


def read(source: Source) -> Dump | None:
    """The dump in a file, null if it is something else. Raises OSError, and ValueError with the reason."""
    if source.size > MOST_BYTES:
        raise ValueError(f"file of {source.size} bytes, more than {MOST_BYTES}")
    raw = source.path.read_bytes()
    value = pickled.load(raw) if raw.startswith(pickled.HEADS) else parse(raw)
    if not is_dump(value):
        return None
    all_entries = value.get("entries", [])
    entries = [entry for entry in all_entries if _usable(entry)]
    return Dump(
        file=source.file,
        entries=entries,
        groups=_groups(value.get("pg_config")),
        statuses=_statuses(value.get("pg_status")),
        skipped=len(all_entries) - len(entries),
    )


def _usable(entry: Any) -> bool:
    return isinstance(entry, dict) and integer(entry.get("collective_seq_id")) is not None


def integer(value: Any) -> int | None:
    """A number as it is, one in a text as the number, anything else as null."""
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,18}", value):
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**62 else None


def text(value: Any) -> str:
    """A short text or a number as text, anything else as none."""
    if isinstance(value, str):
        return printable(value[:LONGEST_NAME])
    return str(value) if integer(value) is not None else ""


def created(entry: Fields) -> int:
    """When an operation was enqueued (ns), 0 where that is no time."""
    time = integer(entry.get("time_created_ns")) or 0
    return time if possible(time) else 0


def _groups(config: Any) -> dict[str, Group]:
    found: dict[str, Group] = {}
    for key, group in _sorted(config):
        listed = group.get("ranks") if isinstance(group, dict) else None
        if isinstance(listed, str):
            listed = [int(rank) for rank in _NUMBER.findall(listed)]
        if isinstance(listed, list | tuple):
            # Gloo leaves the name empty; what it lists there are the ranks of the default group.
            ranks = tuple(rank for rank in listed[:MOST_RANKS] if isinstance(rank, int) and 0 <= rank < MOST_RANKS)
            found[key or "0"] = Group(text(group.get("desc")), ranks, key or "0")
    return found


def _statuses(status: Any) -> dict[str, Status]:
    found: dict[str, Status] = {}
    for key, own in _sorted(status):
        if not isinstance(own, dict):
            continue
        enqueued = integer(own.get("last_enqueued_collective"))
        completed = integer(own.get("last_completed_collective"))
        if enqueued is not None and completed is not None and -1 <= completed <= enqueued:
            found[key] = Status(enqueued, completed)
    return found


def _sorted(value: Any) -> Iterable[tuple[str, Any]]:
    pairs = value.items() if isinstance(value, dict) else []
    return sorted(((text(key), own) for key, own in pairs), key=lambda pair: pair[0])
