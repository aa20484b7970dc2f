"""Raw lines of a log file, bounded in memory and cleaned of what only a terminal needs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from producers.envelopes.wrap import NONE, Wrap

LIMIT = 65_536
"""Bytes of a line that are kept."""
_MOST_HEAD = 1_024
_SNIFF = 8_192
_MOST_CONTROL = 0.3
_NO_TEXT = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f\ufffd]")
_ANSI = re.compile(r"\x1b(?:\[[0-9;?]{0,32}[ -/]{0,4}[@-~]|\][^\x07\x1b]{0,256}(?:\x07|\x1b\\)|[@-Z\\-_])")


_PACKED = (b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\x00", b"BZh91AY&SY", b"\x04\x22\x4d\x18", b"PK\x03\x04")
"""How files of gzip, zstd, xz, bzip2, lz4 and zip begin."""


class Line(msgspec.Struct, frozen=True, gc=False):
    """One line of text: ``number`` from 1, ``offset`` and ``size`` in bytes as they stand in the file.

    ``nuls`` NUL bytes were taken out of it. ``head`` is how it began before a carriage return put other text in its
    place. ``wrap`` and ``stamp`` (ns UTC) are what envelopes say of it; ``torn`` if one was cut off or never ended.
    """

    number: int
    offset: int
    size: int
    text: str
    cut: bool = False
    invalid: bool = False
    nuls: int = 0
    head: str = ""
    wrap: Wrap = NONE
    stamp: int | None = None
    torn: bool = False


def is_binary(path: Path) -> bool:
    """Whether the first 8 KiB hold NUL bytes and are no text for a good part, or begin an archive. Raises OSError."""
    with path.open("rb") as file:
        head = file.read(_SNIFF)
    if b"\0" not in head:
        return False
    text = head.decode("utf-8", "replace")
    return _is_tar(head) or len(_NO_TEXT.findall(text)) > _MOST_CONTROL * len(text)


def is_packed(path: Path) -> bool:
    """Whether a file is compressed, so that what it holds cannot be read as it is. Raises OSError."""
    with path.open("rb") as file:
        return file.read(max(map(len, _PACKED))).startswith(_PACKED)


def is_archive(path: Path) -> bool:
    """Whether a file is a tar archive, in which the lines of other files stand as they are. Raises OSError."""
    with path.open("rb") as file:
        return _is_tar(file.read(_SNIFF))


def _is_tar(head: bytes) -> bool:
    return head[257:262] == b"ustar"


def read_lines(path: Path, limit: int = LIMIT) -> Iterator[Line]:
    """The lines that are not blank or held NUL bytes, with the blanks at their ends.

    Never holds more than a few ``limit`` bytes of one line. Raises OSError.
    """
    with path.open("rb") as file:
        number, offset = 0, 0
        while first := file.readline(limit):
            number += 1
            raw = _whole(file, first, limit)
            line = _line(number, offset, raw)
            offset += raw.size
            if line.nuls or line.text.strip():
                yield line


class _Raw(msgspec.Struct, frozen=True):
    """The bytes to keep of a line, its size in the file, whether it was cut, its NULs, and what was written over."""

    kept: bytes
    size: int
    cut: bool = False
    nuls: int = 0
    head: bytes = b""


def _line(number: int, offset: int, raw: _Raw) -> Line:
    try:
        text, invalid = raw.kept.decode("utf-8"), False
    except UnicodeDecodeError as error:
        # A cut may fall inside a character; that alone is no fault of the file.
        invalid = not (raw.cut and error.start >= len(raw.kept) - 3)
        text = raw.kept.decode("utf-8", "replace")
    if number == 1:
        text = text.removeprefix("\ufeff")
    if not raw.head:
        return Line(number, offset, raw.size, plain(text), raw.cut, invalid, raw.nuls)
    head = plain(raw.head.decode("utf-8", "replace"))
    return Line(number, offset, raw.size, plain(text), raw.cut, invalid, raw.nuls, head)


def plain(text: str) -> str:
    """The text without the sequences that colour a terminal."""
    return _ANSI.sub("", text) if "\x1b" in text else text


def spread(text: str) -> tuple[str, str]:
    """How a text with carriage returns began, empty if that still shows, and what a terminal shows in the end."""
    if "\r" not in text:
        return "", text
    parts = text.split("\r")
    shown = next((part for part in reversed(parts) if part.strip()), "")
    head = next((part for part in parts if part.strip()), "")
    return ("" if head is shown else head[:_MOST_HEAD]), shown


def _whole(file: BinaryIO, first: bytes, limit: int) -> _Raw:
    """The line that begins with ``first``."""
    if first.endswith(b"\n") and b"\r" not in first and b"\0" not in first:
        return _Raw(first[:-1], len(first))
    nuls = 0
    head = b""
    size, segment, overwritten = 0, _Segment(b"", 0), _Segment(b"", 0)
    chunk = first
    while chunk:
        size += len(chunk)
        ended = chunk.endswith(b"\n")
        if b"\0" in chunk:
            nuls += chunk.count(b"\0")
            chunk = chunk.replace(b"\0", b"")
        part, *rest = (chunk[:-1] if ended else chunk).split(b"\r")
        segment = segment.extended(part, limit)
        for part in rest:
            if segment.kept.strip():
                overwritten = segment
                head = head or segment.kept[:_MOST_HEAD]
            segment = _Segment(b"", 0).extended(part, limit)
        if ended:
            break
        chunk = file.readline(limit)
    shown = segment if segment.kept.strip() else overwritten
    began = b"" if shown.kept.startswith(head) else head
    return _Raw(shown.kept, size, shown.size > len(shown.kept), nuls, began)


class _Segment(msgspec.Struct, frozen=True):
    """Text between carriage returns, of which the last one is what a terminal shows."""

    kept: bytes
    size: int

    def extended(self, more: bytes, limit: int) -> _Segment:
        room = limit - len(self.kept)
        return _Segment(self.kept + more[:room] if room > 0 else self.kept, self.size + len(more))
