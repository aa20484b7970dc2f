"""What all formats show: the threads of one attempt, and what is said of them; frames and ranks as text."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import msgspec

from schemas.events import Frame
from schemas.identity import rank_runs, shortened, written_runs
from streams.stack_classes import Sample, StackClass
from streams.trie import Node

LONGEST_NAME = 300
"""Characters of a function's or file's name that are shown."""


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    """``title`` says whose stacks these are, ``lines`` when they were taken and who is where, a line each.

    ``samples`` are what the classes were made of; they tell the lines at which ranks of one place are.
    """

    title: str
    lines: list[str]
    classes: list[StackClass]
    samples: list[Sample] = []


def one_line(text: str) -> str:
    """The text without what no format may hold: line ends, control characters, marks that turn its direction."""
    return "".join(char if char.isprintable() else " " for char in text)


def frame_text(frame: Frame, more_lines: Sequence[int] = ()) -> str:
    """``function (file.py:12)``; names from outside as one line of bounded length, other lines behind the first."""
    file = one_line(frame.file.rpartition("/")[2]) or "?"
    function = one_line(frame.function).strip() or "?"
    more = "".join(f",{line}" for line in more_lines[:2]) + (",…" if len(more_lines) > 2 else "")
    line = f":{frame.line}{more}" if frame.line else ""
    return f"{shortened(function, LONGEST_NAME)} ({shortened(file, LONGEST_NAME)}{line})"


def in_a_path(text: str) -> str:
    """The text as one element of a path whose elements ``;`` parts."""
    return one_line(text).replace(";", ":")


def counted(ranks: int, ranges: str, most: int) -> str:
    """``rank 5``, ``7 ranks 0-4,6-7``, ``none``; of ranges longer than ``most`` characters only the first are told."""
    if not ranks:
        return "none"
    if len(ranges) > most:
        ranges = f"{ranges[:most].rpartition(',')[0]},…"
    return f"rank {ranges}" if ranks == 1 else f"{ranks} ranks {ranges}"


Runs = list[tuple[int, int]]
"""Ranks as first and last of each run, in order."""


class Ranges:
    """The ranks of a class as ranges, there and missing; each set is written once, most frames of a stack share theirs.

    Who is missing follows from the runs of all, so that a rank alone costs no look at all others.
    """

    def __init__(self, everybody: Collection[int], separator: str = ",") -> None:
        self.everybody = len(everybody)
        self._all = rank_runs(everybody)
        self._separator = separator
        self._known: dict[frozenset[int], tuple[str, str]] = {}

    def of(self, ranks: frozenset[int]) -> tuple[str, str]:
        """Who is there and who is missing, ``0-4,6-7`` and ``5``."""
        if ranks not in self._known:
            there = rank_runs(ranks)
            both = there, _without(self._all, there)
            self._known[ranks] = written_runs(both[0], self._separator), written_runs(both[1], self._separator)
        return self._known[ranks]


def _without(whole: Runs, part: Runs) -> Runs:
    """The runs of ``whole`` without those of ``part``, which lie within them."""
    left: Runs = []
    at = 0
    for first, last in whole:
        begin = first
        while at < len(part) and part[at][1] <= last:
            if begin < part[at][0]:
                left.append((begin, part[at][0] - 1))
            begin = part[at][1] + 1
            at += 1
        if begin <= last:
            left.append((begin, last))
    return left


def stacks_of(tree: Node) -> Iterator[tuple[list[Node], list[Frame]]]:
    """For each node at which stacks end, the nodes that lead to it, itself last, and their frames; the first is reused.

    The frames are at the lines of most of those who end there, not of most who came through them.
    """
    for path in tree.walk():
        end = path[-1]
        if end.ends:
            yield path, [_at(node.frame, line) for node, line in zip(path, end.lines, strict=True)]


def _at(frame: Frame, line: int) -> Frame:
    return frame if frame.line == line else Frame(frame.function, frame.file, line)
