"""Python tracebacks in merged log records: the error that ended them and where it was raised."""

from __future__ import annotations

import re

import msgspec

_HEAD = "Traceback (most recent call last):"
_FRAME = re.compile(r'^\s*(?:\| )?File "([^"\n]{1,1000})", line (\d{1,9}), in ([^\n]{1,300})$', re.MULTILINE)
_ERROR = re.compile(r"^(?:\| )?([A-Za-z_][\w.]{0,200})(?::[ ]?(.{0,4000})|)$")


class Traceback(msgspec.Struct, frozen=True):
    """``exception`` is the last dotted part; ``error`` the closing line; place is the innermost frame."""

    exception: str
    error: str
    function: str
    file: str
    line: int
    files: tuple[str, ...]


def parse_traceback(text: str) -> Traceback | None:
    """The last traceback of a record, or null where it holds none. The last of a chain is what was raised."""
    at = text.rfind(_HEAD)
    if at < 0:
        return None
    body = text[at + len(_HEAD) :]
    frames = _FRAME.findall(body)
    last = max((found.end() for found in _FRAME.finditer(body)), default=0)
    for raw in body[last:].split("\n"):
        line = raw.strip()
        found = _ERROR.match(line) if raw[:1] not in (" ", "\t") else None
        if found:
            file, number, function = frames[-1] if frames else ("", "0", "")
            name = found.group(1).rsplit(".", 1)[-1]
            return Traceback(name, line, function, file, int(number), tuple(frame[0] for frame in frames))
    return None
