"""Losses, gradients and the like that are no numbers: reports of one rank in a row, and which of them did no harm.

Weights that are no numbers never become numbers again. So a loss that is finite again shows that training was not
harmed, and so does a loss that goes on finite for gradients, other losses and activations: in half precision a gradient
that overflows is part of training, the step is skipped and the loss scale goes down, whether or not that is printed.

Reduced gradients give what is no number to all ranks with the next step. What the others do not show by then was in
nobody's gradients: a placeholder of ranks that have no loss, if it never was finite, or a matter of that rank alone.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping

import msgspec
import numpy as np

from schemas.results import Series
from streams.numerics import counts_skipped, is_gradient, is_scale, is_watched, kind_of, tells_skipped
from streams.series_table import Block, Reports

MOST_PASSED = 64
MOST_NAMES = 64
"""Metrics that are watched; of losses and gradients as many again."""
MOST_LATEST = 8


class Run(msgspec.Struct, array_like=True):
    """Reports of one rank that are not finite, one after another: the first and its time, the latest, how many.

    ``skipped`` of them are told to be of skipped steps; a ``fresh`` one follows no finite report. ``others`` is up to
    which iteration the values of other ranks have been finite since.
    """

    first: int
    time: int
    latest: int
    count: int
    skipped: int
    fresh: bool
    others: int = -1

    @property
    def outlived(self) -> bool:
        """Whether others went on without it, by more than they may count otherwise, or than an update may be late."""
        return self.others > self.first + (not self.fresh)


class RunsSeen:
    """What one window shows: runs that go on in it by name and rank, those that ended, what never was finite.

    ``lost`` are the iterations to which the job went back, and with them the runs that this ended.
    """

    def __init__(self) -> None:
        self.shown: list[tuple[str, int]] = []
        self.ended: list[tuple[str, int, Run]] = []
        self.lost: list[tuple[int, str, int, Run]] = []
        self.never: dict[str, tuple[int, int]] = {}
        self.reported = False


class Runs(msgspec.Struct, kw_only=True):
    """What each rank shows by metric: ``going`` runs that are not over, and up to where it was ``finite``.

    ``since`` has the first iteration at which anybody was finite. ``last`` has by metric the last loss scale or count
    of skipped steps of each rank. ``loss`` is set once a loss was reported; ``vouched`` is by loss up to where one was
    finite while anything was not. ``passed`` are ranks by metric whose runs have been over.
    """

    going: dict[str, dict[int, Run]] = {}
    finite: dict[str, dict[int, int]] = {}
    since: dict[str, int] = {}
    last: dict[str, dict[int, float]] = {}
    loss: bool = False
    vouched: dict[str, int] = {}
    passed: dict[str, list[int]] = {}

    def take(self, told: Mapping[str, Reports]) -> RunsSeen:
        """One window's reports of all ranks by name."""
        skipped = self._skipped(told)
        seen = RunsSeen()
        for name, reports in told.items():
            watched = [block for block in reports.blocks if is_watched(name, block.unit)]
            if not watched or not self._has_room(name):
                continue
            seen.reported = True
            # Of ranks that are finite all there is to know is up to where: ten thousand mostly are.
            if name not in self.going and not any(block.nonfinite for block in watched):
                self._note(watched)
                continue
            for rank, series in Reports(watched):
                self._take(rank, series, skipped, seen)
        self._vouch([block for reports in told.values() for block in reports.blocks])
        self._note_others(told)
        return seen

    def _has_room(self, name: str) -> bool:
        most = 2 * MOST_NAMES if kind_of(name) in ("loss", "gradient") else MOST_NAMES
        return name in self.finite or len(self.finite) < most

    def _note(self, finite: list[Block]) -> None:
        """Take in who was finite all the time."""
        for block in finite:
            self.finite.setdefault(block.name, {}).update(dict.fromkeys(block.ranks, max(block.steps)))
            self._since(block.name, block.steps[0])

    def _since(self, name: str, iteration: int) -> None:
        self.since[name] = min(self.since.get(name, iteration), iteration)

    def _take(self, rank: int, series: Series, skipped: set[int], seen: RunsSeen) -> None:
        """One rank's reports in order; a run is over with the first that is finite."""
        name = series.name
        finite = self.finite.setdefault(name, {})
        run = self.going.get(name, {}).get(rank)
        if run is None and not series.nonfinite:
            fine = series.iterations
        else:
            fine = []
            began = finite.get(rank, -1) >= 0
            shown = False
            for at, time, value in _in_time(series):
                if value is not None:
                    fine.append(at)
                    if run is not None and at < run.first and run.count > 1:
                        seen.lost.append((at, name, rank, run))
                    elif run is not None:
                        seen.ended.append((name, rank, run))
                        self._pass(name, rank)
                    run, shown = None, False
                elif not began and not fine and kind_of(name) not in ("loss", "gradient"):
                    seen.never[name] = min(seen.never.get(name, (at, time)), (at, time))
                else:
                    run = run or Run(at, time, at, 0, 0, not began and not fine)
                    run.latest, run.count, run.skipped = at, run.count + 1, run.skipped + (at in skipped)
                    shown = True
            self._keep(name, rank, run)
            seen.shown += [(name, rank)] * shown
        finite[rank] = max(fine, default=finite.get(rank, -1))
        if fine:
            self._since(name, fine[0])

    def _keep(self, name: str, rank: int, run: Run | None) -> None:
        runs = self.going.setdefault(name, {})
        if run is not None:
            runs[rank] = run
        else:
            runs.pop(rank, None)
        if not runs:
            del self.going[name]

    def _pass(self, name: str, rank: int) -> None:
        passed = self.passed.setdefault(name, [])
        if rank not in passed:
            self.passed[name] = [*passed, rank][-MOST_PASSED:]

    def _vouch(self, told: Iterable[Block]) -> None:
        """Up to which iteration a loss is finite: weights that were no numbers before it would have shown there.

        Exactly 0 does not count: some print that for a loss that is no number.
        """
        losses = [block for block in told if kind_of(block.name) == "loss"]
        self.loss = self.loss or bool(losses)
        if not self.going:
            self.vouched = {}
            return
        found: dict[str, int] = {}
        for block in losses:
            fine = block.iterations[(np.nan_to_num(block.values) != 0).any(axis=0)]
            if len(fine):
                found[block.name] = max(int(fine.max()), found.get(block.name, -1))
        self.vouched.update(found)

    def _note_others(self, told: Mapping[str, Reports]) -> None:
        """Up to where other ranks are finite since each run began, by its number and, if it began, by its time.

        A rank that has not gone back yet, where others have, is ahead by number alone. Others are those that are no
        fewer than they who show it. Exactly 0 does not count, nor what never changes: ranks without a loss print that.
        """
        for name in sorted(self.going.keys() & told.keys()):
            runs = self.going[name]
            reports: list[tuple[int, int]] = []
            for rank, series in told[name]:
                numbers = [(at, time) for at, time, value in _in_time(series) if value]
                same = len(numbers) > 1 and len(set(series.values) - {None}) == 1
                if numbers and not same and (rank not in runs or numbers[-1][0] < runs[rank].first):
                    reports.append(numbers[-1])
            if not reports:
                continue
            reports.sort(reverse=True)
            began = sorted(run.first for run in runs.values() if not run.fresh)
            for run in runs.values():
                later = bisect_left(reports, -run.first, key=lambda one: -one[0])
                most = run.fresh or later >= bisect_right(began, run.first)
                times = reports[: min(later, MOST_LATEST)] if not run.fresh else reports[:1]
                found = [at for at, time in times if run.fresh or (most and time > run.time)]
                run.others = max([run.others, *found])

    def placeholders(self, name: str) -> set[int]:
        """The ranks that never showed a number, while others do and do not follow them."""
        runs = self.going.get(name, {})
        newest = max((run.first for run in runs.values() if not run.outlived), default=-1)
        return {rank for rank, run in runs.items() if run.fresh and (run.outlived or run.others >= newest)}

    def shown(self, name: str) -> dict[int, Run]:
        """The runs of all but placeholders."""
        beside = self.placeholders(name)
        return {rank: run for rank, run in self.going[name].items() if rank not in beside}

    def began(self, name: str) -> dict[int, Run]:
        """The runs that may have come to others: all but placeholders and those that the others outlived."""
        return {rank: run for rank, run in self.shown(name).items() if not run.outlived}

    def is_alone(self, name: str) -> bool:
        """Whether other ranks show numbers since the last of these runs began."""
        runs = self.shown(name).values()
        newest = max((run.first for run in runs), default=-1)
        return bool(runs) and all(run.others > run.first and run.others >= newest for run in runs)

    def harmless(self, name: str, rank: int, overflows: int) -> bool:
        """Whether the steps of a run did nothing to the weights as far as is known, and are at most ``overflows``.

        A loss of which there is only this report is another's mean, where that one is finite, or a rank's batch
        without anything to learn from, where it was over each time before.
        """
        run = self.going[name][rank]
        skipped, single = run.skipped == run.count, run.latest == run.first
        if run.count > overflows:
            return False
        if kind_of(name) == "loss":
            others = max((at for other, at in self.vouched.items() if other != name), default=-1)
            return (run.fresh and skipped) or (single and (others >= run.first or self._passed(name, rank)))
        vouched = self.vouched_to > run.first or (self.loss and single)
        return vouched or (is_gradient(name) and skipped)

    def _passed(self, name: str, rank: int) -> bool:
        return rank in self.passed.get(name, [])

    @property
    def vouched_to(self) -> int:
        """The iteration up to which a loss was finite while anything was not, -1 where none was."""
        return max(self.vouched.values(), default=-1)

    def _skipped(self, told: Mapping[str, Reports]) -> set[int]:
        """The iterations whose step was skipped: they say so, count one more, or print a lower loss scale."""
        found: set[int] = set()
        for name, reports in told.items():
            if tells_skipped(name):
                found.update(at for _, series in reports for at, value in _values(series) if value > 0)
            elif is_scale(name):
                found.update(at for one in reports for at, before, value in self._steps(*one) if value < before)
            elif counts_skipped(name):
                found.update(at for one in reports for at, before, value in self._steps(*one) if value > before)
        return found

    def _steps(self, rank: int, series: Series) -> Iterator[tuple[int, float, float]]:
        """Each value of a rank's series with the one before it, over windows; of at most so many series."""
        if series.name not in self.last and len(self.last) >= MOST_NAMES:
            return
        last = self.last.setdefault(series.name, {})
        for iteration, value in _values(series):
            yield iteration, last.get(rank, value), value
            last[rank] = value


def _values(series: Series) -> list[tuple[int, float]]:
    """The finite values by iteration."""
    return [(at, value) for at, value in zip(series.iterations, series.values, strict=True) if value is not None]


def _in_time(series: Series) -> list[tuple[int, int, float | None]]:
    """The reports in order of time: after a rollback lower iterations follow."""
    return sorted(zip(series.iterations, series.times, series.values, strict=True), key=lambda one: one[1])
