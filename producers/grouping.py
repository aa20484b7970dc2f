"""Logical records out of lines: tracebacks and failure reports are one record each."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

import msgspec

from producers.lines import LIMIT, Line

Shape = Literal["line", "traceback", "failure"]

_PREFIX = re.compile(r"\[[A-Za-z_]{1,32}\d{1,6}\]: ?(?=\S|\s|$)")
_HEAD = re.compile(r"\s{0,64}(?:\+ )?(?:Exception Group )?Traceback \(most recent call last\):")
_GROUP = re.compile(r"\s{0,200}[|+]")
_CHAINS = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)
_FINAL = re.compile(r"[A-Za-z_][\w.<>]{0,300}(?::|$)")
_TIMED = re.compile(
    r"\s{0,8}\[{0,2}(?:[VDIWEC]\d{3,4} \d\d:\d\d:\d\d|\d{4}-\d\d-\d\d[ T_]\d\d:\d\d)|\[[A-Za-z]+\d+\]:\["
)
_MORE = (
    "CUDA kernel errors might",
    "For debugging consider",
    "Compile with `TORCH_USE_CUDA_DSA`",
    "Device-side assert",
)
_RULE = re.compile(r"={20,}$")
_MOST_LINES = 5_000


class Record(msgspec.Struct, frozen=True, gc=False):
    """One logical record: its text (lines joined by ``\\n``), where it begins, and how many lines it took.

    ``prefix`` is what stood before each of its lines and was taken off, such as ``[rank7]: ``.
    """

    line: int
    offset: int
    text: str
    shape: Shape = "line"
    lines: int = 1
    prefix: str = ""


class _Block:
    """A traceback that is being collected."""

    def __init__(self, first: Line, prefix: str, text: str) -> None:
        self.first = first
        self.prefix = prefix
        self.texts = [text]
        self.final = False
        self.chained = False
        self.group = "Exception Group" in text
        self.rules: int | None = None
        self.shape: Shape = "traceback"

    def takes(self, line: Line) -> bool:
        """Takes the line if it belongs to the traceback."""
        if not line.text.startswith(self.prefix.rstrip()) or len(self.texts) > _MOST_LINES:
            return False
        text = line.text[len(self.prefix) :]
        if not text.strip():
            return True
        if self.rules is not None:
            return self._in_report(text)
        taken = self._after(text) if self.final else self._inside(text)
        if taken:
            self.texts.append(text)
        return taken

    def _inside(self, text: str) -> bool:
        if self.chained:
            self.chained = False
            self.group = "Exception Group" in text
            return bool(_HEAD.match(text))
        if self.group:
            return bool(_GROUP.match(text)) or self._chain(text)
        if text.startswith("  ") and not _TIMED.match(text):
            return True
        if _TIMED.match(text) or _HEAD.match(text) or not (_FINAL.match(text) or self.prefix):
            return False
        self.final = True
        if "ChildFailedError" in text:
            self.rules, self.shape = 0, "failure"
        return True

    def _chain(self, text: str) -> bool:
        self.chained = text in _CHAINS
        return self.chained

    def _after(self, text: str) -> bool:
        if self._chain(text):
            self.final = False
            return True
        if _HEAD.match(text) or _TIMED.match(text):
            return False
        # With a prefix every line of a long message can be told; without one only what is indented or well known.
        return bool(self.prefix) or text.startswith(("    ", *_MORE))

    def _in_report(self, text: str) -> bool:
        rules = self.rules or 0
        if rules == 2 or (rules == 0 and not _RULE.match(text)):
            return False
        self.rules = rules + bool(_RULE.match(text))
        self.texts.append(text)
        return True

    @property
    def open(self) -> bool:
        """Whether the line that ends it has not come yet, so that lines of other threads may stand between."""
        return (not self.final and not self.group) or (self.rules is not None and self.rules < 2)

    def record(self) -> Record:
        text = "\n".join(self.texts)
        return Record(self.first.number, self.first.offset, text, self.shape, len(self.texts), self.prefix)


def _head(line: Line) -> _Block | None:
    # The cheap test comes first: nearly all lines fail it.
    if "Traceback (most recent call last):" not in line.text:
        return None
    found = _PREFIX.match(line.text)
    prefix = found.group(0) if found else ""
    text = line.text[len(prefix) :]
    return _Block(line, prefix, text) if _HEAD.match(text) else None


def group(lines: Iterable[Line]) -> list[Record]:
    """The logical records of a file, in the order in which they begin."""
    records: list[Record] = []
    block: _Block | None = None
    for line in lines:
        if block is not None:
            if block.takes(line):
                continue
            if block.open and _interposed(line, block):
                records.append(Record(line.number, line.offset, line.text))
                continue
            records.append(block.record())
        block = _head(line)
        if block is None:
            records.append(Record(line.number, line.offset, line.text))
    if block is not None:
        records.append(block.record())
    return sorted(records, key=lambda record: record.line)


def _interposed(line: Line, block: _Block) -> bool:
    """A line of another thread in the middle of a traceback; it must not tear the traceback apart."""
    foreign = bool(_TIMED.match(line.text)) or (line.text.startswith(" ") and not line.text.startswith("  "))
    return foreign and block.rules is None and line.number - block.first.number < _MOST_LINES


def clipped(text: str) -> str:
    """A merged text within the bound of a line."""
    return text if len(text) <= LIMIT else text[:LIMIT]
