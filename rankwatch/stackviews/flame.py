"""FLAME's merged stacks: ``frame (file:line)@has|missing;...;innermost (file:line) @has|missing 1``.

Ranges of ranks are joined by ``/``. A frame is told at the line of most of those whose stack it is, and has those of
whose stacks this line is told. Ranks that were not observed are neither there nor missing, and the format has no
word for them: they are told elsewhere.
"""

from __future__ import annotations

from rankwatch.stackviews.picture import LONGEST_NAME, Picture, Ranges, in_a_path, stacks_of
from schemas.events import Frame
from schemas.identity import shortened
from streams.stack_classes import StackClass
from streams.trie import Node


def render(picture: Picture) -> str:
    """A line for each stack of each class; the outermost frame names the class."""
    return "".join(line for one in picture.classes for line in _lines(one))


def _lines(one: StackClass) -> list[str]:
    ranges = Ranges(one.tree.ranks, "/")
    split = _Split()
    stacks = [split.of(path, frames) for path, frames in stacks_of(one.tree)]
    names = [_frame(frame) for frame in split.frames]
    ranked = [_ranked(ranks, ranges) for ranks in split.ranks()]
    root = f"{in_a_path(one.name)} (:0){_ranked(one.tree.ranks, ranges)}"
    told = [f"{name}{who}" for name, who in zip(names, ranked, strict=True)]
    return [
        f"{';'.join([root, *(told[at] for at in stack[:-1])])};{names[stack[-1]]} {ranked[stack[-1]]} 1\n"
        for stack in stacks
    ]


class _Split:
    """The frames of a class split by the lines that its stacks are told at; whoever is at another line is not there."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self._ends: list[list[frozenset[int]]] = []
        self._above: list[int] = []
        self._known: dict[tuple[int, int, int], int] = {}

    def of(self, path: list[Node], frames: list[Frame]) -> list[int]:
        """Take in a stack, which ends at the last node; returns where its frames stand in ``frames``."""
        stack: list[int] = []
        above = -1
        for node, frame in zip(path, frames, strict=True):
            at = self._known.setdefault((above, id(node), frame.line), len(self.frames))
            if at == len(self.frames):
                self.frames.append(frame)
                self._ends.append([])
                self._above.append(above)
            self._ends[at].append(path[-1].ends)
            stack.append(at)
            above = at
        return stack

    def ranks(self) -> list[frozenset[int]]:
        """Of each frame the ranks whose stacks lead through it."""
        found: list[frozenset[int]] = []
        for ends, above in zip(self._ends, self._above, strict=True):
            # Without a fork they are those of the caller, which in deep stacks spares most of the work.
            same = above >= 0 and len(ends) == len(self._ends[above])
            found.append(found[above] if same else frozenset().union(*ends))
        return found


def _ranked(ranks: frozenset[int], ranges: Ranges) -> str:
    there, missing = ranges.of(ranks)
    return f"@{there}|{missing}"


def _frame(frame: Frame) -> str:
    """FLAME tells the whole path of a file, and line 0 where there is none."""
    function = in_a_path(frame.function).strip() or "?"
    return f"{shortened(function, LONGEST_NAME)} ({shortened(in_a_path(frame.file), LONGEST_NAME)}:{frame.line})"
