"""JSON texts that are larger than memory should hold: one object, whose members are read one after the other."""

from __future__ import annotations

import codecs
import gzip
import json
import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from io import BufferedIOBase
from pathlib import Path
from typing import Any

CHUNK = 1 << 20
LONGEST_VALUE = 8 << 20
"""Characters of one member's value, or of one element of the array that is streamed."""
MOST_BYTES = 4 << 30
"""Unpacked bytes of a file; what lies behind them is left aside, so that a small file cannot unpack without end."""
_GZIP = b"\x1f\x8b\x08"
_OF_NUMBERS = "0123456789.eE+-"
_BLANKS = re.compile(r"[ \t\r\n]*")


class BrokenJsonError(ValueError):
    """The text cannot be read from here on; the message says why."""


def opened(path: Path) -> BufferedIOBase:
    """The file's bytes, unpacked where they are gzip's. Raises OSError."""
    with path.open("rb") as file:
        packed = file.read(len(_GZIP)) == _GZIP
    return gzip.GzipFile(path) if packed else path.open("rb")


def head_of(path: Path, most: int) -> str:
    """The first characters of a file, unpacked, as far as that goes. Raises OSError."""
    head = b""
    with suppress(EOFError, zlib.error, gzip.BadGzipFile), opened(path) as file:
        while len(head) < most and (chunk := file.read1(most)):
            head += chunk
    return head[:most].decode("utf-8", "replace").removeprefix("\ufeff")


class JsonStream:
    """Reads values one by one; never holds more than one value and a chunk. Raises BrokenJsonError, and OSError."""

    def __init__(self, file: BufferedIOBase) -> None:
        self._file = file
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._parse = json.JSONDecoder().raw_decode
        self._text = ""
        self._at = 0
        self._size = 0
        self._fault = ""
        self.ended = False
        """Whether the streamed array has been read to its end."""

    def members(self, streamed: str) -> Iterator[tuple[str, Any]]:
        """Name and value of each member; of the array called ``streamed`` each element comes as a value of its own."""
        self._expect("{")
        if self._next() == "}":
            return
        while True:
            name = self._value()
            if not isinstance(name, str):
                raise BrokenJsonError("invalid JSON: a member without a name")
            self._expect(":")
            if name == streamed and self._next() == "[":
                for element in self._elements():
                    yield name, element
                self.ended = True
            else:
                yield name, self._value()
            if self._comma("}"):
                return

    def _elements(self) -> Iterator[Any]:
        self._expect("[")
        if self._next() == "]":
            self._at += 1
            return
        while True:
            yield self._value()
            if self._comma("]"):
                return

    def _comma(self, end: str) -> bool:
        """Step over a comma, or over the end; returns whether it was that."""
        found = self._next()
        if found not in (",", end):
            raise BrokenJsonError("invalid JSON: a comma is missing" if found else self._fault)
        self._at += 1
        return found == end

    def _expect(self, mark: str) -> None:
        found = self._next()
        if found != mark:
            raise BrokenJsonError(f"invalid JSON: {mark} is missing" if found else self._fault)
        self._at += 1

    def _next(self) -> str:
        """The next character that is no blank, which stays; empty at the end."""
        while True:
            # It matches everywhere.
            found = _BLANKS.match(self._text, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def _value(self) -> Any:
        self._next()
        while True:
            reason = ""
            try:
                value, end = self._parse(self._text, self._at)
            except RecursionError:
                raise BrokenJsonError("invalid JSON: nested too deep") from None
            except json.JSONDecodeError as error:
                reason, end = f"invalid JSON: {error.msg.lower()}", -1
            except ValueError:
                raise BrokenJsonError("invalid JSON: a number of too many digits") from None
            # A number at the end of what was read may go on.
            if 0 <= end < len(self._text) and not self._goes_on(value, end):
                self._at = end
                return value
            if len(self._text) - self._at > LONGEST_VALUE:
                raise BrokenJsonError(reason or f"a value of more than {LONGEST_VALUE} characters")
            if not self._more():
                if reason:
                    raise BrokenJsonError(self._fault or reason)
                self._at = end
                return value

    def _goes_on(self, value: Any, end: int) -> bool:
        """Whether what was read of a number may be but a part of it."""
        return isinstance(value, int | float) and self._text[end] in _OF_NUMBERS

    def _more(self) -> bool:
        """Read on; returns whether there was anything."""
        if self._fault:
            return False
        # What is being read doubles, or a long value would be begun again for each chunk of it.
        chunk = self._read(max(CHUNK, len(self._text) - self._at))
        if not chunk:
            return False
        first = self._size == 0
        self._size += len(chunk)
        text = self._decode(chunk)
        # As some editors begin a file.
        self._text = self._text[self._at :] + (text.removeprefix("\ufeff") if first else text)
        self._at = 0
        return True

    def _read(self, wanted: int) -> bytes:
        """So many bytes, less only where there are no more; the reason is kept then."""
        chunk = b""
        while len(chunk) < wanted and not self._fault:
            if self._size + len(chunk) >= MOST_BYTES:
                self._fault = f"more than {MOST_BYTES} bytes"
                break
            try:
                part = self._file.read1(wanted - len(chunk))
            except (EOFError, zlib.error, gzip.BadGzipFile):
                part = b""
                self._fault = "the file is cut off or damaged"
            if not part:
                self._fault = self._fault or "the text is cut off"
            chunk += part
        return chunk
