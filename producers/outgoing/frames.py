"""The files of a spool: framed, checksummed records, read past any damage with what is missing counted.

A frame's header is little-endian: a mark of four bytes, the body's length, the frame's number in its file, how many
events stand before it there, the CRC-32 of the body and the CRC-32 of the header. Behind damage reading goes on at the
next mark with a sound header and body, whose numbers say how much is missing. The mark is no UTF-8, so no text that a
record carries can look like one.
"""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path

import msgspec

from producers.outgoing.records import Record

MARK = b"\xffRW\xfe"
_HEAD = struct.Struct("<4sIIQII")
HEADER = _HEAD.size


class Segment(msgspec.Struct):
    """One file of a spool; ``records`` and ``events`` say what it holds unless an earlier boot wrote it."""

    number: int
    path: Path
    size: int
    records: int = 0
    events: int = 0
    counted: bool = False


class Found(msgspec.Struct, frozen=True):
    """A record and its number in its file."""

    number: int
    record: Record


class Gap(msgspec.Struct, frozen=True):
    """What is missing before the next frame; at a file's end of unknown length at least one of each."""

    records: int
    events: int


class _Head(msgspec.Struct, frozen=True):
    length: int
    number: int
    events_before: int
    checksum: int


def frame(body: bytes, number: int, events_before: int) -> bytes:
    """A record's bytes as frame ``number`` of its file."""
    head = _HEAD.pack(MARK, len(body), number, events_before, zlib.crc32(body), 0)[:-4]
    return head + zlib.crc32(head).to_bytes(4, "little") + body


def _head_at(data: bytes, at: int) -> _Head | None:
    if at + HEADER > len(data):
        return None
    mark, length, number, before, body, checksum = _HEAD.unpack_from(data, at)
    if mark != MARK or zlib.crc32(data[at : at + HEADER - 4]) != checksum:
        return None
    return _Head(length, number, before, body)


class SegmentReader:
    """Reads a segment front to back, also while it grows; what cannot be read is a Gap, never an error.

    ``at`` is the byte and ``number`` the number of the next frame.
    """

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        self.at = 0
        self.number = 0
        self._events = 0
        self._decoder = msgspec.msgpack.Decoder(Record)
        try:
            self._file = os.open(segment.path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            # Whatever it held is gone, which the first reading finds.
            self._file = -1

    def close(self) -> None:
        """Give the file back."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def upcoming(self) -> int:
        """The length in bytes of the next record; 0 at the end and before damage."""
        head = _head_at(self._read(self.at, HEADER), 0)
        return head.length if head else 0

    def next(self) -> Found | Gap | None:
        """The next record or what is missing before it; null at the end of what is written so far."""
        if self.at >= self.segment.size:
            return None
        head = _head_at(self._read(self.at, HEADER), 0)
        if head is None or head.number < self.number:
            return self._resume()
        if head.number > self.number:
            return self._gap(head)
        record = self._body(self._read(self.at + HEADER, head.length), head)
        if record is None:
            return self._resume()
        self.at += HEADER + head.length
        self.number += 1
        self._events += record.events
        return Found(head.number, record)

    def _read(self, at: int, length: int) -> bytes:
        length = min(length, self.segment.size - at)
        try:
            return os.pread(self._file, length, at) if self._file >= 0 and length > 0 else b""
        except OSError:
            return b""

    def _body(self, body: bytes, head: _Head) -> Record | None:
        if len(body) != head.length or zlib.crc32(body) != head.checksum:
            return None
        try:
            return self._decoder.decode(body)
        except msgspec.MsgspecError:
            return None

    def _resume(self) -> Gap:
        """Go to the next sound frame behind the one at ``at``, or to the end."""
        start = self.at + 1
        data = self._read(start, self.segment.size)
        at = data.find(MARK)
        while at >= 0:
            head = _head_at(data, at)
            if head is not None and head.number >= self.number:
                body = data[at + HEADER : at + HEADER + head.length]
                if self._body(body, head) is not None:
                    self.at = start + at
                    return self._gap(head)
            at = data.find(MARK, at + 1)
        return self._rest()

    def _gap(self, head: _Head) -> Gap:
        gap = Gap(head.number - self.number, max(0, head.events_before - self._events))
        self.number, self._events = head.number, head.events_before
        return gap

    def _rest(self) -> Gap:
        """Nothing sound is left: what is known to be missing, else one."""
        segment = self.segment
        gap = Gap(segment.records - self.number, segment.events - self._events) if segment.counted else Gap(1, 1)
        self.at = self.segment.size
        self.number += gap.records
        self._events += gap.events
        return gap
