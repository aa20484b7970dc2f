"""Profiles of healthy jobs: summed up to be learned, and held against those of a job.

Another job does other work, on other machines, so that what differs says nothing of a fault and names nobody. Of a
function only a difference to *all* healthy jobs is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Literal

import msgspec

from schemas.events import OTHERS
from schemas.library import FunctionHeld, HealthyJob, LearnedFunction
from schemas.results import FunctionShare, Sketch
from streams.profiles import Key

How = Literal["slower", "new", "gone"]

RATIO = 1.1
LEAST_SHARE = 0.01
"""Of the critical path: what holds less is no difference."""
COMMON = 0.5
"""From this share of the profiled ranks on, a function is one of the job's."""


class Profiled(msgspec.Struct, frozen=True):
    """The profiles of a job's ``ranks`` as one: medians; no function that they leave out has over ``unlisted``.

    ``recorded`` are the kinds of calls in them.
    """

    ranks: int
    step_s: float
    unlisted: float
    recorded: str
    functions: dict[Key, FunctionHeld]


class Difference(msgspec.Struct, frozen=True):
    """A function that differs from all healthy jobs: what it holds ``here``, and ``there`` at most, at least if gone.

    In seconds of a step where both know steps, else as shares of the critical path. Sketches list the largest functions
    alone, so that what is new may have been small there, and what is gone may be small here: the bound is told.
    """

    how: How
    key: Key
    here: float
    there: float
    seconds: bool

    @property
    def size(self) -> float:
        """How large the difference is."""
        return abs(self.here - self.there)


def summed_up(sketches: Iterable[Sketch]) -> Profiled:
    """The profiles of a job's ranks, one each; of those recorded alike, with steps or without, the most."""
    groups: dict[tuple[bool, str], list[Sketch]] = {}
    for sketch in sketches:
        groups.setdefault((bool(sketch.steps), sketch.recorded), []).append(sketch)
    (_, recorded), used = max(groups.items(), key=lambda one: (len(one[1]), one[0]), default=((False, ""), []))
    by_key: dict[Key, list[FunctionShare]] = {}
    for sketch in used:
        for function in sketch.functions:
            if function.name != OTHERS:
                by_key.setdefault((function.kind, function.name), []).append(function)
    functions = {key: _held(same) for key, same in sorted(by_key.items())}
    return Profiled(
        ranks=len(used),
        step_s=_rounded(median([one.step_s for one in used])) if used else 0.0,
        unlisted=_rounded(max((one.unlisted for one in used), default=0.0)),
        recorded=recorded,
        functions=functions,
    )


def _held(same: Sequence[FunctionShare]) -> FunctionHeld:
    return FunctionHeld(
        ranks=len(same),
        share=_rounded(median(one.share for one in same)),
        typical=_rounded(median(one.typical for one in same)),
        mean=_rounded(median(one.mean for one in same)),
    )


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")


def differences(here: Profiled, jobs: Sequence[HealthyJob], functions: Sequence[LearnedFunction]) -> list[Difference]:
    """What tells a job's profiles from those of all healthy jobs that were recorded alike.

    The slower, the new and the gone functions, each in order of size, the largest first.
    """
    jobs = [job for job in jobs if job.recorded == here.recorded]
    if not here.ranks or not jobs:
        return []
    seconds = here.step_s > 0 and all(job.step_s > 0 for job in jobs)
    known = {(one.kind, one.name): one.held for one in functions}
    found: list[Difference] = []
    for key, own in here.functions.items():
        held = {job.id: known[key][job.id] for job in jobs if key in known and job.id in known[key]}
        # What a job does not list may hold as much as the largest that it left out.
        most = max(_of(held.get(job.id), job.step_s, job.unlisted, seconds=seconds) for job in jobs)
        value = _of(own, here.step_s, here.unlisted, seconds=seconds)
        least = LEAST_SHARE * (here.step_s if seconds else 1.0)
        if own.ranks >= COMMON * here.ranks and value > RATIO * most and value - most > least:
            found.append(Difference("slower" if held else "new", key, value, most, seconds))
    for key, held_there in known.items():
        own_bound = _of(None, here.step_s, here.unlisted, seconds=seconds)
        there = [
            _of(held_there[job.id], job.step_s, job.unlisted, seconds=seconds)
            for job in jobs
            if job.id in held_there and held_there[job.id].ranks >= COMMON * job.profiled
        ]
        if key in here.functions or len(there) < len(jobs):
            continue
        least = max(LEAST_SHARE * (job.step_s if seconds else 1.0) for job in jobs)
        if min(there) > RATIO * own_bound and min(there) - own_bound > least:
            found.append(Difference("gone", key, own_bound, min(there), seconds))
    order = {"slower": 0, "new": 1, "gone": 2}
    return sorted(found, key=lambda one: (order[one.how], -one.size, one.key))


def _of(held: FunctionHeld | None, step_s: float, unlisted: float, *, seconds: bool) -> float:
    if held is None:
        return unlisted * (step_s if seconds else 1.0)
    return held.typical if seconds else held.share
