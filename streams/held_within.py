"""What a timer of own work may hide: waiting for others within it, and for whom.

Ranks that share a stage of a replica meet within what each calls forward, and a later stage waits there for the one
before it, unless it times that apart: such a timer tells which group is held up, and not by whom. And where timers
account for the steps of all ranks but one, that one may be whom a slow one waits for, wherever it does. Where nobody
knows who meets within forward (shards of parameters, tensor-parallel ranks, stages) and no timer holds the waiting of
the others, each of them may be that one.
"""

from __future__ import annotations

import re
from collections import Counter

import numpy as np

from streams.places import stage_of_replica
from streams.robust import Array, median_of
from streams.slow_ranks import PAST_STEPS, Standing
from streams.step_tables import Steps, StepTables, timer_of
from streams.view import AttemptView

OF_EXCESS, OF_STEP = 0.5, 0.05
"""Time that no timer covers speaks for another rank from so much of the suspect's excess, and of a step, on."""
LEAST_OTHERS = 2
_WAYS = {"forward": re.compile(r"forward|fwd"), "backward": re.compile(r"backward|bwd")}
_RECEIVES = re.compile(r"recv|receive|p2p|pipeline|bubble")
_RECEIVED = re.compile(r"(?:(?:forward|backward|fwd|bwd)[_-]?)+(?:recv|receive)")
"""Megatron's names: ``forward-send-backward-recv`` receives what comes back."""


def within_its_group(view: AttemptView, tables: StepTables, key: str, ranks: list[int]) -> bool:
    """Whether one of the ranks may wait within this timer, which loads no data, for others of its own replica."""
    ways = _ways(timer_of(key))
    last = max((at for rank in view.members if isinstance(at := view.coordinates(rank).get("pp"), int)), default=0)
    last = max(last, view.layout.get("pp", 1) - 1) if ways else 0
    # Who computes the same stage of the same replica: tensor and context parallel ranks.
    together = Counter(stage_of_replica(view, rank) for rank in view.members)
    together[""] = 0
    return any(
        together[stage_of_replica(view, rank)] > 1
        or any(_follows(view, rank, way, last) and not _times_receiving(tables, rank, way) for way in ways)
        for rank in ranks
    )


def _ways(timer: str) -> list[str]:
    """Whether it passes on what others work on, forward, backward or both."""
    return [way for way, told in _WAYS.items() if told.search(timer.lower())]


def _follows(view: AttemptView, rank: int, way: str, last: int) -> bool:
    """Whether another stage has to be through before the rank's: the one before it forward, the one behind it back."""
    at = view.coordinates(rank).get("pp")
    if not isinstance(at, int):
        return last > 0
    return at > 0 if way == "forward" else at < last


def _times_receiving(tables: StepTables, rank: int, way: str) -> bool:
    """Whether the rank itself times how long it waits for what it is passed on this way."""
    received = (timer_of(key).lower() for key in tables.of("wait") if tables[key].places([rank]))
    return any(_RECEIVES.search(timer) and _goes(timer, way) for timer in received)


def _goes(timer: str, way: str) -> bool:
    """Whether what this timer receives goes this way: as said next to it where both are named, either where none is."""
    named = _ways(timer)
    if len(named) < len(_WAYS):
        return not named or way in named
    return any(way in _ways(found.group()) for found in _RECEIVED.finditer(timer))


def is_unwitnessed(view: AttemptView, tables: StepTables, key: str, slow: list[Standing], steps: int) -> bool:
    """Whether nobody's timers show that others wait for the slow ranks, which may wait within this one themselves.

    A rank that is late is waited for: what others time of waiting, or together with it, takes about as much longer.
    """
    ranks = [one.rank for one in slow]
    if not _ways(timer_of(key)) or view.knows_stages_beside(ranks):
        return False
    others = sorted(set(tables[key].ranks) - set(ranks))
    more = tables.waiting_time(others, _told(slow, steps)) - tables.waiting_time(others, _past(slow, steps))
    return not float(median_of(more)) >= OF_EXCESS * min(one.excess(steps) for one in slow)


def unaccounted(view: AttemptView, tables: StepTables, slow: list[Standing], steps: int, step_ns: int) -> list[int]:
    """Other ranks whose timers leave more of their steps open than their peers', by much of what the slow work longer.

    Against what they left open before it began, where that is known: some always do what nobody times.
    """
    known = {one.rank for one in slow}
    others = [rank for rank in sorted(view.members) if rank not in known]
    now = tables.open_time(others, _told(slow, steps))
    if np.count_nonzero(np.isfinite(now)) < LEAST_OTHERS:
        return []
    more = now - np.nan_to_num(tables.open_time(others, _past(slow, steps)), nan=0.0)
    beyond = more - _of_peers(view, others, more)
    least = max(OF_EXCESS * min(one.excess(steps) for one in slow), OF_STEP * step_ns)
    return [rank for rank, one in zip(others, beyond.tolist(), strict=True) if one > least]


def _of_peers(view: AttemptView, ranks: list[int], values: Array) -> Array:
    """The median of each rank's peers among these, the lower one of two, of all ranks for who has no peer there.

    Stages leave open what they do by design; of two peers of a stage the one that leaves more must not be the measure.
    """
    place = {rank: at for at, rank in enumerate(ranks)}
    found = np.full(len(ranks), median_of(values))
    for group in view.peer_groups():
        at = [place[rank] for rank in group if rank in place and np.isfinite(values[place[rank]])]
        if len(at) > 1:
            found[at] = np.sort(values[at])[(len(at) - 1) // 2]
    return found


def _told(slow: list[Standing], steps: int) -> Steps:
    """The steps by which they are judged."""
    return sorted({step for one in slow for step in one.told(steps)})


def _past(slow: list[Standing], steps: int) -> Steps:
    """The steps in which none of them was slow yet; none where they always were."""
    onset = min(one.times[max(one.onset(steps, 1.0), 0)] for one in slow)
    past = sorted({step for one in slow for step in zip(one.iterations, one.times, strict=True) if step[1] < onset})
    return past if len(past) >= PAST_STEPS else []
