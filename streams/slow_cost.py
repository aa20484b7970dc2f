"""What a slow rank costs the step, as far as its peers are seen waiting for it.

A timer holds only a part of a step, and a slow device is slow in all of them. Who is late waits least, by as much as
the others wait for it (detectors.md section 2.4): up to there what all its timers take longer counts together. Waiting
singles out nobody here: it sizes what own work has shown. For timers that hold waiting besides work it must also agree.
"""

from __future__ import annotations

import msgspec
import numpy as np

from streams.robust import Array, median_of
from streams.slow_ranks import Standing
from streams.step_tables import StepTables
from streams.view import AttemptView

OF_EXCESS = 0.5
"""From which part of what it works longer a rank's shorter waiting agrees with it."""


def with_costs(view: AttemptView, tables: StepTables, slow: list[Standing], steps: int) -> list[Standing]:
    """The slow ranks, each with what all its timers together take longer, as far as peers wait for it."""
    ranks = {one.rank for one in slow}
    found = {}
    for group in view.peer_groups() if tables.of("wait") else []:
        for told, suspects in _by_steps(slow, set(group), steps).items():
            apart = np.isin(group, sorted(ranks))
            waits = tables.waiting(group, told)
            waited = float(median_of(waits[~apart])) - waits
            work = tables.working_time(group, told)
            longer = np.nansum(work - median_of(work[:, ~apart])[:, None], axis=0)
            together = np.nan_to_num(np.minimum(waited, longer))
            found.update({one.rank: float(together[group.index(one.rank)]) for one in suspects})
    return [msgspec.structs.replace(one, together=found.get(one.rank, 0.0)) for one in slow]


def are_waited_for(view: AttemptView, tables: StepTables, slow: list[Standing], steps: int) -> bool:
    """Whether all others of their roles time waiting, and wait longer than each of the slow ranks and than nobody else.

    Else the one who is waited for may be another, who is late in what nobody times, and these wait for it within.
    """
    everybody = sorted(view.of_their_roles([one.rank for one in slow]))
    least = OF_EXCESS * min(one.excess(steps) for one in slow)
    for told in _by_steps(slow, set(everybody), steps):
        waits = tables.waiting(everybody, told)
        if not np.isfinite(waits).all() or _waited_for(view, everybody, waits, least) != {one.rank for one in slow}:
            return False
    return True


def _waited_for(view: AttemptView, ranks: list[int], waits: Array, least: float) -> set[int]:
    """Who waits less than its peers do, by so much."""
    found: set[int] = set()
    for group in view.peer_groups():
        at = np.flatnonzero(np.isin(ranks, group))
        if len(at):
            short = median_of(waits[at]) - waits[at] >= least
            found.update(ranks[place] for place in at[short].tolist())
    return found


def _by_steps(slow: list[Standing], ranks: set[int], steps: int) -> dict[tuple[tuple[int, int], ...], list[Standing]]:
    """Those of the slow ranks that are among these by the steps that tell of them; most are judged by the same."""
    found: dict[tuple[tuple[int, int], ...], list[Standing]] = {}
    for one in slow:
        if one.rank in ranks:
            found.setdefault(tuple(one.told(steps)), []).append(one)
    return found
