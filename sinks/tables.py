"""Prints rows: a table for people, TSV and JSON lines for tools."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec
from rich.cells import cell_len, set_cell_size

_ENCODER = msgspec.json.Encoder(enc_hook=str)


def format_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], max_width: int = 120) -> str:
    """A plain text table, numbers to the right; cells wider than ``max_width`` characters end in an ellipsis.

    Control characters are escaped, since text of logs may hold what a terminal would obey.
    """
    if not columns:
        return ""
    cells = [[_clip(cell_text(value), max_width) for value in row] for row in rows]
    head = [_clip(cell_text(name), max_width) for name in columns]
    right = [bool(rows) and all(_is_number(row[place]) for row in rows) for place in range(len(head))]
    widths = [max(cell_len(row[place]) for row in [head, *cells]) for place in range(len(head))]
    lines = [head, ["-" * width for width in widths], *cells]
    return "".join(f"{_line(line, widths, right)}\n" for line in lines)


def format_tsv(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    r"""Tab-separated values with a line of names; null is ``\N``, and tabs, newlines and backslashes are escaped."""
    lines = ["\t".join(map(_tsv_cell, columns)), *("\t".join(map(_tsv_cell, row)) for row in rows)]
    return "".join(f"{line}\n" for line in lines)


def format_json_lines(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, ascii_only: bool = False) -> str:
    """One JSON object per row; numbers that are not finite become null. ``ascii_only`` escapes other characters."""
    objects = (dict(zip(columns, row, strict=True)) for row in rows)
    lines = "".join(f"{_ENCODER.encode(item).decode()}\n" for item in objects)
    return "".join(map(_ascii_json, lines)) if ascii_only else lines


def cell_text(value: Any) -> str:
    """A value on one line, control characters escaped; NULL for null."""
    return "".join(char if char.isprintable() else _escaped(char) for char in _plain(value, "NULL"))


def _ascii_json(char: str) -> str:
    return char if char.isascii() else json.dumps(char)[1:-1]


def _plain(value: Any, null: str) -> str:
    if value is None:
        return null
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, bool | list | tuple | dict):
        return _ENCODER.encode(value).decode()
    return str(value)


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode()


def _tsv_cell(value: Any) -> str:
    text = _plain(value, "\0")
    if text == "\0":
        return "\\N"
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _clip(text: str, width: int) -> str:
    return text if cell_len(text) <= width else set_cell_size(text, width - 1).rstrip() + "…"


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = [
        " " * (width - cell_len(cell)) + cell if to_right else cell + " " * (width - cell_len(cell))
        for cell, width, to_right in zip(cells, widths, right, strict=True)
    ]
    return "  ".join(padded).rstrip()
