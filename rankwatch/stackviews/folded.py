"""Folded stacks, as flamegraph.pl, inferno and speedscope read them: ``class;outermost;...;innermost ranks``."""

from __future__ import annotations

from rankwatch.stackviews.picture import Picture, frame_text, in_a_path, stacks_of
from streams.stack_classes import StackClass
from streams.trie import Node


def render(picture: Picture) -> str:
    """A line for each stack: its class, its frames outermost first, and how many ranks stand there."""
    return "".join(line for one in picture.classes for line in _lines(one))


def _lines(one: StackClass) -> list[str]:
    known: dict[int, str] = {}

    def told(node: Node) -> str:
        if id(node) not in known:
            known[id(node)] = in_a_path(frame_text(node.frame))
        return known[id(node)]

    root = in_a_path(one.name)
    return [f"{';'.join([root, *map(told, path)])} {len(path[-1].ends)}\n" for path in stacks_of(one.tree)]
