"""Folded stacks, as flamegraph.pl, inferno and speedscope read them: ``class;outermost;...;innermost ranks``."""

from __future__ import annotations

from rankwatch.stackviews.picture import Picture, frame_text, in_a_path, stacks_of
from schemas.events import Frame
from streams.stack_classes import StackClass
from streams.trie import Node


def render(picture: Picture) -> str:
    """A line for each stack: its class, its frames outermost first, and how many ranks stand there.

    Lines are those of most of the ranks that stand there, so frames of one function may be at several.
    """
    return "".join(line for one in picture.classes for line in _lines(one))


def _lines(one: StackClass) -> list[str]:
    known: dict[tuple[int, int], str] = {}

    def told(node: Node, frame: Frame) -> str:
        key = id(node), frame.line
        if key not in known:
            known[key] = in_a_path(frame_text(frame))
        return known[key]

    root = in_a_path(one.name)
    return [
        f"{';'.join([root, *map(told, path, frames)])} {len(path[-1].ends)}\n" for path, frames in stacks_of(one.tree)
    ]
