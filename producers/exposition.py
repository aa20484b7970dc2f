"""Prometheus' text format, line by line: samples with their labels, declared types, times.

Source: prometheus/docs, exposition_formats.md (0.0.4, with names in quotes) and OpenMetrics 1.0, whose times are in
seconds.
"""

from __future__ import annotations

import re

import msgspec

from producers.times import possible

_NUMBER = r"[+-]?(?:\d{1,400}(?:\.\d{0,400})?|\.\d{1,400})(?:[eE][+-]?\d{1,9})?|[+-]?[iI]nf(?:inity)?|[nN]a[nN]"
_SAMPLE = re.compile(
    r"\s{0,16}(?P<name>[a-zA-Z_:][\w:]{0,300})?\s{0,16}(?:\{(?P<labels>.{0,4000})\})?"
    rf"\s{{1,16}}(?P<value>{_NUMBER})(?:\s{{1,16}}(?P<time>-?\d{{1,19}}(?:\.\d{{1,9}})?))?\s{{0,16}}",
    re.ASCII,
)
_TYPE = re.compile(r"# TYPE\s{1,16}(?P<name>\"(?:[^\"\\]|\\.){1,300}\"|\S{1,300})\s{1,16}(?P<type>[a-z]{1,20})\s{0,16}")
_LABEL = re.compile(r"\s{0,16}(?:(?P<name>[a-zA-Z_]\w{0,300}|\"(?:[^\"\\]|\\.){1,300}\")\s{0,16}=\s{0,16})?", re.ASCII)
_QUOTED = re.compile(r"\"((?:[^\"\\]|\\.){0,4000})\"\s{0,16}(?:,|$)", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": "\n", "\\": "\\", '"': '"'}
_EXEMPLAR = " # {"
_SECONDS_BELOW = 1e11
"""A time below is in seconds: as milliseconds it would lie in the first years of the epoch."""


class Exposed(msgspec.Struct, frozen=True, gc=False):
    """A sample's line: ``name`` is empty where it stands in ``labels``, which are as they were printed."""

    name: str
    labels: str
    value: float
    time: int | None


def exposed(text: str) -> Exposed | None:
    """The sample of a line, null where it is none or its time cannot be. ``time`` is in ns."""
    head, exemplar, _ = text.rpartition(_EXEMPLAR)
    found = (_SAMPLE.fullmatch(head) if exemplar else None) or _SAMPLE.fullmatch(text)
    if found is None or (found["name"] is None and not found["labels"]):
        return None
    time = _time(found["time"]) if found["time"] else None
    if found["time"] and time is None:
        return None
    return Exposed(found["name"] or "", found["labels"] or "", float(found["value"]), time)


def _time(printed: str) -> int | None:
    number = float(printed)
    seconds = "." in printed or abs(number) < _SECONDS_BELOW
    time = round(number * 1_000_000) * 1_000 if seconds else int(printed) * 1_000_000
    return time if possible(time) else None


def declared(text: str) -> tuple[str, str] | None:
    """Name and type that a comment declares, or null."""
    found = _TYPE.fullmatch(text)
    return (_unquoted(found["name"]), found["type"]) if found else None


def labels_of(printed: str) -> dict[str, str] | None:
    """The labels between braces, a name in quotes as ``__name__``; null where they cannot be read."""
    found: dict[str, str] = {}
    at, end = 0, len(printed.rstrip())
    while at < end:
        key = _LABEL.match(printed, at)
        value = _QUOTED.match(printed, key.end() if key else at)
        if value is None:
            return None
        name = _unquoted(key["name"]) if key and key["name"] else "__name__"
        if name in found:
            return None
        found[name] = _plain(value.group(1))
        at = value.end()
    return found


def _unquoted(name: str) -> str:
    return _plain(name[1:-1]) if name.startswith('"') else name


def _plain(text: str) -> str:
    return _ESCAPE.sub(lambda found: _ESCAPED.get(found.group(1), found.group()), text) if "\\" in text else text
