"""FLAME's merged stacks: ``frame (file:line)@has|missing;...;innermost (file:line) @has|missing 1``.

Ranges of ranks are joined by ``/``. Ranks that were not observed are neither there nor missing, and the format has no
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
    known: dict[int, str] = {}

    def told(node: Node) -> str:
        if id(node) not in known:
            known[id(node)] = f"{_frame(node.frame)}{_ranked(node, ranges)}"
        return known[id(node)]

    root = f"{in_a_path(one.name)} (:0){_ranked(one.tree, ranges)}"
    lines = []
    for path in stacks_of(one.tree):
        above = ";".join([root, *map(told, path[:-1])])
        lines.append(f"{above};{_frame(path[-1].frame)} {_ranked(path[-1], ranges)} 1\n")
    return lines


def _ranked(node: Node, ranges: Ranges) -> str:
    there, missing = ranges.of(node.ranks)
    return f"@{there}|{missing}"


def _frame(frame: Frame) -> str:
    """FLAME tells the whole path of a file, and line 0 where there is none."""
    function = in_a_path(frame.function).strip() or "?"
    return f"{shortened(function, LONGEST_NAME)} ({shortened(in_a_path(frame.file), LONGEST_NAME)}:{frame.line})"
