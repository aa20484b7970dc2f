"""Raw lines of a log file, bounded in memory and cleaned of what only a terminal needs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

LIMIT = 65_536
"""Bytes of a line that are kept."""
_SNIFF = 8_192
_MOST_CONTROL = 0.3
_NO_TEXT = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f\ufffd]")
_ANSI = re.compile(r"\x1b(?:\[[0-9;?]{0,32}[ -/]{0,4}[@-~]|\][^\x07\x1b]{0,256}(?:\x07|\x1b\\)|[@-Z\\-_])")


class Line(msgspec.Struct, frozen=True, gc=False):
    """One line of text: ``number`` from 1, ``offset`` and ``size`` in bytes as they stand in the file.

    ``nuls`` NUL bytes were taken out of it.
    """

    number: int
    offset: int
    size: int
    text: str
    cut: bool = False
    invalid: bool = False
    nuls: int = 0


def is_binary(path: Path) -> bool:
    """Whether the first 8 KiB hold NUL bytes and are no text for a good part, or begin an archive. Raises OSError."""
    with path.open("rb") as file:
        head = file.read(_SNIFF)
    if b"\0" not in head:
        return False
    text = head.decode("utf-8", "replace")
    return _is_tar(head) or len(_NO_TEXT.findall(text)) > _MOST_CONTROL * len(text)


def is_archive(path: Path) -> bool:
    """Whether a file is a tar archive, in which the lines of other files stand as they are. Raises OSError."""
    with path.open("rb") as file:
        return _is_tar(file.read(_SNIFF))


def _is_tar(head: bytes) -> bool:
    return head[257:262] == b"ustar"


def read_lines(path: Path, limit: int = LIMIT) -> Iterator[Line]:
    """The lines that are not blank or held NUL bytes.

    Never holds more than a few ``limit`` bytes of one line. Raises OSError.
    """
    with path.open("rb") as file:
        number, offset = 0, 0
        while first := file.readline(limit):
            number += 1
            raw, size, cut, nuls = _whole(file, first, limit)
            line = _line(number, offset, size, raw, cut, nuls)
            offset += size
            if nuls or line.text.strip():
                yield line


def _line(number: int, offset: int, size: int, raw: bytes, cut: bool, nuls: int) -> Line:
    try:
        text, invalid = raw.decode("utf-8"), False
    except UnicodeDecodeError as error:
        # A cut may fall inside a character; that alone is no fault of the file.
        invalid = not (cut and error.start >= len(raw) - 3)
        text = raw.decode("utf-8", "replace")
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    return Line(number=number, offset=offset, size=size, text=text.rstrip(), cut=cut, invalid=invalid, nuls=nuls)


def _whole(file: BinaryIO, first: bytes, limit: int) -> tuple[bytes, int, bool, int]:
    """The bytes to keep of the line that begins with ``first``, its size in the file, whether it was cut, its NULs."""
    if first.endswith(b"\n") and b"\r" not in first and b"\0" not in first:
        return first[:-1], len(first), False, 0
    nuls = 0
    size, segment, overwritten = 0, _Segment(b"", 0), _Segment(b"", 0)
    chunk = first
    while chunk:
        size += len(chunk)
        ended = chunk.endswith(b"\n")
        if b"\0" in chunk:
            nuls += chunk.count(b"\0")
            chunk = chunk.replace(b"\0", b"")
        head, *rest = (chunk[:-1] if ended else chunk).split(b"\r")
        segment = segment.extended(head, limit)
        for part in rest:
            overwritten = segment if segment.kept.strip() else overwritten
            segment = _Segment(b"", 0).extended(part, limit)
        if ended:
            break
        chunk = file.readline(limit)
    shown = segment if segment.kept.strip() else overwritten
    return shown.kept, size, shown.size > len(shown.kept), nuls


class _Segment(msgspec.Struct, frozen=True):
    """Text between carriage returns, of which the last one is what a terminal shows."""

    kept: bytes
    size: int

    def extended(self, more: bytes, limit: int) -> _Segment:
        room = limit - len(self.kept)
        return _Segment(self.kept + more[:room] if room > 0 else self.kept, self.size + len(more))
