"""What a worker under torchrun's ``@record`` leaves behind when it raises: ``attempt_<n>/<local rank>/error.json``.

``{"message": {"message": "RuntimeError: boom", "extraInfo": {"py_callstack": "Traceback …", "timestamp":
"1700000000"}}}`` or, in older versions, a plain text in ``message``.
"""

from __future__ import annotations

from typing import Any

from producers.grouping import Record, Shape, clipped
from producers.logfile import LogFile
from producers.rows import parse, printable
from producers.scan import Source
from producers.times import SECOND, possible

_MOST_BYTES = 4 * 1024 * 1024
_HEAD = "Traceback (most recent call last):"


def read(source: Source) -> LogFile | None:
    """The error as a log of one record, by the second; null where the file says none. Raises OSError and ValueError."""
    with source.path.open("rb") as file:
        value = parse(file.read(_MOST_BYTES))
    said = value.get("message") if isinstance(value, dict) else None
    more = said.get("extraInfo") if isinstance(said, dict) else None
    more = more if isinstance(more, dict) else {}
    found = (more.get("py_callstack"), said.get("message") if isinstance(said, dict) else said)
    text = next((printable(one).strip() for one in found if isinstance(one, str) and one.strip()), "")
    if not text:
        return None
    shape: Shape = "traceback" if text.startswith(_HEAD) else "line"
    record = Record(1, 0, clipped(text), shape, text.count("\n") + 1, stamp=_stamp(more))
    return LogFile(source.file, [record], [], by_second=True)


def _stamp(more: dict[str, Any]) -> int | None:
    said = more.get("timestamp")
    seconds = int(said) if isinstance(said, str) and said.isdecimal() and said.isascii() and len(said) < 12 else said
    if isinstance(seconds, bool) or not isinstance(seconds, int) or not possible(seconds * SECOND):
        return None
    return seconds * SECOND
