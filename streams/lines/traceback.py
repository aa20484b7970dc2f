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
    """``exception`` is the last dotted part; ``error`` the closing line; place is the innermost frame.

    ``outermost`` is the function of the first frame, empty where there are no frames.
    """

    exception: str
    error: str
    function: str
    file: str
    line: int
    files: tuple[str, ...]
    outermost: str = ""


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


_BEGINNINGS = frozenset(
    {"<module>", "_bootstrap", "_bootstrap_inner", "_run_module_as_main", "_run_code", "_wrap", "wrapper"}
)
"""Functions in which programs, processes and threads begin, and torch's that wrap a worker's."""


def caught_in(chain: list[Traceback]) -> str:
    """The function in which an error was caught and printed, nothing where it may have left its program.

    An exception that nothing catches is printed from where its program begins; whoever catches one prints it from where
    that is.
    """
    outermost = [traceback.outermost for traceback in chain]
    return "" if not all(outermost) or _BEGINNINGS.intersection(outermost) else "".join(outermost[-1:])


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
                outermost=frames[0].group(3) if frames else "",
            )
    return None
