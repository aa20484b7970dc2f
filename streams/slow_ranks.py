"""Who is slow by a table of steps: who stands out in enough of the last ones, by how much, and since when.

Peers are given as groups of ranks; groups of one size are contrasted together.
"""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt

from streams.peer_groups import Places, by_size
from streams.robust import SIGMA, Array, Bounds, contrast, median_of
from streams.steps import Flags, StepTable

DEVIATIONS = 6.0
"""By how many deviations a rank must stand out more often than its peers do, where those stand out as well."""
SPREADS = 5.0
"""How many standard errors of a median a rank's ratio must lie above 1."""
ON_ITS_WAY = 0.15
"""Of the height of a trend, what its steps below half of it lie above 1 at least."""
LASTING = 0.75
"""In which share of twice as many steps who lasts stands out; load that moves about does not stay for that long."""
RECOVERED = 0.6
"""Who stands out in a smaller share of its very last steps is recovering: no run of slow steps reaches the end."""
PAST_STEPS = 10
"""Steps before the onset that make a past."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """How a rank stood in those of the remembered steps that it and a peer reported, oldest first.

    ``values`` and ``medians`` of its peers are in ns; ``flags`` is in which steps it stood out. ``unrest`` is by how
    much ratios within its group move from one run of steps to the next (``unrest_of``). ``together`` is what all its
    timers take longer, as far as others wait for it (ns); 0 where that is not known.
    """

    rank: int
    iterations: list[int]
    times: list[int]
    values: Array
    medians: Array
    ratios: Array
    flags: npt.NDArray[np.bool_]
    unrest: float = 0.0
    together: float = 0.0

    def flagged(self, steps: int) -> npt.NDArray[np.int64]:
        """The places of the last ``steps`` steps in which it stood out."""
        first = max(len(self.flags) - steps, 0)
        return first + np.flatnonzero(self.flags[first:])

    def judged_by(self, steps: int) -> int:
        """By how many of its last steps it is judged."""
        return min(len(self.flags), steps)

    def told(self, steps: int) -> list[tuple[int, int]]:
        """The iterations, with their times, by which others are asked about it."""
        return list(zip(self.iterations[-steps:], self.times[-steps:], strict=True))

    def telling(self, steps: int) -> npt.NDArray[np.int64]:
        """The places in which it stood out, or all of the last where it did in none."""
        flagged = self.flagged(steps)
        return flagged if len(flagged) else np.arange(max(len(self.flags) - steps, 0), len(self.flags))

    def excess(self, steps: int) -> float:
        """By how much its value lies above its peers' median where it stands out, in the middle (ns)."""
        at = self.telling(steps)
        return float(np.median(self.values[at] - self.medians[at]))

    def cost(self, steps: int) -> float:
        """What a step takes longer by it (ns)."""
        return max(self.excess(steps), self.together)

    def lasts(self, steps: int) -> bool:
        """Whether it stands out in most of twice as many steps: what is less by itself must be seen for longer."""
        return len(self.flags) >= 2 * steps and bool(np.mean(self.flags[-2 * steps :]) >= LASTING)

    def recovers(self, steps: int) -> bool:
        """Whether it no longer stands out in most of its very last steps."""
        return bool(np.mean(self.flags[-(steps // 2) :]) < RECOVERED)

    def middle(self, values: Array, steps: int) -> float:
        """The middle of a column where it stands out."""
        return float(np.median(values[self.telling(steps)]))

    def is_beyond_noise(self, steps: int) -> bool:
        """Whether its ratio is above 1 by more than what so few steps can tell, as they differ from each other.

        And by more than the load moves about within its group anyhow, as among experts.
        """
        last = self.ratios[-steps:]
        middle = float(np.median(last))
        return middle - 1 > noise_of(last) and float(np.log(middle)) > SPREADS * self.unrest

    def onset(self, steps: int, ratio: float) -> int:
        """The place of the step from which the rank keeps standing out.

        A jump is dated by half its height, which noise does not reach; a slow trend by where it leaves its peers.
        """
        return onset_of(self.ratios, self.middle(self.ratios, steps), ratio)

    def changed(self, onset: int, steps: int, ratio: float) -> bool:
        """Whether its own work takes longer than its own past: ten steps or more before, none standing out."""
        before = slice(max(onset - PAST_STEPS, 0), onset)
        if onset < PAST_STEPS or np.count_nonzero(self.flags[before]) > 2:
            return False
        after = self.values[onset:][-steps:]
        return bool(np.median(after) >= ratio * np.median(self.values[before]))


def noise_of(values: Array) -> float:
    """By how much the median of values may be off: some of its standard errors, 1.25 sigma / sqrt(n), sigma by MAD."""
    sigma = SIGMA * float(np.median(np.abs(values - np.median(values))))
    return SPREADS * 1.25 * sigma / float(np.sqrt(len(values)))


def flag_steps(table: StepTable, groups: list[list[int]], bounds: Bounds, start: int) -> None:
    """Mark in the table who stands out among its peers in each step from ``start`` on that is judged."""
    values = table.values(start, table.judged)
    for columns in by_size([table.places(group) for group in groups], 2):
        flags, _, _ = contrast(values[:, columns], bounds)
        table.flags[start : table.judged, columns] = flags


def standing_out(table: StepTable, groups: list[list[int]], steps: int, share: float) -> list[list[int]]:
    """By group, who stands out in at least ``share`` of its last ``steps`` steps, which it must have reported.

    Where peers stand out as well, it must do so more often than chance would have it. A step that a rank did not report
    is passed over, as long as it has reported every other.
    """
    start = max(table.judged - 2 * steps, 0)
    last = _last(table.known(start, table.judged), steps)
    count = last.sum(axis=0)
    flagged = (last & table.flags[start : table.judged]).sum(axis=0)
    often = (count >= steps) & (flagged >= share * count)
    found = []
    for group in groups:
        places = np.array(table.places(group), dtype=np.int64)
        found.append(by_more_than_chance(table, places, often, count, flagged))
    return found


def by_more_than_chance(
    table: StepTable, places: Places, often: Flags, count: npt.NDArray[np.int64], flagged: npt.NDArray[np.int64]
) -> list[int]:
    """Which ranks of a group stand out more often than chance would have it, as often as their peers do.

    All are by column: who stands out ``often``, in how many of its steps (``count``) it was ``flagged``.
    """
    total, known = flagged[places].sum(), count[places].sum()
    out = []
    for place in places[often[places]].tolist():
        others = known - count[place]
        rate = float(total - flagged[place]) / others if others else 0.0
        chance = count[place] * rate + DEVIATIONS * float(np.sqrt(count[place] * rate * (1 - rate)))
        if flagged[place] > chance:
            out.append(table.ranks[place])
    return sorted(out)


def largest(table: StepTable, ranks: list[int], steps: int, most: int) -> list[int]:
    """At most so many of the ranks, those whose values were the largest over the last ``steps`` steps, in order."""
    if len(ranks) <= most:
        return ranks
    middles = median_of(table.values(max(table.judged - steps, 0), table.judged)[:, table.places(ranks)].T)
    return sorted(sorted(ranks, key=dict(zip(ranks, (-middles).tolist(), strict=True)).__getitem__)[:most])


def standings(table: StepTable, group: list[int], ranks: list[int], steps: int, bounds: Bounds) -> list[Standing]:
    """How each of the ``ranks`` stood against its ``group`` in all that are remembered; ``steps`` make a run."""
    places = table.places(group)
    values = table.values(0, table.judged)[:, places]
    _, ratios, medians = contrast(values, bounds)
    flags = table.flags[: table.judged, places]
    unrest = unrest_of(np.where(np.isnan(values) | (medians == 0), np.nan, ratios), steps)
    found = []
    for rank in ranks:
        if not table.places([rank]):
            continue
        column = places.index(table.places([rank])[0])
        # Nothing is known of a step without peers, not even that the rank is as fast as they are.
        told = np.flatnonzero(~np.isnan(values[:, column]) & (medians[:, column] > 0))
        found.append(
            Standing(
                rank=rank,
                iterations=[table.iterations[step] for step in told],
                times=[table.times[step] for step in told],
                values=values[told, column],
                medians=medians[told, column],
                ratios=ratios[told, column],
                flags=flags[told, column],
                unrest=unrest,
            )
        )
    return found


def unrest_of(ratios: Array, steps: int) -> float:
    """By how much runs of steps differ from the next ones, of [step, rank] ratios: sigma of the log of a run's median.

    It is taken from the MAD: noise from step to step does not tell how a load moves about that stays for some steps. A
    single change, as of one that has become slow, does not matter. Of few steps runs are half as long; 0 where there is
    no second run.
    """
    length = steps if len(ratios) >= 3 * steps else max(steps // 2, 1)
    runs = len(ratios) // length
    if runs < 2:
        return 0.0
    kept = ratios[len(ratios) - runs * length :].reshape(runs, length, -1)
    with np.errstate(divide="ignore", invalid="ignore"):
        changes = np.abs(np.diff(np.log(median_of(kept.transpose(0, 2, 1))), axis=0))
    known = changes[np.isfinite(changes)]
    return SIGMA * float(np.median(known)) / float(np.sqrt(2)) if len(known) else 0.0


class Shift(msgspec.Struct, frozen=True, kw_only=True):
    """Ranks that all take longer than their own past while nobody else does, and the step from which they do.

    ``before`` and ``after`` are in ns, in the middle of these ranks.
    """

    ranks: list[int]
    iteration: int
    time: int
    before: float
    after: float


def shifted(table: StepTable, steps: int, ratio: float) -> Shift | None:
    """The ranks whose last ``steps`` steps take ``ratio`` times as long as their first; null where others do as well.

    The quarter of ranks that has changed least is what others are held against. Who is in between speaks against it.
    """
    shifts = _shifts(table, steps)
    known = np.flatnonzero(np.isfinite(shifts))
    if len(known) < 2 or table.judged < steps:
        return None
    least = max(float(np.quantile(shifts[known], 0.25)), 1e-9)
    relative = shifts[known] / least
    up = known[(relative >= ratio) & (shifts[known] >= ratio)]
    between = (relative > 1 + (ratio - 1) / 2) & (relative < ratio)
    if not len(up) or len(up) > len(known) / 2 or between.any():
        return None
    before = float(np.median(table.bases[up]))
    past = table.values(0, table.judged)[:, known] / table.bases[known]
    middles = median_of(past[:, np.isin(known, up)])
    steps_told = np.flatnonzero(np.isfinite(middles))
    rose = float(np.median(shifts[up]))
    # The first steps, which it is held against, differ as much.
    if rose - 1 <= np.sqrt(2) * noise_of(middles[steps_told][-steps:]):
        return None
    if np.log(rose) <= np.sqrt(2) * SPREADS * unrest_of(past, steps):
        return None
    at = steps_told[onset_of(middles[steps_told], rose, ratio)]
    return Shift(
        ranks=sorted(table.ranks[place] for place in up.tolist()),
        iteration=table.iterations[at],
        time=table.times[at],
        before=before,
        after=before * rose,
    )


def changed_alike(table: StepTable, ranks: list[int], steps: int) -> list[int]:
    """Who else takes longer than at first, by half as much as these ranks do or more."""
    shifts = _shifts(table, steps)
    mine = shifts[table.places(ranks)]
    if not np.isfinite(mine).any():
        return []
    half = 1 + (float(np.nanmin(mine)) - 1) / 2
    return sorted(
        rank for rank, shift in zip(table.ranks, shifts.tolist(), strict=True) if shift > half and rank not in ranks
    )


def with_a_past(table: StepTable, steps: int) -> set[int]:
    """The ranks of which it is known how long their last steps take beside their first."""
    return {rank for rank, shift in zip(table.ranks, _shifts(table, steps).tolist(), strict=True) if np.isfinite(shift)}


def _shifts(table: StepTable, steps: int) -> Array:
    """How many times as long each rank's last ``steps`` steps take as its first, in the middle; NaN if not known."""
    start = max(table.judged - 2 * steps, 0)
    last = _last(table.known(start, table.judged), steps)
    # Mostly all ranks report all steps, and those before need not be looked at.
    first = int(np.argmax(last.any(axis=1))) if len(last) else 0
    last, recent = last[first:], table.values(start + first, table.judged)
    enough = np.count_nonzero(last, axis=0) * 2 >= steps
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(enough & (table.bases > 0), median_of(np.where(last, recent, np.nan).T) / table.bases, np.nan)


def _last(there: Flags, steps: int) -> Flags:
    """Which of [step, rank] values that are ``there`` are a rank's last ``steps``."""
    there = there.copy()
    if there[-steps:].all():
        there[:-steps] = False
        return there
    return there & (np.cumsum(there[::-1], axis=0, dtype=np.int32)[::-1] <= steps)


def onset_of(ratios: Array, height: float, ratio: float) -> int:
    """The place from which ratios stay above 1.

    A jump to ``height`` is dated by half of it, which noise does not reach; a slow trend, which is on its way there
    before, by where it leaves 1.
    """
    low = 1 + (ratio - 1) / 2
    start = _run_start((ratios > low).tolist())
    half = _run_start((ratios > max(low, (1 + height) / 2)).tolist())
    on_its_way = half - start > 5 and float(np.median(ratios[start:half])) - 1 >= ON_ITS_WAY * (height - 1)
    return start if on_its_way else half


def _run_start(above: list[bool]) -> int:
    """Where the run begins that reaches the end: going back while most of ten stand out, then on to its first."""
    at = len(above)
    while at > 0 and sum(above[max(0, at - 10) : at]) >= min(10, at) * 0.6:
        at -= 1
    for start in range(max(0, at - 10), len(above)):
        run = above[start : start + 5]
        if above[start] and sum(run) >= 0.6 * len(run):
            return start
    return len(above) - 1
