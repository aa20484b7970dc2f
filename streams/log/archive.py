"""A log in files: one file a partition, ``<topic>/<partition>.log``, framed and checksummed.

A frame's header is three little-endian numbers of four bytes: the body's length, the CRC-32 of those four bytes, the
CRC-32 of the body. The body is one entry in MessagePack. A writer that was killed leaves at most a torn last frame,
which reading ends at and the next writer cuts off; damage anywhere else is an error, never an end.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from schemas.ports import Entry
from schemas.topics import TOPICS
from streams.log.partition import partition_of

_HEADER = 12


class ArchiveError(ValueError):
    """A folder that is no archive, or one that is damaged before its end."""


class _Stored(msgspec.Struct, array_like=True):
    key: bytes
    value: bytes
    headers: dict[str, str]
    time: int


def _framed(body: bytes) -> bytes:
    length = len(body).to_bytes(4, "little")
    return length + zlib.crc32(length).to_bytes(4, "little") + zlib.crc32(body).to_bytes(4, "little") + body


def _number(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "little")


class _Partition:
    """One partition's file and where its frames begin."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.starts: list[int] = []
        self.size = 0
        if path.exists():
            self._scan(path.read_bytes())

    def _scan(self, data: bytes) -> None:
        at = 0
        while (length := self._length_at(data, at)) is not None:
            self.starts.append(at)
            at += _HEADER + length
        self.size = at

    def _length_at(self, data: bytes, at: int) -> int | None:
        """The length of the frame at ``at``; null at the end, a torn frame included."""
        if at + _HEADER > len(data):
            return None
        length = _number(data, at)
        if zlib.crc32(data[at : at + 4]) != _number(data, at + 4):
            # A file that grew before its bytes were written, as after a power loss, ends in zeros.
            if any(data[at:]):
                raise ArchiveError(f"{self.path}: damaged at byte {at}")
            return None
        end = at + _HEADER + length
        if end > len(data):
            return None
        if zlib.crc32(data[at + _HEADER : end]) != _number(data, at + 8):
            if any(data[end:]):
                raise ArchiveError(f"{self.path}: damaged at byte {at}")
            return None
        return length

    def append(self, body: bytes) -> int:
        with self.path.open("r+b" if self.path.exists() else "w+b") as file:
            file.seek(self.size)
            file.truncate()
            file.write(_framed(body))
        self.starts.append(self.size)
        self.size += _HEADER + len(body)
        return len(self.starts) - 1

    def read(self, offset: int, limit: int) -> list[Entry]:
        wanted = self.starts[offset : offset + limit]
        if not wanted:
            return []
        entries = []
        with self.path.open("rb") as file:
            file.seek(wanted[0])
            for number in range(offset, offset + len(wanted)):
                length = _number(file.read(_HEADER), 0)
                stored = msgspec.msgpack.decode(file.read(length), type=_Stored)
                entries.append(Entry(number, stored.key, stored.value, stored.headers, stored.time))
        return entries


class ArchiveLog:
    """A log under ``root``; created with ``partitions``, opened without.

    Raises ArchiveError if ``root`` holds no archive, another partition count, or damage before a file's end.
    """

    def __init__(self, root: Path, partitions: int | None = None) -> None:
        count = _partition_count(root, partitions)
        self._topics: dict[str, list[_Partition]] = {}
        for name in TOPICS:
            (root / name).mkdir(exist_ok=True)
            self._topics[name] = [_Partition(root / name / f"{number}.log") for number in range(count)]

    def partitions(self, topic: str) -> int:
        """How many partitions the topic has."""
        return len(self._topics[topic])

    def append(
        self, topic: str, key: bytes, value: bytes, headers: Mapping[str, str], time: int, partition: int | None = None
    ) -> tuple[int, int]:
        """Append to the key's partition, or to ``partition``; returns partition and offset."""
        parts = self._topics[topic]
        number = partition_of(key, len(parts)) if partition is None else partition
        return number, parts[number].append(msgspec.msgpack.encode(_Stored(key, value, dict(headers), time)))

    def flush(self) -> None:
        """Nothing to wait for: what was appended was handed to the operating system."""

    def read(self, topic: str, partition: int, offset: int, limit: int) -> Sequence[Entry]:
        """Up to ``limit`` entries from ``offset`` on."""
        return self._topics[topic][partition].read(offset, limit)

    def end(self, topic: str, partition: int) -> int:
        """The offset that the next entry will get."""
        return len(self._topics[topic][partition].starts)


def _partition_count(root: Path, wanted: int | None) -> int:
    """The archive's partition count; a new archive is marked with ``wanted``."""
    mark = root / "partitions"
    if mark.exists():
        text = mark.read_text(errors="replace").strip()
        if not text.isdecimal() or int(text) < 1:
            raise ArchiveError(f"{mark}: {text[:20]!r} is no partition count")
        if wanted not in (None, int(text)):
            raise ArchiveError(f"{root}: has {text} partitions, not {wanted}")
        return int(text)
    if wanted is None:
        raise ArchiveError(f"{root}: no archive there")
    if wanted < 1:
        raise ArchiveError(f"an archive needs at least one partition, not {wanted}")
    root.mkdir(parents=True, exist_ok=True)
    mark.write_text(f"{wanted}\n")
    return wanted
