"""Stacks of many ranks as one tree: on each frame the ranks that are there, so that those who are elsewhere show.

A frame is the same in two stacks if the last part of its function's name and of its file's are; tools tell both in
different lengths. Its line does not split the tree, it is kept beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from schemas.events import Frame
from streams.stacks import frame_name


class Node(msgspec.Struct, kw_only=True):
    """A frame under those that called it: ``ranks`` came through it, ``ends`` are those whose stacks end here.

    ``name`` is what its frames have in common; ``frame`` has the longest names that were told and the line at which
    most ranks are, the smallest of several. Where stacks end, ``lines`` are those of all frames from the outermost one
    to this one, as most who end here have them. ``children`` are in order of their names. The root is a node without
    names that all ranks came through.
    """

    name: str = ""
    frame: Frame
    ranks: frozenset[int]
    ends: frozenset[int]
    lines: tuple[int, ...] = ()
    children: list[Node] = []

    def walk(self) -> Iterator[list[Node]]:
        """For each node below this one those that lead to it, itself last, callers first; the list is reused."""
        path: list[Node] = []
        waiting = [(0, child) for child in reversed(self.children)]
        while waiting:
            depth, node = waiting.pop()
            path[depth:] = [node]
            yield path
            waiting.extend((depth + 1, child) for child in reversed(node.children))


def tree_of(stacks: Iterable[tuple[int, Sequence[Frame]]]) -> Node:
    """The tree of stacks, each with its rank and its frames outermost first; the order of stacks does not matter.

    A rank may bring several stacks: it stands wherever one of them is. Time and memory grow with the frames of the
    different stacks, not with how many ranks share them.
    """
    sharing: dict[tuple[Frame, ...], set[int]] = {}
    for rank, frames in stacks:
        sharing.setdefault(tuple(frames), set()).add(rank)
    root = _Growing()
    for path, ranks in sharing.items():
        root.ranks |= ranks
        node = root
        for frame in path:
            name = frame_name(frame)
            node = node.children.setdefault(name, _Growing(name))
            node.ranks |= ranks
            node.seen[frame] += len(ranks)
        node.ends |= ranks
        node.ending[tuple(frame.line for frame in path)] += len(ranks)
    return root.grown()


class _Growing:
    """A node while stacks are still added."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.ranks: set[int] = set()
        self.ends: set[int] = set()
        self.seen: Counter[Frame] = Counter()
        self.ending: Counter[tuple[int, ...]] = Counter()
        self.children: dict[str, _Growing] = {}

    def grown(self) -> Node:
        """This node and all below it as they stay; deepest first, since stacks may be deeper than Python's own."""
        order, waiting = [], [self]
        while waiting:
            growing = waiting.pop()
            order.append(growing)
            waiting.extend(growing.children.values())
        done: dict[int, Node] = {}
        for growing in reversed(order):
            done[id(growing)] = Node(
                name=growing.name,
                frame=_told(growing.seen),
                ranks=frozenset(growing.ranks),
                ends=frozenset(growing.ends),
                lines=min(growing.ending, key=lambda lines: (-growing.ending[lines], lines), default=()),
                children=[done.pop(id(child)) for _, child in sorted(growing.children.items())],
            )
        return done[id(self)]


def _told(seen: Counter[Frame]) -> Frame:
    """One frame for all that are the same: the longest names, and the line of most ranks."""
    lines: Counter[int] = Counter()
    for frame, ranks in seen.items():
        lines[frame.line] += ranks
    return Frame(
        function=max((frame.function for frame in seen), key=lambda name: (len(name), name), default=""),
        file=max((frame.file for frame in seen), key=lambda name: (len(name), name), default=""),
        line=max(sorted(lines), key=lambda line: lines[line], default=0),
    )
