"""Learned libraries in the compacted topic: the latest version under each name."""

from __future__ import annotations

import msgspec

from schemas.codec import encode, headers
from schemas.library import Library
from streams.library.file import library_in
from streams.library.record import MOST_NUMBER, LibraryError, checked
from streams.log.kafka import KafkaLog

READ = 16
"""Entries in memory at once: one may have megabytes."""


def stored_libraries(log: KafkaLog) -> dict[str, bytes]:
    """The latest record under each name, not decoded; a name whose record is empty was deleted. Raises LogError."""
    found: dict[str, bytes] = {}
    since, until = log.begin("library", 0), log.end("library", 0)
    while since < until:
        entries = log.read("library", 0, since, min(READ, until - since))
        if not entries:
            break
        found |= {entry.key.decode("utf-8", "replace"): entry.value for entry in entries}
        since = entries[-1].offset + 1
    return {name: value for name, value in sorted(found.items()) if value}


def stored_library(log: KafkaLog, name: str | None) -> Library:
    """The latest version under this name; of the only one where no name is given.

    Raises LibraryError, which says what there is, and LogError.
    """
    found = stored_libraries(log)
    topic = log.name_of("library")
    if not found:
        raise LibraryError(f"topic {topic} holds no library; `rankwatch library import` brings one there")
    if name is None and len(found) == 1:
        name = next(iter(found))
    if name is None or name not in found:
        wanted = "say which by --name" if name is None else f"but not {name!r}"
        raise LibraryError(f"topic {topic} holds {', '.join(map(repr, found))}; {wanted}")
    return library_in(found[name], f"topic {topic}")


def store_library(log: KafkaLog, library: Library) -> tuple[Library, bool]:
    """Store it under its name with the next number; returns what is there now, and whether it was new.

    What is there already keeps its number; what cannot be read is replaced. Raises LibraryError for one that cannot be
    used, and LogError.
    """
    library = checked(library)
    there = _readable(stored_libraries(log).get(library.name, b""))
    if there is not None:
        if there.version == library.version:
            return there, False
        if there.number >= MOST_NUMBER:
            raise LibraryError(f"library {library.name} has had its last number, {MOST_NUMBER}; take another name")
        library = msgspec.structs.replace(library, number=max(there.number + 1, library.number))
    log.append("library", library.name.encode(), encode(library), headers("library"), 0)
    log.flush()
    return library, True


def _readable(value: bytes) -> Library | None:
    try:
        return library_in(value, "")
    except LibraryError:
        return None
