"""Files of JSON rows: what they hold, row by row, and which rows cannot be used."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from producers.inputs import Unused
from producers.scan import Source
from producers.times import APART, from_seconds
from schemas.events import TimeSource

MOST_BYTES = 16 * 1024 * 1024
"""Bytes of one row; longer ones are left aside."""
MOST_ARRAY_BYTES = 256 * 1024 * 1024
"""Bytes of a table that is one JSON array; what lies behind them is left aside."""
_ROWS_LOOKED_AT = 20
_ARRAY = re.compile(rb"\s*\[\s*\{")
_BETWEEN = re.compile(r"[\s,]*")

Fields = dict[str, Any]


def is_number(value: Any) -> bool:
    """Whether a field holds a number; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


class Row(msgspec.Struct, frozen=True):
    """One row: its line from 1 (in a JSON array its number), its time in nanoseconds, and its fields.

    ``source`` is where the time is from, ``precision`` (ns) how far from it the truth may lie.
    """

    line: int
    time: int
    fields: Fields
    source: TimeSource = "captured"
    precision: int = 0

    def integer(self, name: str) -> int | None:
        """A field as a number that is not negative, or null."""
        value = self.fields.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**62 else None

    def text(self, name: str) -> str:
        """A field as text, empty if it is none."""
        value = self.fields.get(name)
        return printable(value) if isinstance(value, str) else ""


class Rows(msgspec.Struct, frozen=True):
    """The rows of a file that can be used, and notes on those that cannot."""

    file: str
    rows: list[Row]
    unused: list[Unused]


def printable(text: str) -> str:
    """Text that can be encoded: JSON may smuggle in lone surrogates."""
    return text.encode("utf-8", "replace").decode("utf-8")


def parse(raw: bytes) -> Any:
    """The value of a JSON text; NaN and Infinity are let through. Raises ValueError with the reason."""
    try:
        return json.loads(raw.decode("utf-8", "replace"))
    except json.JSONDecodeError as error:
        raise ValueError(f"invalid JSON: {error.msg} at column {error.colno}") from None
    except RecursionError:
        raise ValueError("invalid JSON: nested too deep") from None
    except ValueError as error:
        raise ValueError(f"invalid JSON: {error}") from None


def _raw_lines(path: Path) -> Iterator[tuple[int, bytes | None, int]]:
    """Line number, bytes (null if too long) and size of every line that is not blank."""
    with path.open("rb") as file:
        number = 0
        while first := file.readline(MOST_BYTES):
            number += 1
            size = len(first)
            whole: bytes | None = first
            chunk = first
            while len(chunk) == MOST_BYTES and not chunk.endswith(b"\n") and (chunk := file.readline(MOST_BYTES)):
                size, whole = size + len(chunk), None
            if whole is None or whole.strip():
                yield number, whole, size


def is_array(path: Path) -> bool:
    """Whether a file begins like a JSON array of objects. Raises OSError."""
    with path.open("rb") as file:
        return bool(_ARRAY.match(file.read(4_096)))


def values(path: Path) -> Iterator[tuple[int, Any]]:
    """Number and value of every row; a ValueError stands for one that cannot be read."""
    if is_array(path):
        yield from _elements(path, MOST_ARRAY_BYTES)
        return
    for number, raw, size in _raw_lines(path):
        if raw is None:
            yield number, ValueError(f"row of {size} bytes, more than {MOST_BYTES}")
            continue
        try:
            value = parse(raw)
        except ValueError as error:
            value = error
        yield number, value


def _elements(path: Path, most: int) -> Iterator[tuple[int, Any]]:
    """Number and value of every element of an array; a ValueError stands for the rest if that cannot be read."""
    with path.open("rb") as file:
        text = file.read(most).decode("utf-8", "replace")
    decoder = json.JSONDecoder()
    at, number = text.index("[") + 1, 0
    while True:
        number += 1
        at = _end(text, at)
        if text.startswith("]", at):
            if text[at + 1 :].strip():
                yield number, ValueError("more behind the end of the JSON array")
            return
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            broken = "invalid JSON" if len(text) < most else f"JSON array of more than {most} bytes, left aside"
            yield number, ValueError(f"{broken} from here to the end of the array")
            return
        yield number, value


def _end(text: str, at: int) -> int:
    """Where the blanks and commas behind an element end."""
    found = _BETWEEN.match(text, at)
    return found.end() if found else at


def sample(path: Path) -> list[Fields]:
    """Those of the first rows that are JSON objects, for telling what a file holds. Raises OSError."""
    if is_array(path):
        first = islice(_elements(path, MOST_BYTES), _ROWS_LOOKED_AT)
        return [value for _, value in first if isinstance(value, dict)]
    found: list[Fields] = []
    for count, (_, raw, _) in enumerate(_raw_lines(path)):
        if count >= _ROWS_LOOKED_AT:
            break
        if raw is None or not raw.lstrip().startswith(b"{"):
            continue
        try:
            value = parse(raw)
        except ValueError:
            continue
        if isinstance(value, dict):
            found.append(value)
    return found


def read_rows(source: Source, fits: Callable[[Fields], bool], clock: str = "ts") -> Rows:
    """All rows that are objects which ``fits``, with a possible time in the field ``clock``. Raises OSError."""
    rows: list[Row] = []
    unused: list[Unused] = []
    for number, value in values(source.path):
        try:
            rows.append(_row(number, value, fits, clock))
        except ValueError as error:
            unused.append(Unused(source.file, number, str(error)))
    return Rows(file=source.file, rows=rows, unused=unused)


def near(table: Rows, reference: int | None) -> Rows:
    """The rows that do not lie a month or more from the rest of the recording; the others are noted."""
    if reference is None:
        return table
    stray = [row for row in table.rows if abs(row.time - reference) > APART]
    if not stray:
        return table
    notes = [Unused(table.file, row.line, "time lies a month from the others of the recording") for row in stray]
    kept = [row for row in table.rows if abs(row.time - reference) <= APART]
    return Rows(table.file, kept, table.unused + notes)


def _row(number: int, value: Any, fits: Callable[[Fields], bool], clock: str) -> Row:
    if isinstance(value, ValueError):
        raise value
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    if not fits(value):
        raise ValueError("not a row like the others of this file")
    if clock not in value:
        raise ValueError(f"no {clock}")
    time = from_seconds(value[clock])
    if time is None:
        raise ValueError(f"{clock} is not a time between 2000 and 2100: {str(value[clock])[:40]!r}")
    return Row(number, time, value)
