"""How far a spool's records are safe, in a file of twenty bytes that may be lost: then records are sent again."""

from __future__ import annotations

import contextlib
import os
import struct
import zlib
from pathlib import Path

import msgspec

_BODY = struct.Struct("<QQ")


class Place(msgspec.Struct, frozen=True, order=True):
    """Frame ``number`` of segment ``segment``."""

    segment: int
    number: int


NOWHERE = Place(0, 0)


class Position:
    """The place before which all is safe, written over itself whenever it has moved."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = -1
        self.place = NOWHERE

    def load(self) -> Place:
        """What an earlier boot wrote; the very beginning if that is lost or damaged."""
        try:
            data = self._path.read_bytes()
        except OSError:
            data = b""
        body = data[: _BODY.size]
        if data[_BODY.size :] == zlib.crc32(body).to_bytes(4, "little") and len(body) == _BODY.size:
            self.place = Place(*_BODY.unpack(body))
        return self.place

    def save(self, place: Place) -> None:
        """Write the place down if it is a new one; where that fails, a later boot sends more again than it must."""
        if place == self.place:
            return
        body = _BODY.pack(place.segment, place.number)
        with contextlib.suppress(OSError):
            if self._file < 0:
                self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            os.pwrite(self._file, body + zlib.crc32(body).to_bytes(4, "little"), 0)
            self.place = place

    def close(self) -> None:
        """Give the file back."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
