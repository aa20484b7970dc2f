"""Whether all of a step takes longer by one factor on all ranks: then the steps are most likely others.

Whatever breaks, or is used by others too, slows one kind of work or some ranks. Twice as many samples or longer
sequences from one step on make all work of all ranks longer at once and by the same, and then it stays so. Where a part
of the step and the whole grow by one factor, so does the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

import msgspec

NEAR_STEPS = 20
"""How far apart changes of one step may be found by different timers."""
TOLERANCE = 0.2
"""A factor is another's if what they add differs by less than this share."""
NEARLY_ALL = 0.9
PART, LARGE_PART = 0.1, 0.25
"""Shares of a step: which timers count, and how much of a step those must be that changed as it did."""


class Alike(msgspec.Struct, frozen=True, kw_only=True):
    """A change of a duration: since which iteration, by which factor, and to how much (s)."""

    iteration: int
    ratio: float
    seconds: float


def scaled_together(whole: Alike, drifts: Mapping[str, Mapping[int, Alike]], reporters: Mapping[str, int]) -> list[str]:
    """The timers that changed as the ``whole`` step did on nearly all ranks; none where another part changed otherwise.

    ``drifts`` are the latest changes by timer and rank; ``reporters`` says how many ranks print a timer.
    """
    found, seconds = [], 0.0
    for timer, by_rank in sorted(drifts.items()):
        long = median(one.seconds for one in by_rank.values())
        if long < PART * whole.seconds:
            continue
        if sum(_is_alike(one, whole) for one in by_rank.values()) < NEARLY_ALL * reporters.get(timer, len(by_rank)):
            return []
        found.append(timer)
        seconds += long
    return found if seconds >= LARGE_PART * whole.seconds else []


def _is_alike(one: Alike, whole: Alike) -> bool:
    near = abs(one.iteration - whole.iteration) <= NEAR_STEPS
    return near and abs(one.ratio - whole.ratio) <= TOLERANCE * (whole.ratio - 1)
