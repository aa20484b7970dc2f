"""Stacks that are printed into logs: by Python's faulthandler, and by ``py-spy dump``.

Both print the innermost frame first. Sources: CPython's Python/traceback.c, py-spy's src/dump.rs.
"""

from __future__ import annotations

import re

import msgspec

from schemas.events import MAIN_THREAD, Frame

MOST_FRAMES = 1_000
FAULT_HEAD = re.compile(
    r"(?:Current thread|Thread) (?P<id>0x[0-9a-fA-F]{1,16})(?: \[(?P<name>[^\]\n]{1,100})\])?"
    r" \(most recent call first\):"
)
_FAULT_FRAME = re.compile(
    r"  File \"(?P<file>[^\"\n]{1,1000})\", line (?P<line>\d{1,9}|\?\?\?) in (?P<function>[^\n]{1,500})"
)
FAULT_MORE = re.compile(r"  (?:<[^\n]{1,100}>|\.\.\.|Garbage-collecting)")
SPY_HEAD = re.compile(
    r"Thread (?P<id>\d{1,10}|0x[0-9a-fA-F]{1,16}) \((?P<status>active|idle)(?:\+gil)?\)"
    r"(?:: \"(?P<name>[^\"\n]{0,200})\")?"
)
_SPY_FRAME = re.compile(r" {4}(?P<function>[^\s(][^\n(]{0,300}) \((?P<file>[^():\n]{1,1000})(?::(?P<line>\d{1,9}))?\)")
ADDRESS = re.compile(r"0x[0-9a-fA-F]{1,16}")
_WORKER_LOOP = "_worker_loop"
_MODULE = "<module>"


class Printed(msgspec.Struct, frozen=True):
    """One thread as it was printed, frames outermost first; ``active`` is null where the text does not say."""

    thread: str
    frames: list[Frame]
    active: bool | None = None

    @property
    def process_type(self) -> str:
        """A loader's process shows by its bottom frames; everything else that prints into a log is the trainer's."""
        loads = any(frame.function.rpartition(".")[2] == _WORKER_LOOP for frame in self.frames)
        return "dataloader" if loads else "trainer"


def begins(text: str) -> bool:
    """Whether a line begins the stack of a thread."""
    if "most recent call first" in text:
        return FAULT_HEAD.fullmatch(text) is not None
    return text.startswith("Thread ") and SPY_HEAD.fullmatch(text) is not None


def goes_on(head: str, text: str) -> bool:
    """Whether a line belongs to the stack that ``head`` begins."""
    if "most recent call first" in head:
        return _FAULT_FRAME.fullmatch(text) is not None or FAULT_MORE.fullmatch(text) is not None
    return _SPY_FRAME.fullmatch(text) is not None


def parse(text: str) -> Printed | None:
    """The thread of a merged record, or null where it is none or no frame of it can be read."""
    head, *rest = text.split("\n")
    fault, spy = FAULT_HEAD.fullmatch(head), SPY_HEAD.fullmatch(head)
    found = fault or spy
    if found is None:
        return None
    pattern = _FAULT_FRAME if fault else _SPY_FRAME
    matches = [one for line in rest[:MOST_FRAMES] if (one := pattern.fullmatch(line)) is not None]
    frames = [_frame(one) for one in reversed(matches)]
    if not frames:
        return None
    # Faulthandler does not say which thread is the main one; only that one runs the script itself.
    name = MAIN_THREAD if frames[0].function == _MODULE else found["name"] or f"thread {found['id']}"
    active = None if spy is None else spy["status"] == "active"
    return Printed(thread=name, frames=frames, active=active)


def _frame(found: re.Match[str]) -> Frame:
    line = found["line"] or ""
    # Where nothing names a function there stands an address, which is another one in every process.
    function = "?" if ADDRESS.fullmatch(found["function"]) else found["function"]
    return Frame(function=function, file=found["file"], line=int(line) if line.isdecimal() else 0)
