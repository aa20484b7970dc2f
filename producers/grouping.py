"""Logical records out of lines: tracebacks, failure reports and stacks of a thread are one record each."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

import msgspec

from producers import stacktext
from producers.envelopes.wrap import NONE, Wrap
from producers.lines import LIMIT, Line

Shape = Literal["line", "traceback", "failure", "stack"]

_HEAD = re.compile(r"\s{0,64}(?:\+ )?(?:Exception Group )?Traceback \(most recent call last\):")
_GROUP = re.compile(r"\s{0,200}[|+]")
_CHAINS = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)
_FINAL = re.compile(r"[A-Za-z_][\w.<>]{0,300}(?::|$)")
_TIMED = re.compile(
    r"\s{0,8}\[{0,2}(?:[VDIWEC]\d{3,4} \d\d:\d\d:\d\d|\d{4}-\d\d-\d\d[ T_]\d\d:\d\d)|\[[A-Za-z]{1,32}\d{1,6}\]:\["
)
_MORE = (
    "CUDA kernel errors might",
    "For debugging consider",
    "Compile with `TORCH_USE_CUDA_DSA`",
    "Device-side assert",
)
_RULE = re.compile(r"^={20,}$")
_FAILED = re.compile(r"\S[^\n]{0,300} FAILED$")
_CHILD = re.compile(r"(?:[\w.]{1,200}\.)?ChildFailedError:")
_MOST_LINES = 5_000


class Record(msgspec.Struct, frozen=True, gc=False):
    """One logical record: its text (lines joined by ``\\n``), where it begins, and how many lines it took.

    ``wrap`` is what stood around each of its lines, ``stamp`` (ns UTC) when its first line was written by its envelope,
    null if that does not tell. ``prefix`` shows the labels of the wrap, such as ``[rank7]: ``.
    """

    line: int
    offset: int
    text: str
    shape: Shape = "line"
    lines: int = 1
    prefix: str = ""
    wrap: Wrap = NONE
    stamp: int | None = None


class _Block:
    """A traceback that is being collected.

    ``lead`` is the blank that PyTorch's hook puts between the label and each line of a traceback; then all of these
    lines can be told. torchrun's tee puts none, and labels everything that a worker prints.
    """

    def __init__(self, first: Line, lead: str, text: str) -> None:
        self.first = first
        self.lead = lead
        self.texts = [text]
        self.final = False
        self.chained = False
        self.group = "Exception Group" in text
        self.rules: int | None = None
        self.shape: Shape = "traceback"
        self.unsure = False
        self.stack = False

    @classmethod
    def of_thread(cls, first: Line, lead: str, text: str) -> _Block:
        """The beginning of a stack that faulthandler or py-spy prints; a line as any other until a frame follows."""
        block = cls(first, lead, text)
        block.final = block.stack = True
        block.shape = "line"
        return block

    @classmethod
    def report(cls, first: Line, lead: str, text: str) -> _Block | None:
        """The beginning of a failure report of torchrun that stands by itself, without a traceback before it."""
        ruled = _RULE.match(text) is not None
        if not ruled and not _CHILD.match(text):
            return None
        block = cls(first, lead, text)
        block.final = True
        block.rules = int(ruled)
        # Others draw such rules, too: what the next line says decides.
        block.unsure = ruled
        block.shape = "line" if ruled else "failure"
        return block

    def takes(self, line: Line) -> bool:
        """Takes the line if it belongs to the traceback."""
        if not line.text.strip():
            return True
        if not line.text.startswith(self.lead) or len(self.texts) > _MOST_LINES:
            return False
        text = line.text[len(self.lead) :]
        if self.stack:
            return self._in_stack(text)
        if self.unsure:
            self.unsure = False
            if not _FAILED.match(text):
                return False
            self.shape = "failure"
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
        if _TIMED.match(text) or _HEAD.match(text) or not (_FINAL.match(text) or self.lead):
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
        # With a lead every line of a long message can be told; without one only what is indented or well known.
        return bool(self.lead) or text.startswith(("    ", *_MORE))

    def _in_stack(self, text: str) -> bool:
        taken = stacktext.goes_on(self.texts[0], text)
        if taken:
            self.shape = "stack"
            self.texts.append(text)
        return taken

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
        return _record(self.first, "\n".join(self.texts), self.lead, self.shape, len(self.texts))


def _record(line: Line, text: str, lead: str = "", shape: Shape = "line", lines: int = 1) -> Record:
    prefix = line.wrap.prefix + lead if line.wrap.labels else ""
    return Record(line.number, line.offset, text, shape, lines, prefix, line.wrap, line.stamp)


def _lead(line: Line) -> str:
    hooked = line.wrap.labels and line.wrap.labels[-1][0] == "rank" and line.text.startswith(" ")
    return " " if hooked else ""


def _single(line: Line) -> Record:
    if line.wrap is NONE:
        return Record(line.number, line.offset, line.text)
    lead = _lead(line)
    return _record(line, line.text[len(lead) :], lead)


def _head(line: Line) -> _Block | None:
    # The cheap test comes first: nearly all lines fail it.
    if "Traceback (most recent call last):" in line.text:
        lead = _lead(line)
        text = line.text[len(lead) :]
        return _Block(line, lead, text) if _HEAD.match(text) else None
    if "Thread " in line.text or "most recent call first" in line.text:
        lead = _lead(line)
        text = line.text[len(lead) :]
        return _Block.of_thread(line, lead, text) if stacktext.begins(text) else None
    if "=====" in line.text or "ChildFailedError:" in line.text:
        lead = _lead(line)
        return _Block.report(line, lead, line.text[len(lead) :].rstrip())
    return None


def group(lines: Iterable[Line]) -> list[Record]:
    """The logical records of a file, in the order in which they begin.

    Lines in different wraps are of different writers, whose records may lie in each other.
    """
    records: list[Record] = []
    blocks: dict[Wrap, _Block] = {}
    for line in lines:
        block = blocks.get(line.wrap) if blocks else None
        if block is not None:
            if block.takes(line):
                continue
            if block.open and _interposed(line, block):
                records.append(_single(line))
                continue
            records.append(block.record())
            del blocks[line.wrap]
        block = _head(line)
        if block is None:
            records.append(_single(line))
        else:
            blocks[line.wrap] = block
    records += [block.record() for block in blocks.values()]
    return sorted(records, key=lambda record: record.line)


def _interposed(line: Line, block: _Block) -> bool:
    """A line of another thread in the middle of a traceback; it must not tear the traceback apart."""
    foreign = bool(_TIMED.match(line.text)) or (line.text.startswith(" ") and not line.text.startswith("  "))
    return foreign and block.rules is None and line.number - block.first.number < _MOST_LINES


def clipped(text: str) -> str:
    """A merged text within the bound of a line."""
    return text if len(text) <= LIMIT else text[:LIMIT]
