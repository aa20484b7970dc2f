"""What others show of slow ranks: whether they wait for others themselves, and whether their whole group is slow."""

from __future__ import annotations

import numpy as np

from streams.places import beside, replica_elsewhere
from streams.robust import Array, Bounds, median_of
from streams.slow_ranks import Standing, noise_of, standings
from streams.step_tables import StepTables
from streams.steps import StepTable
from streams.view import AttemptView

LONGER_WAIT, OF_EXCESS = 0.05, 0.25
"""Waiting that speaks for a suspect: beyond its peers' by so much of a step, and of what it works longer."""
WITNESS_STEPS = 5


def held_up(view: AttemptView, tables: StepTables, slow: list[Standing], steps: int, step_ns: int) -> list[int]:
    """The slow ranks that wait for others longer than their peers do: these are held up themselves."""
    found = []
    by_rank = {one.rank: one for one in slow}
    for group in view.peer_groups() if tables.of("wait") else []:
        suspects = [rank for rank in group if rank in by_rank]
        if not suspects:
            continue
        # Most are judged by the same steps.
        known: dict[tuple[tuple[int, int], ...], Array] = {}
        for rank in suspects:
            told = tuple(by_rank[rank].told(steps))
            waiting = known[told] = known[told] if told in known else tables.waiting(group, told)
            others = [wait for rank, wait in zip(group, waiting.tolist(), strict=True) if rank not in by_rank]
            peers = float(np.nan_to_num(median_of(np.array(others)), nan=np.inf))
            most = max(LONGER_WAIT * step_ns, OF_EXCESS * by_rank[rank].excess(steps))
            if waiting[group.index(rank)] - peers > most:
                found.append(rank)
    return sorted(found)


def with_its_group(
    view: AttemptView, table: StepTable, slow: list[Standing], steps: int, bounds: Bounds
) -> list[Standing]:
    """The slow ranks and those of their tensor-parallel group that are slow by half as much at least.

    They wait for each other within what each of them calls own work, so that one of them cannot be told apart.
    """
    known = {one.rank for one in slow}
    group = beside(view, slow[0].rank, table.ranks)
    if len(group) == 1 or not known <= group:
        return slow
    half = _part(slow, steps, 1 / 2)
    return [*slow, *(one for one in _of(view, table, group - known, steps, bounds) if _middle(one, steps) > half)]


def of_their_replica(
    view: AttemptView, table: StepTable, slow: list[Standing], steps: int, bounds: Bounds
) -> list[Standing]:
    """Who is slow in other stages of the slow ranks' replica, by a third as much: what it is given takes longer."""
    known = {one.rank for one in slow}
    elsewhere = replica_elsewhere(view, known, table.ranks)
    return [
        one for one in _of(view, table, elsewhere, steps, bounds) if _middle(one, steps) > _part(slow, steps, 1 / 3)
    ]


def is_replica_unseen(view: AttemptView, table: StepTable, slow: list[Standing], steps: int, bounds: Bounds) -> bool:
    """Whether the slow ranks' replica has other stages, and nobody there is surely less than half as slow."""
    known = {one.rank for one in slow}
    if not replica_elsewhere(view, known, view.members):
        return False
    since = min(one.times[one.onset(steps, bounds.ratio)] for one in slow)
    half = _part(slow, steps, 1 / 2)
    others = _of(view, table, replica_elsewhere(view, known, table.ranks), steps, bounds)
    return not any(_is_below(one, since, half) for one in others)


def _is_below(one: Standing, since: int, ratio: float) -> bool:
    """Whether its ratio from a time on lies below another by more than what so many steps can tell."""
    told = one.ratios[np.array(one.times) >= since]
    return len(told) >= WITNESS_STEPS and float(np.median(told)) + noise_of(told) < ratio


def _of(view: AttemptView, table: StepTable, ranks: set[int], steps: int, bounds: Bounds) -> list[Standing]:
    found: list[Standing] = []
    for group in view.peer_groups() if ranks else []:
        if ranks & set(group):
            found += standings(table, group, sorted(ranks & set(group)), steps, bounds)
    return found


def _part(slow: list[Standing], steps: int, part: float) -> float:
    return 1 + (min(one.middle(one.ratios, steps) for one in slow) - 1) * part


def _middle(one: Standing, steps: int) -> float:
    last = one.ratios[-steps:]
    return float(np.median(last)) if len(last) >= WITNESS_STEPS else 1.0
