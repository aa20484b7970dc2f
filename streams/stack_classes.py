"""The threads of a job by what they are for, and within each kind who is where: the contrast that stacks allow.

Only threads of one process type, role and name are compared. Whoever could not be sampled is *unobserved*, which is
neither to be there nor to be missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property

import msgspec

from schemas.events import MAIN_THREAD, Frame
from schemas.results import Activity
from streams.member import WAITING
from streams.stacks import activity_of, frame_name, is_idle, place, python_frames
from streams.trie import Node, tree_of

TRAINER = "trainer"
NO_SAMPLE = "no sample"
_NUMBERED = re.compile(r"0x[0-9a-fA-F]+|\d+")


class Sample(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One thread of one rank as last seen, frames outermost first; without frames, ``failure`` says why.

    ``outer`` frames further out are not known. It was seen so ``samples`` times from ``since`` (ns) on.
    """

    rank: int
    role: str
    process_type: str
    thread: str
    frames: list[Frame]
    failure: str = ""
    outer: int = 0
    since: int = 0
    samples: int = 1


class StackGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The ranks of a class that stand in one place, told by the ``sample`` of the lowest of them.

    ``minority``: more than half of the class stand in another place, or wait for others as these do not.
    All of them were seen there ``samples`` times or more from ``since`` (ns) on.
    """

    ranks: list[int]
    sample: Sample
    activity: Activity
    minority: bool
    since: int
    samples: int

    @property
    def frames(self) -> list[Frame]:
        """The frames that every sampler shows, outermost first."""
        return python_frames(self.sample.frames)

    @property
    def place(self) -> str:
        """Where they are, as people say it."""
        return place(self.frames)


class StackClass(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Threads that can be compared, and where they are.

    ``groups``, the largest first, are those whose stacks are the same but for lines. ``unobserved`` maps each rank that
    has no usable sample here to the reason; it is empty where nobody can say that the rank has such a thread.
    """

    process_type: str
    role: str
    thread: str
    samples: list[Sample]
    groups: list[StackGroup]
    unobserved: dict[int, str]

    @property
    def is_main(self) -> bool:
        """Whether these are the threads that train."""
        return self.process_type == TRAINER and self.thread == MAIN_THREAD

    @property
    def name(self) -> str:
        """``trainer MainThread``, with the role where there is one."""
        return " ".join(part for part in (self.role, self.process_type, self.thread) if part)

    @cached_property
    def observed(self) -> frozenset[int]:
        """The ranks that have a usable sample."""
        return frozenset(sample.rank for sample in self.samples)

    @cached_property
    def tree(self) -> Node:
        """The stacks as one tree: only what every sampler shows, or those with native frames would stand apart."""
        return tree_of((sample.rank, python_frames(sample.frames)) for sample in self.samples)

    def missing(self, node: Node) -> frozenset[int]:
        """The ranks that were observed elsewhere than in ``node``."""
        return self.observed - node.ranks


def by_reason(unobserved: Iterable[tuple[int, str]]) -> list[tuple[str, list[int]]]:
    """Ranks, in order, by why they were not observed: the most first, of as many in order of the reasons."""
    found: dict[str, set[int]] = {}
    for rank, reason in unobserved:
        found.setdefault(reason, set()).add(rank)
    return [(reason, sorted(found[reason])) for reason in sorted(found, key=lambda one: (-len(found[one]), one))]


def thread_kind(thread: str) -> str:
    """A thread's name without what numbers it: ``Thread-3 (run)`` and ``Thread-12 (run)`` are of one kind."""
    return _NUMBERED.sub("#", thread)


def classes_of(samples: Iterable[Sample], roles: Mapping[int, str]) -> list[StackClass]:
    """The classes of a job's threads, those that train first, then in order of their names.

    ``roles`` has every rank that should be there with its role, empty where it is not known. Of several samples of one
    thread only the latest may be given. A role of which nobody was sampled has a class, too, unless nothing was at all.
    """
    found: dict[tuple[str, str, str], list[Sample]] = {}
    for sample in samples:
        found.setdefault((sample.role, sample.process_type, thread_kind(sample.thread)), []).append(sample)
    if not found:
        return []
    for role in roles.values():
        found.setdefault((role, TRAINER, MAIN_THREAD), [])
    of_role: dict[str, list[int]] = {}
    for rank, role in roles.items():
        of_role.setdefault(role, []).append(rank)
    seen = {sample.rank for samples in found.values() for sample in samples if sample.frames}
    classes = [_class(key, found[key], of_role.get(key[0], []), seen) for key in found]
    known = [one for one in classes if one.groups or one.unobserved]
    return sorted(known, key=lambda one: (not one.is_main, one.role, one.process_type, one.thread))


def _class(key: tuple[str, str, str], samples: list[Sample], expected: list[int], seen: set[int]) -> StackClass:
    role, process_type, thread = key
    usable = [sample for sample in samples if sample.frames]
    observed = {sample.rank for sample in usable}
    every = process_type == TRAINER and thread == MAIN_THREAD
    unobserved = {
        rank: NO_SAMPLE
        for rank in expected
        # Of a rank that was sampled, what is not there is no thread that it should have.
        if rank not in observed and (every or (usable and rank not in seen))
    }
    for sample in sorted(samples, key=lambda one: one.failure, reverse=True):
        if sample.rank not in observed and sample.failure:
            unobserved[sample.rank] = sample.failure
    return StackClass(
        process_type=process_type,
        role=role,
        thread=thread,
        samples=sorted(usable, key=lambda one: (one.rank, one.thread, one.since)),
        groups=_groups(usable, len(observed), serves=not every),
        unobserved=dict(sorted(unobserved.items())),
    )


def _groups(usable: list[Sample], observed: int, *, serves: bool) -> list[StackGroup]:
    """Ranks by equal frames, whatever their lines."""
    found: dict[tuple[str, ...], list[Sample]] = {}
    # Ranks that show the same share their frames, which are looked at once.
    names: dict[int, tuple[str, ...]] = {}
    for sample in usable:
        if id(sample.frames) not in names:
            names[id(sample.frames)] = tuple(map(frame_name, python_frames(sample.frames)))
        found.setdefault(names[id(sample.frames)], []).append(sample)
    places = [(sorted({one.rank for one in same}), _shown(same), same) for same in found.values()]
    doing = [_doing(shown, serves=serves) for _, shown, _ in places]
    largest = max((len(ranks) for ranks, _, _ in places), default=0)
    waiting = {
        rank for (ranks, _, _), activity in zip(places, doing, strict=True) if activity in WAITING for rank in ranks
    }
    groups = [
        StackGroup(
            ranks=ranks,
            sample=shown,
            activity=activity,
            minority=(2 * largest > observed and len(ranks) < largest)
            or (2 * len(waiting) > observed and activity not in WAITING),
            since=max(one.since for one in same),
            samples=min(one.samples for one in same),
        )
        for (ranks, shown, same), activity in zip(places, doing, strict=True)
    ]
    return sorted(groups, key=lambda one: (-len(one.ranks), _order(one.sample)))


def _doing(sample: Sample, *, serves: bool) -> Activity:
    return "idle" if serves and is_idle(sample.frames) else activity_of(python_frames(sample.frames))


def _shown(same: list[Sample]) -> Sample:
    lowest = min(one.rank for one in same)
    return min((one for one in same if one.rank == lowest), key=_order)


def _order(sample: Sample) -> tuple[int, list[tuple[str, str, int]], int]:
    frames = [(frame.function, frame.file, frame.line) for frame in sample.frames]
    return sample.rank, frames, sample.since
