"""Values of one timer by step and rank, as columns: brought together from windows, judged once, kept for a while.

A value is kept as a number of 16 bits on a logarithmic scale, 0.05 % apart, so that ten thousand ranks take a megabyte
where they are written down, and read the same afterwards.
"""

from __future__ import annotations

from base64 import b64decode, b64encode

import msgspec
import numpy as np
import numpy.typing as npt

from streams.robust import Array, median_of
from streams.series_table import Flat

Codes = npt.NDArray[np.uint16]
Flags = npt.NDArray[np.bool_]

_APART = 0.0005
_LEVELS = np.concatenate([[np.nan, 0.0], np.exp(_APART * np.arange(2**16 - 2))])
"""Nanoseconds by code: 0 is no value, 1 is nothing or less."""
MOST_VALUES = 1 << 19
"""Of one timer; of many ranks fewer steps are remembered."""
LEAST_STEPS = 50
BASE_STEPS = 20
UNTOUCHED = 1 << 62
FORGOTTEN_WINDOWS = 360
PRESENT_WINDOWS = 3


class StepColumns(msgspec.Struct, kw_only=True):
    """A table as it is written down. ``codes`` and ``flags`` are [step, rank] in base64.

    By rank: its ``latest`` iteration, for how many windows it has been ``silent``, how many values it ``gave``, and the
    code of its ``base``, the middle of its first values, 0 until there are enough.
    The first ``judged`` steps are judged, up to the iteration ``judged_to``; ``total`` steps were judged ever.
    """

    ranks: list[int] = []
    latest: list[int] = []
    silent: list[int] = []
    gave: list[int] = []
    base: list[int] = []
    iterations: list[int] = []
    times: list[int] = []
    codes: str = ""
    flags: str = ""
    judged: int = 0
    judged_to: int = -1
    total: int = 0


