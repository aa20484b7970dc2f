"""Where everybody of an attempt is while it stands still: its threads by class as one record of bounded size.

Each thread stands where it was last seen since the standstill settled. What a process did before it ended is not where
it is; whoever could not be sampled is unobserved, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from schemas.codec import encode
from schemas.events import MAIN_THREAD, Frame
from schemas.identity import rank_ranges, shortened
from schemas.ids import stable_id
from schemas.results import MergedClass, MergedGroup, MergedStacks, StackSpan, Unobserved
from schemas.topics import TOPICS
from streams.attempt_window import AttemptWindow
from streams.member import Member
from streams.stack_classes import TRAINER, Sample, StackClass, StackGroup, by_reason, classes_of
from streams.stack_words import lines_of
from streams.stacks import frame_name
from streams.stall import Stall
from streams.view import AttemptView

TOPIC = "merged.stacks"
MOST_REASONS = 8
LONGEST_NAME = 300
"""Characters of a name; of a file its last ones are kept."""


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """How many classes, groups of each and frames of each of those a record holds; the others are counted."""

    classes: int
    groups: int
    frames: int


BOUNDS = (
    Bounds(classes=128, groups=32, frames=24),
    Bounds(classes=64, groups=8, frames=8),
    Bounds(classes=16, groups=4, frames=2),
    Bounds(classes=2, groups=2, frames=1),
    Bounds(classes=1, groups=1, frames=1),
)
"""Tried in turn until the record fits its topic."""


def merged_stacks(view: AttemptView, window: AttemptWindow, stall: Stall) -> MergedStacks | None:
    """The record of one window of a standstill; null where nobody was sampled since it settled, not even in vain."""
    samples = list(_samples(view, stall.settled))
    if not samples:
        return None
    classes = classes_of([*samples, *_ends(view)], _roles(view))
    bare = MergedStacks(
        id=stable_id("merged_stacks", view.job, view.attempt, window.end),
        job=view.job,
        attempt=view.attempt,
        start=window.start,
        end=window.end,
        since=stall.since,
        iteration=stall.iteration,
        phase=stall.phase,
    )
    return _fitting(bare, classes)


def what_it_says(stacks: MergedStacks) -> str:
    """A hash that changes when ranks or places do in a class of which there is something to say; lines do not count."""
    told = [
        [one.role, one.process_type, one.thread, one.observed]
        + [[group.ranks, [frame_name(frame) for frame in group.frames]] for group in one.groups]
        for one in stacks.classes
        if one.text
    ]
    return stable_id(msgspec.json.encode(told).decode())


def _samples(view: AttemptView, since: int) -> Iterator[Sample]:
    """Where each thread was last seen, of those that live; a failure for each process that could not be looked into."""
    for rank, member in sorted(view.members.items()):
        role = member.identity.role
        for _, span in sorted(member.spans.items()):
            if span.last >= since and _lives(span.last, member):
                yield _sample(rank, role, span)
        for kind, (time, reason) in sorted(member.failures.items()):
            if time >= since and _lives(time, member):
                yield _failed(rank, role, reason, kind)


def _ends(view: AttemptView) -> Iterator[Sample]:
    """Why those are not observed whose processes have ended."""
    for rank, member in sorted(view.members.items()):
        end = _end(member)
        if end:
            yield _failed(rank, member.identity.role, end)


def _failed(rank: int, role: str, reason: str, kind: str = TRAINER) -> Sample:
    return Sample(rank=rank, role=role, process_type=kind, thread=MAIN_THREAD, frames=[], failure=reason)


def _sample(rank: int, role: str, span: StackSpan) -> Sample:
    return Sample(
        rank=rank,
        role=role,
        process_type=span.process_type,
        thread=span.thread,
        frames=span.frames,
        outer=span.outer,
        since=span.first,
        samples=span.samples,
    )


def _lives(time: int, member: Member) -> bool:
    """Whether what was seen at ``time`` was not seen of a process that has ended."""
    return member.zombie is None and (member.exit is None or time > member.exit.time)


def _end(member: Member) -> str:
    """How the rank's process ended, or nothing where it is not known to have."""
    if member.exit is None:
        return "its process is dead" if member.zombie is not None else ""
    return f"ended by {member.exit.signal}" if member.exit.signal else f"ended with exit code {member.exit.code}"


def _roles(view: AttemptView) -> dict[int, str]:
    """Every rank that should be there with its role; where all have one role, those that never came have it, too."""
    known = {rank: member.identity.role for rank, member in view.members.items()}
    roles = sorted(set(known.values()))
    other = roles[0] if len(roles) == 1 else ""
    return {rank: known.get(rank, other) for rank in sorted(view.expected)}


def _fitting(bare: MergedStacks, classes: list[StackClass]) -> MergedStacks:
    """The record with as much as its topic takes; classes of which there is something to say go before the others."""
    lines = {id(one): line for one, line in lines_of(classes)}
    ordered = sorted(classes, key=lambda one: id(one) not in lines)
    for bounds in BOUNDS:
        record = msgspec.structs.replace(
            bare,
            classes=[_class(one, lines.get(id(one), ""), bounds) for one in ordered[: bounds.classes]],
            rest=max(0, len(ordered) - bounds.classes),
        )
        if TOPICS[TOPIC].takes(len(record.job.encode("utf-8", "replace")) + len(encode(record))):
            break
    return record


def _class(one: StackClass, text: str, bounds: Bounds) -> MergedClass:
    rest = one.groups[bounds.groups :]
    return MergedClass(
        process_type=shortened(one.process_type, LONGEST_NAME),
        thread=shortened(one.thread, LONGEST_NAME),
        role=shortened(one.role, LONGEST_NAME),
        observed=rank_ranges(one.observed),
        unobserved=_unobserved(one),
        groups=[_group(group, bounds) for group in one.groups[: bounds.groups]],
        rest=len(rest),
        rest_ranks=rank_ranges(rank for group in rest for rank in group.ranks),
        text=text,
    )


def _unobserved(one: StackClass) -> list[Unobserved]:
    """Ranks by reason, the most first; where reasons are many, those of the fewest ranks are only counted."""
    reasons = by_reason(one.unobserved.items())
    found = [Unobserved(ranks=rank_ranges(ranks), reason=reason) for reason, ranks in reasons[:MOST_REASONS]]
    rest = [rank for _, ranks in reasons[MOST_REASONS:] for rank in ranks]
    if rest:
        found.append(Unobserved(ranks=rank_ranges(rest), reason=f"{len(reasons) - MOST_REASONS} other reasons"))
    return found


def _group(group: StackGroup, bounds: Bounds) -> MergedGroup:
    cut = max(0, len(group.frames) - bounds.frames)
    return MergedGroup(
        ranks=rank_ranges(group.ranks),
        activity=group.activity,
        place=group.place,
        frames=[_shown(frame) for frame in group.frames[cut:]],
        outer=group.sample.outer + cut,
        minority=group.minority,
        since=group.since,
        samples=group.samples,
    )


def _shown(frame: Frame) -> Frame:
    file = frame.file if len(frame.file) <= LONGEST_NAME else "…" + frame.file[1 - LONGEST_NAME :]
    return Frame(shortened(frame.function, LONGEST_NAME), file, frame.line)
