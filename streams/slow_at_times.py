"""Who is slow in every third or fifth step: a rank that stands out in too few steps to be slow, and again and again.

So does a rank of whose loader's workers one is slow, or that something disturbs at regular times. It must stand out in
a share of each of two runs of steps, more often than peers do by chance; each time by about as much, since inputs of
different lengths come in all sizes; and mostly in single steps, since load that moves about stays for some.
"""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt

from streams.robust import Bounds
from streams.slow_ranks import SPREADS, Standing, by_more_than_chance, standings
from streams.steps import StepTable

RUNS = 2
SHARE = 0.15
"""Of the steps of each run."""
SINGLE = 0.5
"""Of the steps in which it stands out, how many at least must follow one in which it does not."""
ALIKE = 0.5
"""From which part of the middle of what it stands out by its least quarter must be."""
SELDOM = 1 / 4
"""Up to which part of its present share a rank that was not slow yet may have stood out."""


class Recurring(Standing, frozen=True, kw_only=True):
    """A rank that stands out now and again; what is told of it is of the steps in which it does."""

    def flagged(self, steps: int) -> npt.NDArray[np.int64]:
        """The places of the last runs of ``steps`` steps in which it stood out."""
        return super().flagged(RUNS * steps)

    def judged_by(self, steps: int) -> int:
        """By how many of its last steps it is judged."""
        return super().judged_by(RUNS * steps)

    def told(self, steps: int) -> list[tuple[int, int]]:
        """The steps in which it stood out: in the others nobody waits for it."""
        return [(self.iterations[at], self.times[at]) for at in self.flagged(steps).tolist()]

    def cost(self, steps: int) -> float:
        """By how much it is longer than its peers' median, spread over all steps (ns)."""
        return super().cost(steps) * self.share(steps)

    def lasts(self, steps: int) -> bool:
        """It was judged by two runs."""
        return True

    def recovers(self, steps: int) -> bool:
        """It does not stand out in most steps anyhow."""
        return False

    def share(self, steps: int) -> float:
        """In which share of the last runs it stands out."""
        return len(self.flagged(steps)) / self.judged_by(steps)

    def is_beyond_noise(self, steps: int) -> bool:
        """Whether it stands out in single steps, by about as much each time, and more than load moves about."""
        flagged = self.flagged(steps)
        single = np.count_nonzero(np.diff(flagged, prepend=-1) > 1)
        excess = self.ratios[flagged] - 1
        alike = np.quantile(excess, 0.25) >= ALIKE * np.median(excess)
        beyond = np.log(self.middle(self.ratios, steps)) > SPREADS * self.unrest
        return bool(single >= SINGLE * len(flagged) and alike and beyond)

    def onset(self, steps: int, ratio: float) -> int:
        """The first of the steps in which it stands out about as often as now."""
        least, at = self.share(steps) / 2, len(self.flags)
        while at > 0 and np.mean(self.flags[max(at - steps, 0) : at]) >= least:
            at -= 1
        first = max(at - steps, 0)
        return first + int(np.argmax(self.flags[first:]))

    def changed(self, onset: int, steps: int, ratio: float) -> bool:
        """Whether it stood out hardly ever before, in a run of steps at least."""
        before = self.flags[max(onset - RUNS * steps, 0) : onset]
        return len(before) >= steps and bool(np.mean(before) <= SELDOM * self.share(steps))


def recurring(table: StepTable, groups: list[list[int]], steps: int, bounds: Bounds) -> list[Recurring]:
    """The ranks that stand out now and again, in order of groups and ranks."""
    if table.judged < RUNS * steps:
        return []
    rows = slice(table.judged - RUNS * steps, table.judged)
    flags = table.flags[rows]
    runs = flags.reshape(RUNS, steps, -1).sum(axis=1)
    often = (runs >= SHARE * steps).all(axis=0)
    if not often.any():
        return []
    known = np.count_nonzero(table.known(rows.start, rows.stop), axis=0)
    often &= 2 * known >= RUNS * steps
    found: list[Recurring] = []
    for group in groups:
        places = np.array(table.places(group), dtype=np.int64)
        ranks = by_more_than_chance(table, places, often, known, flags.sum(axis=0))
        if ranks:
            found += [Recurring(**msgspec.structs.asdict(one)) for one in standings(table, group, ranks, steps, bounds)]
    return found


def stand_out_too(table: StepTable, ranks: list[int], steps: int) -> bool:
    """Whether anybody else stands out half as often as these ranks do or more: who changes together may be a stage."""
    often = table.flags[max(table.judged - RUNS * steps, 0) : table.judged].sum(axis=0)
    others = np.delete(often, table.places(ranks))
    return bool(len(others)) and int(others.max()) * 2 >= int(often[table.places(ranks)].min())