class StepTable:
    """The steps of one timer, oldest first, and its ranks in the order in which they came."""

    def __init__(self, columns: StepColumns) -> None:
        self.ranks = list(columns.ranks)
        self._place = {rank: place for place, rank in enumerate(self.ranks)}
        self._latest = np.array(columns.latest, dtype=np.int64)
        self._silent = np.array(columns.silent, dtype=np.int64)
        self._gave = np.array(columns.gave, dtype=np.int64)
        self._base = np.array(columns.base, dtype=np.uint16)
        self.iterations = list(columns.iterations)
        self.times = list(columns.times)
        shape = (len(self.iterations), len(self.ranks))
        self._codes = np.frombuffer(b64decode(columns.codes), dtype="<u2").astype(np.uint16).reshape(shape)
        bits = np.frombuffer(b64decode(columns.flags), dtype=np.uint8)
        self.flags = np.unpackbits(bits, count=shape[0] * shape[1]).astype(bool).reshape(shape)
        self.judged = columns.judged
        self._touched = UNTOUCHED
        self._judged_to = columns.judged_to
        self.total = columns.total

    def written(self) -> StepColumns:
        """The table as it is written down."""
        return StepColumns(
            ranks=self.ranks,
            latest=self._latest.tolist(),
            silent=self._silent.tolist(),
            gave=self._gave.tolist(),
            base=self._base.tolist(),
            iterations=self.iterations,
            times=self.times,
            codes=b64encode(self._codes.astype("<u2").tobytes()).decode(),
            flags=b64encode(np.packbits(self.flags).tobytes()).decode(),
            judged=self.judged,
            judged_to=self._judged_to,
            total=self.total,
        )

    def places(self, ranks: list[int]) -> list[int]:
        """The columns of those of the ranks that have one."""
        return [self._place[rank] for rank in ranks if rank in self._place]

    def values(self, start: int, stop: int) -> Array:
        """The values (ns) of steps ``start`` to ``stop``; NaN where there is none."""
        return _LEVELS[self._codes[start:stop]]

    def known(self, start: int, stop: int) -> Flags:
        """Which ranks gave values in steps ``start`` to ``stop``."""
        known: Flags = self._codes[start:stop] != 0
        return known

    def at(self, steps: list[int], places: list[int]) -> Array:
        """The values (ns) of these steps in these columns; NaN where there is none."""
        return _LEVELS[self._codes[np.ix_(steps, places)]]

    @property
    def bases(self) -> Array:
        """The middle of each rank's first values (ns); NaN where there were too few."""
        return _LEVELS[self._base]

    def take(self, told: Flat | None, scales: Array, warm_up: int) -> None:
        """Take in one window: what ranks report, ``scales`` ns a unit; nobody stands there twice.

        The first ``warm_up`` values of a rank do not count. Where steps are counted anew within a window, what was
        counted before is left out.
        """
        self._silent += 1
        self._forget()
        if told is None:
            return
        columns = self._columns(told.ranks.tolist())
        lengths, iterations, times, values = told.lengths, told.iterations, told.times, told.values
        ends = np.cumsum(lengths)
        latest = iterations[_last_in_time(times, ends - lengths)]
        nth = np.arange(len(times)) - np.repeat(ends - lengths - self._gave[columns], lengths)
        self._gave[columns] += lengths
        self._latest[columns], self._silent[columns] = latest, 0
        self._begin_anew()
        kept = (iterations <= np.repeat(latest, lengths)) & (nth >= warm_up)
        kept &= np.isfinite(values)
        codes = _codes_of(values[kept], np.repeat(scales, lengths)[kept])
        owner, iterations, times = np.repeat(columns, lengths)[kept], iterations[kept], times[kept]
        late = iterations <= self._judged_to
        self._fill(owner[late], iterations[late], codes[late])
        self._put(owner[~late], iterations[~late], times[~late], codes[~late])

    def _columns(self, ranks: list[int]) -> npt.NDArray[np.int64]:
        new = [rank for rank in ranks if rank not in self._place]
        if new:
            self._add(new)
        return np.array([self._place[rank] for rank in ranks])

    def _add(self, new: list[int]) -> None:
        self._place.update({rank: len(self.ranks) + at for at, rank in enumerate(new)})
        self.ranks += new
        self._latest = np.append(self._latest, np.full(len(new), -1))
        self._silent = np.append(self._silent, np.zeros(len(new), dtype=np.int64))
        self._gave = np.append(self._gave, np.zeros(len(new), dtype=np.int64))
        self._base = np.append(self._base, np.zeros(len(new), dtype=np.uint16))
        self._codes = np.pad(self._codes, ((0, 0), (0, len(new))))
        self.flags = np.pad(self.flags, ((0, 0), (0, len(new))))

    def _forget(self) -> None:
        """Without the ranks of which nothing has come for long."""
        kept = self._silent <= FORGOTTEN_WINDOWS
        if kept.all():
            return
        self.ranks = [rank for rank, stays in zip(self.ranks, kept.tolist(), strict=True) if stays]
        self._place = {rank: place for place, rank in enumerate(self.ranks)}
        self._latest, self._silent, self._gave = self._latest[kept], self._silent[kept], self._gave[kept]
        self._base, self._codes, self.flags = self._base[kept], self._codes[:, kept], self.flags[:, kept]

    def _begin_anew(self) -> None:
        """Steps counted anew (an epoch, a rollback), once most ranks do: what waits to be judged is of before."""
        present = self._silent < PRESENT_WINDOWS
        if 2 * np.count_nonzero(present & (self._latest < self._judged_to)) > np.count_nonzero(present):
            self._keep(0, self.judged)
            self._judged_to = -1

    def _fill(self, owner: npt.NDArray[np.int64], iterations: npt.NDArray[np.int64], codes: Codes) -> None:
        """Put values into steps that were judged without them; these are to be judged again."""
        if not len(owner) or not self.judged:
            return
        judged = np.array(self.iterations[: self.judged], dtype=np.int64)
        order = np.argsort(judged, kind="stable")
        rows = order[np.maximum(np.searchsorted(judged[order], iterations, side="right") - 1, 0)]
        lacking = (judged[rows] == iterations) & (self._codes[rows, owner] == 0)
        self._codes[rows[lacking], owner[lacking]] = codes[lacking]
        self._touched = min([self._touched, *rows[lacking].tolist()])

    def _put(
        self,
        owner: npt.NDArray[np.int64],
        iterations: npt.NDArray[np.int64],
        times: npt.NDArray[np.int64],
        codes: Codes,
    ) -> None:
        """Add values to the steps that wait to be judged. A step is as late as the ranks that came to it last."""
        waiting = np.array(self.iterations[self.judged :], dtype=np.int64)
        steps = np.union1d(waiting, iterations)
        before = np.searchsorted(steps, waiting)
        when = np.zeros(len(steps), dtype=np.int64)
        when[before] = self.times[self.judged :]
        matrix = np.zeros((len(steps), len(self.ranks)), dtype=np.uint16)
        matrix[before] = self._codes[self.judged :]
        rows = np.searchsorted(steps, iterations)
        matrix[rows, owner] = codes
        for row, found in zip(*_by_row(rows, times), strict=True):
            when[row] = max(when[row], found)
        self.iterations[self.judged :] = steps.tolist()
        self.times[self.judged :] = when.tolist()
        self._codes = np.vstack([self._codes[: self.judged], matrix])
        self.flags = np.pad(self.flags[: self.judged], ((0, len(steps)), (0, 0)))

    def reported_by_all(self, patience: int) -> int:
        """Up to which iteration nearly all ranks have reported, without those silent for ``patience`` windows."""
        newest = np.sort(self._latest[self._silent < patience])
        return int(newest[len(newest) // 10]) if len(newest) else -1

    def settle(self, iteration: int, most: int) -> int:
        """The steps that wait, up to ``iteration``, are judged from now on; returns how many of the last are to be.

        These are more where values of earlier steps came late. Of the judged ones ``most`` are remembered, and as many
        wait at most.
        """
        most = min(most, max(MOST_VALUES // max(len(self.ranks), 1), LEAST_STEPS))
        waiting = len(self.iterations) - self.judged
        ready = sum(one <= iteration for one in self.iterations[self.judged :])
        ready = min(ready, most)
        if ready:
            self._judged_to = self.iterations[self.judged + ready - 1]
        self.judged += ready
        self.total += ready
        # Those that nobody will complete any more are left out first.
        left = waiting - ready
        if left > most:
            kept = [*range(self.judged), *range(self.judged + left - most, self.judged + left)]
            self._codes, self.flags = self._codes[kept], self.flags[kept]
            self.iterations = [self.iterations[at] for at in kept]
            self.times = [self.times[at] for at in kept]
        first = max(self.judged - most, 0)
        self._keep(first, len(self.iterations))
        self.judged -= first
        start = max(min(self._touched - first, self.judged - ready), 0)
        self._touched = UNTOUCHED
        if ready:
            self._begin()
        return self.judged - start

    def _begin(self) -> None:
        """Take the middle of the first values of a rank for its base, once there are enough of them."""
        new = np.flatnonzero(self._base == 0)
        if not len(new):
            return
        codes = self._codes[: self.judged, new]
        ready = np.count_nonzero(codes, axis=0) >= BASE_STEPS
        if ready.any():
            self._base[new[ready]] = _codes_of(median_of(_LEVELS[codes[:, ready]].T))

    def _keep(self, start: int, stop: int) -> None:
        self.iterations, self.times = self.iterations[start:stop], self.times[start:stop]
        self._codes, self.flags = self._codes[start:stop], self.flags[start:stop]


def _codes_of(values: Array, scales: Array | float = 1.0) -> Codes:
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        scaled = values * scales
        places = np.rint(np.log(scaled) / _APART) + 2
    return np.where(scaled < 1, 1, np.clip(places, 2, 2**16 - 1)).astype(np.uint16)


def _last_in_time(times: npt.NDArray[np.int64], starts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Of each run of times, which begin at ``starts``, the place of the latest; of equal ones the last."""
    ends = np.append(starts[1:], len(times))
    latest = np.maximum.reduceat(times, starts)
    places = ends - 1
    for run in np.flatnonzero(times[places] != latest):
        within = times[starts[run] : ends[run]]
        places[run] = starts[run] + int(np.flatnonzero(within == latest[run])[-1])
    return places


def _by_row(rows: npt.NDArray[np.int64], times: npt.NDArray[np.int64]) -> tuple[list[int], list[int]]:
    """Each row once, with the lower median of its times."""
    order = np.lexsort((times, rows))
    rows, times = rows[order], times[order]
    found, first, count = np.unique(rows, return_index=True, return_counts=True)
    return found.tolist(), times[first + (count - 1) // 2].tolist()
