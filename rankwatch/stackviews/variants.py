"""Ranks that stand in the same functions at different lines: one function may call two collectives.

A place is told by functions and files alone, so that a loop does not make many of it; where the lines differ in the
job's own code, they may still tell ranks apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from rankwatch.stackviews.picture import frame_text
from schemas.events import Frame
from schemas.identity import said_ranks
from streams.member import WAITING
from streams.stack_classes import Sample, StackClass, StackGroup, thread_kind
from streams.stacks import frame_name, is_own, python_frames

Kind = tuple[str, str, str]
MOST_TOLD = 4
"""Lines of one place that a sentence tells."""


class Variant(msgspec.Struct, frozen=True):
    """A stack with its lines, and the ranks that have it, in order."""

    frames: list[Frame]
    ranks: list[int]


def by_kind(samples: Iterable[Sample]) -> dict[Kind, list[Sample]]:
    """Samples by role, process type and kind of thread, as classes are made."""
    found: dict[Kind, list[Sample]] = {}
    for one in samples:
        found.setdefault((one.role, one.process_type, thread_kind(one.thread)), []).append(one)
    return found


def variants_of(one: StackClass, samples: dict[Kind, list[Sample]]) -> list[list[Variant]]:
    """Of each group of a class its stacks, those of most ranks first; as the group tells it where no samples are."""
    sharing: dict[tuple[Frame, ...], set[int]] = {}
    for sample in samples.get((one.role, one.process_type, one.thread), ()):
        if sample.frames:
            sharing.setdefault(tuple(python_frames(sample.frames)), set()).add(sample.rank)
    found: dict[tuple[str, ...], list[Variant]] = {}
    for frames, ranks in sharing.items():
        found.setdefault(_names(frames), []).append(Variant(list(frames), sorted(ranks)))
    for variants in found.values():
        variants.sort(key=lambda variant: (-len(variant.ranks), variant.ranks))
    return [found.get(_names(group.frames)) or [Variant(group.frames, group.ranks)] for group in one.groups]


def _names(frames: Sequence[Frame]) -> tuple[str, ...]:
    return tuple(map(frame_name, frames))


def lines_apart(one: StackClass, samples: dict[Kind, list[Sample]]) -> Iterator[str]:
    """For each place where ranks wait for others, the lines of the job's own code at which they are, if they differ."""
    for group, variants in zip(one.groups, variants_of(one, samples), strict=True):
        if group.activity not in WAITING or len(variants) < 2:
            continue
        ranks = _by_line(group, variants)
        if len(ranks) > 1:
            ordered = sorted(ranks.items(), key=lambda item: (-len(item[1]), min(item[1])))
            told = [f"{said_ranks(at)} at {frame_text(frame)}" for frame, at in ordered[:MOST_TOLD]]
            more = f", others at {len(ordered) - MOST_TOLD} more" if len(ordered) > MOST_TOLD else ""
            yield f"of {said_ranks(group.ranks)}: {', '.join(told)}{more}"


def _by_line(group: StackGroup, variants: list[Variant]) -> dict[Frame, set[int]]:
    """The ranks at each line of the innermost frame of own code in which lines differ; nothing where none do."""
    for at in range(len(group.frames) - 1, -1, -1):
        lines = {variant.frames[at].line for variant in variants}
        if len(lines) > 1 and is_own(group.frames[at]):
            break
    else:
        return {}
    found: dict[Frame, set[int]] = {}
    for variant in variants:
        frame = msgspec.structs.replace(group.frames[at], line=variant.frames[at].line)
        found.setdefault(frame, set()).update(variant.ranks)
    return found
