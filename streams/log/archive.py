"""A log in files: one file a partition, ``<topic>/<partition>.log``, length-framed and checksummed.

A frame is length and CRC-32 of its body, four bytes each, little-endian, then the body: one entry in MessagePack.
A writer that was killed leaves at most a torn last frame, which reading ends at and the next writer cuts off.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from schemas.ports import Entry
from schemas.topics import TOPICS
from streams.log.partition import partition_of

_HEADER = 8


class ArchiveError(ValueError):
    """A folder that is no archive, or one that is damaged before its end."""


class _Stored(msgspec.Struct, array_like=True):
    key: bytes
    value: bytes
    headers: dict[str, str]
    time: int


class _Partition:
    """One partition's file and where its frames begin."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.starts: list[int] = []
        self.size = 0
        if path.exists():
            self._scan()

    def _scan(self) -> None:
        data = self.path.read_bytes()
        at = 0
        while at + _HEADER <= len(data):
            length = int.from_bytes(data[at : at + 4], "little")
            body = data[at + _HEADER : at + _HEADER + length]
            if len(body) < length:
                break
            if zlib.crc32(body) != int.from_bytes(data[at + 4 : at + 8], "little"):
                if at + _HEADER + length >= len(data):
                    break
                raise ArchiveError(f"{self.path}: damaged at byte {at}")
            self.starts.append(at)
            at += _HEADER + length
        self.size = at

    def append(self, body: bytes) -> int:
        with self.path.open("r+b" if self.path.exists() else "w+b") as file:
            file.seek(self.size)
            file.truncate()
            file.write(len(body).to_bytes(4, "little") + zlib.crc32(body).to_bytes(4, "little") + body)
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
                length = int.from_bytes(file.read(_HEADER)[:4], "little")
                stored = msgspec.msgpack.decode(file.read(length), type=_Stored)
                entries.append(Entry(number, stored.key, stored.value, stored.headers, stored.time))
        return entries


class ArchiveLog:
    """A log under ``root``; created with ``partitions``, opened without.

    Raises ArchiveError if ``root`` holds no archive, another partition count, or damage before a file's end.
    """

    def __init__(self, root: Path, partitions: int | None = None) -> None:
        mark = root / "partitions"
        if mark.exists():
            count = int(mark.read_text())
            if partitions not in (None, count):
                raise ArchiveError(f"{root}: has {count} partitions, not {partitions}")
        elif partitions is None:
            raise ArchiveError(f"{root}: no archive there")
        else:
            count = partitions
            root.mkdir(parents=True, exist_ok=True)
            mark.write_text(f"{count}\n")
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

    def read(self, topic: str, partition: int, offset: int, limit: int) -> Sequence[Entry]:
        """Up to ``limit`` entries from ``offset`` on."""
        return self._topics[topic][partition].read(offset, limit)

    def end(self, topic: str, partition: int) -> int:
        """The offset that the next entry will get."""
        return len(self._topics[topic][partition].starts)
