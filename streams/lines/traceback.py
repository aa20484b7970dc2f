"""Python tracebacks in merged log records: the errors of a chain, and where each was raised."""

from __future__ import annotations

import re

import msgspec

_HEAD = "Traceback (most recent call last):"
_GUTTER = re.compile(r"^[ \t]{0,64}[|+][ \t]?", re.MULTILINE)
_FRAME = re.compile(r'^[ \t]{0,64}File "([^"\n]{1,1000})", line (\d{1,9}), in ([^\n]{1,300})$', re.MULTILINE)
_ERROR = re.compile(r"[A-Za-z_][\w.<>]{0,200}(?=:|$)")
_LONGEST = 4096


class Traceback(msgspec.Struct, frozen=True):
    """``exception`` is the last dotted part; ``error`` the closing line; place is the innermost frame."""

    exception: str
    error: str
    function: str
    file: str
    line: int
    files: tuple[str, ...]


def has_traceback(text: str) -> bool:
    """Whether a traceback begins in the text."""
    return _HEAD in text


def parse_chain(text: str) -> list[Traceback]:
    """The tracebacks of a record as printed: of a chain the first is how it began, the last what was raised."""
    if _HEAD not in text:
        return []
    plain = _GUTTER.sub("", text) if "Exception Group" in text else text
    found = [_parse(part) for part in plain.split(_HEAD)[1:]]
    return [traceback for traceback in found if traceback is not None]


def parse_traceback(text: str) -> Traceback | None:
    """The last traceback of a record, or null where it holds none."""
    chain = parse_chain(text)
    return chain[-1] if chain else None


def _parse(body: str) -> Traceback | None:
    frames = list(_FRAME.finditer(body))
    for raw in body[frames[-1].end() if frames else 0 :].split("\n"):
        found = _ERROR.match(raw)
        if found is not None:
            file, number, function = frames[-1].groups() if frames else ("", "0", "")
            return Traceback(
                exception=found.group().rsplit(".", 1)[-1],
                error=raw[:_LONGEST].rstrip(),
                function=function,
                file=file,
                line=int(number),
                files=tuple(frame.group(1) for frame in frames),
            )
    return None
