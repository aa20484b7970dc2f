"""The threads of a job by what they are for, and within each kind who is where: the contrast that stacks allow.

Only threads of one process type, role and name are compared. Whoever could not be sampled is *unobserved*, which is
neither to be there nor to be missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from schemas.events import Frame
from schemas.identity import said_ranks
from schemas.results import Activity
from streams.stacks import activity_of, frame_name, place, python_frames
from streams.trie import Node, merged

MAIN = "MainThread"
TRAINER = "trainer"
_NUMBERED = re.compile(r"0x[0-9a-fA-F]+|\d+")


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One thread of one rank as last seen, frames outermost first; without frames, ``failure`` says why."""

    rank: int
    role: str
    process_type: str
    thread: str
    frames: list[Frame]
    failure: str = ""


class StackGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The ranks of a class that stand in one place; ``minority`` where more than half of the class stand in another."""

    ranks: list[int]
    frames: list[Frame]
    activity: Activity
    minority: bool

    @property
    def place(self) -> str:
        """Where they are, as people say it."""
        return place(self.frames)


class StackClass(msgspec.Struct, frozen=True, kw_only=True):
    """Threads that can be compared, and where they are.

    ``groups``, the largest first, are those whose stacks are the same but for lines. ``unobserved`` maps each rank that
    has no usable sample here to the reason; it is empty where nobody can say that the rank has such a thread.
    """

    process_type: str
    role: str
    thread: str
    tree: Node
    groups: list[StackGroup]
    unobserved: dict[int, str]

    @property
    def is_main(self) -> bool:
        """Whether these are the threads that train."""
        return self.process_type == TRAINER and self.thread == MAIN

    @property
    def name(self) -> str:
        """``trainer MainThread``, with the role where there is one."""
        return " ".join(part for part in (self.role, self.process_type, self.thread) if part)

    def missing(self, node: Node) -> frozenset[int]:
        """The ranks that were observed elsewhere than in ``node``."""
        return self.tree.ranks - node.ranks


def thread_kind(thread: str) -> str:
    """A thread's name without what numbers it: ``Thread-3 (run)`` and ``Thread-12 (run)`` are of one kind."""
    return _NUMBERED.sub("#", thread)


def classes_of(samples: Iterable[Sample], roles: Mapping[int, str]) -> list[StackClass]:
    """The classes of a job's threads, those that train first, then in order of their names.

    ``roles`` has every rank that should be there with its role. Of several samples of one thread only the latest may
    be given.
    """
    found: dict[tuple[str, str, str], list[Sample]] = {}
    for sample in samples:
        key = (sample.role, sample.process_type, thread_kind(sample.thread))
        found.setdefault(key, []).append(sample)
    for role in sorted(set(roles.values())):
        if any(of_role == role for of_role, *_ in found):
            found.setdefault((role, TRAINER, MAIN), [])
    seen = {sample.rank for samples in found.values() for sample in samples if sample.frames}
    classes = [_class(key, found[key], roles, seen) for key in found if any(one.frames for one in found[key])]
    return sorted(classes, key=lambda one: (not one.is_main, one.role, one.process_type, one.thread))


def _class(key: tuple[str, str, str], samples: list[Sample], roles: Mapping[int, str], seen: set[int]) -> StackClass:
    role, process_type, thread = key
    usable = [sample for sample in samples if sample.frames]
    # Only what every sampler shows: else those sampled with native frames would stand apart from all others.
    tree = merged((sample.rank, python_frames(sample.frames)) for sample in usable)
    every = process_type == TRAINER and thread == MAIN
    unobserved = {
        rank: "no sample"
        for rank, of_role in roles.items()
        if of_role == role and rank not in tree.ranks and (every or rank not in seen)
    }
    for sample in sorted(samples, key=lambda one: one.failure, reverse=True):
        if sample.rank not in tree.ranks and sample.failure:
            unobserved[sample.rank] = sample.failure
    return StackClass(
        process_type=process_type,
        role=role,
        thread=thread,
        tree=tree,
        groups=_groups(usable, len(tree.ranks)),
        unobserved=dict(sorted(unobserved.items())),
    )


def _groups(usable: list[Sample], observed: int) -> list[StackGroup]:
    """Ranks by equal frames; of those that differ in lines only, the stack of the lowest rank is shown."""
    found: dict[tuple[str, ...], dict[int, list[Frame]]] = {}
    for sample in usable:
        frames = python_frames(sample.frames)
        at = found.setdefault(tuple(map(frame_name, frames)), {})
        at[sample.rank] = min(at.get(sample.rank, frames), frames, key=_order)
    largest = max(map(len, found.values()), default=0)
    groups = [
        StackGroup(
            ranks=sorted(at),
            frames=at[min(at)],
            activity=activity_of(at[min(at)]),
            minority=2 * largest > observed and len(at) < largest,
        )
        for at in found.values()
    ]
    return sorted(groups, key=lambda one: (-len(one.ranks), one.ranks, _order(one.frames)))


def _order(frames: list[Frame]) -> list[tuple[str, str, int]]:
    return [(frame.function, frame.file, frame.line) for frame in frames]


def said(classes: list[StackClass], most: int = 6) -> list[str]:
    """A line a class that trains: ``ranks 0-4,6-7 in all_reduce (...); rank 5 in __next__ (...), its loader in read``.

    Beyond ``most`` groups only the number of ranks is told. Other threads are told of a minority's ranks only.
    """
    lines = []
    for one in (one for one in classes if one.is_main):
        parts = [f"{said_ranks(group.ranks)} in {_place(group, one, classes)}" for group in one.groups[:most]]
        rest = {rank for group in one.groups[most:] for rank in group.ranks}
        if rest:
            parts.append(f"{said_ranks(rest)} in {len(one.groups) - most} other places")
        if one.unobserved:
            parts.append(f"{said_ranks(one.unobserved)} not observed")
        lines.append("; ".join(parts) if not one.role else f"{one.role}: {'; '.join(parts)}")
    return lines


def _place(group: StackGroup, own: StackClass, classes: list[StackClass]) -> str:
    if not group.minority:
        return group.place
    helpers = {
        f", its {one.process_type} in {other.place}"
        for one in classes
        if one.role == own.role and one.process_type != own.process_type and one.thread == MAIN
        for other in one.groups
        if set(other.ranks) <= set(group.ranks)
    }
    return group.place + "".join(sorted(helpers))
