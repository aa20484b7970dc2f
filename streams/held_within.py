"""What a timer of own work may hide: waiting for others within it, and for whom.

Ranks that share a stage of a replica meet within what each calls forward, and a later stage waits there for the one
before it, unless it times that apart: such a timer tells which group is held up, and not by whom. And where timers
account for the steps of all ranks but one, that one may be whom a slow one waits for, wherever it does.
"""

from __future__ import annotations

import re

import numpy as np

from streams.robust import Array, median_of
from streams.slow_ranks import PAST_STEPS, Standing
from streams.step_tables import StepTables
from streams.view import AttemptView

OF_EXCESS, OF_STEP = 0.5, 0.05
"""Time that no timer covers speaks for another rank from so much of the suspect's excess, and of a step, on."""
LEAST_OTHERS = 2
_PASSES_ON = re.compile(r"forward|backward")
_RECEIVES = re.compile(r"recv|receive|p2p|pipeline|bubble")


def within_its_group(view: AttemptView, tables: StepTables, timer: str, ranks: list[int]) -> bool:
    """Whether one of the ranks may wait within ``timer``, which loads no data, for others of its own replica."""
    apart = any(_RECEIVES.search(key) for key in tables.of("wait"))
    return any(
        _shares_a_stage(view, rank) or (not apart and bool(_PASSES_ON.search(timer)) and _follows(view, rank, timer))
        for rank in ranks
    )


def _shares_a_stage(view: AttemptView, rank: int) -> bool:
    """Whether others compute the same stage of the same replica with it, as tensor and context parallel ranks do."""
    at = view.coordinates(rank)
    if "dp" not in at or "pp" not in at:
        return False
    mine = (at["pp"], at["dp"], at.get("ep"))
    others = (view.coordinates(other) for other in view.members if other != rank)
    return any((one.get("pp"), one.get("dp"), one.get("ep")) == mine for one in others)


def _follows(view: AttemptView, rank: int, timer: str) -> bool:
    """Whether another stage has to be through before the rank's: the one before it forward, the one behind it back."""
    at, stages = view.coordinates(rank).get("pp"), view.layout.get("pp", 1)
    if not isinstance(at, int):
        return stages > 1
    return at > 0 if "forward" in timer else at < stages - 1


def unaccounted(view: AttemptView, tables: StepTables, slow: list[Standing], steps: int, step_ns: int) -> list[int]:
    """Other ranks whose timers leave more of their steps open than their peers', by much of what the slow work longer.

    Against what they left open before it began, where that is known: some always do what nobody times.
    """
    known = {one.rank for one in slow}
    others = [rank for rank in sorted(view.members) if rank not in known]
    first = min(one.iterations[max(len(one.iterations) - steps, 0)] for one in slow)
    now = tables.open_time(others, first, None)
    if np.count_nonzero(np.isfinite(now)) < LEAST_OTHERS:
        return []
    more = now - np.nan_to_num(_before(tables, others, slow, steps), nan=0.0)
    beyond = more - median_of(more)
    least = max(OF_EXCESS * min(one.excess(steps) for one in slow), OF_STEP * step_ns)
    return [rank for rank, one in zip(others, beyond.tolist(), strict=True) if one > least]


def _before(tables: StepTables, others: list[int], slow: list[Standing], steps: int) -> Array:
    """What they left open in the steps before the slow ones became so; NaN where these always were."""
    onset = min(one.iterations[max(one.onset(steps, 1.0), 0)] for one in slow)
    past = [at for one in slow for at in one.iterations if at < onset]
    if len(set(past)) < PAST_STEPS:
        return np.full(len(others), np.nan)
    return tables.open_time(others, min(past), onset)
