"""What stacks said while a job stood still, as its incident keeps and tells it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from schemas.events import MAIN_THREAD
from schemas.identity import rank_ranges, ranks_of
from schemas.results import Anomaly, MergedClass, MergedStacks
from streams.incidents.situation import inexactness
from streams.incidents.standstill import FAILURES
from streams.member import WAITING
from streams.stack_classes import TRAINER
from streams.stack_words import SHOWN_PLACES

KEPT = 4
TOLD_CLASSES = 12
"""Roles and kinds of threads of which an incident says something."""
ALL_RANKS = 1 << 31
"""More than there can be."""
FAILED = FAILURES | {"cascade", "unplaced_error", "unplaced_besides"}
"""Grounds that say that ranks have failed or lost each other."""


class StacksSeen(msgspec.Struct, frozen=True, kw_only=True):
    """What stacks said from the window on that ended at ``end``, of a standstill that began at ``since``."""

    end: int
    since: int
    classes: list[MergedClass]


def with_those(seen: list[StacksSeen], stacks: MergedStacks, anomalies: Sequence[Anomaly]) -> list[StacksSeen]:
    """What is kept once ``stacks`` were seen, too: what was seen first and of late, before ranks are known to fail."""
    new = StacksSeen(end=stacks.end, since=stacks.since, classes=told_classes(stacks))
    failed = _failed(seen, anomalies)
    if seen and (seen[-1].classes == new.classes or (failed is not None and failed < new.end)):
        return seen
    return [*seen[:1], *seen[1:][2 - KEPT :], new]


def before_failures(seen: list[StacksSeen], anomalies: Sequence[Anomaly]) -> list[MergedClass]:
    """Where everybody stood in the standstill: what is seen once ranks fail shows them leaving."""
    failed = _failed(seen, anomalies)
    before = [one for one in seen[1:] if failed is None or one.end <= failed]
    return [*seen[:1], *before][-1].classes if seen else []


def _failed(seen: list[StacksSeen], anomalies: Sequence[Anomaly]) -> int | None:
    """When a rank first failed in the standstill that was seen, null where none is known to have."""
    failures = [one for one in anomalies if one.grounds in FAILED and seen and one.onset >= seen[0].since]
    return min((one.onset - inexactness(one) for one in failures), default=None)


def told_classes(stacks: MergedStacks) -> list[MergedClass]:
    """The classes of which there is something to say, without frames; those beyond a bound are counted."""
    told = [_told(one) for one in stacks.classes if one.text]
    left = len(told) - TOLD_CLASSES
    if left > 0:
        last = told[TOLD_CLASSES - 1]
        words = f"{last.text}; {left} more roles or kinds of threads are left out here"
        told = [*told[: TOLD_CLASSES - 1], msgspec.structs.replace(last, text=words)]
    return told


def _told(one: MergedClass) -> MergedClass:
    shown, rest = one.groups[:SHOWN_PLACES], one.groups[SHOWN_PLACES:]
    return msgspec.structs.replace(
        one,
        groups=[msgspec.structs.replace(group, frames=[], outer=0, since=0, samples=0) for group in shown],
        rest=one.rest + len(rest),
        rest_ranks=_together([*(group.ranks for group in rest), one.rest_ranks]),
    )


def apart(classes: Sequence[MergedClass]) -> list[tuple[str, str, str]]:
    """Of those that train, by role, who was observed and who of them does not wait for others, as far as is told."""
    mains = [one for one in classes if one.process_type == TRAINER and one.thread == MAIN_THREAD]
    return [
        (one.role, one.observed, _together([group.ranks for group in one.groups if group.activity not in WAITING]))
        for one in mains
    ]


def _together(ranges: Sequence[str]) -> str:
    return rank_ranges(rank for one in ranges for rank in ranks_of(one, ALL_RANKS))
