"""Stage frontier (supports slowness): in which phase of a step, and by which rank, steps are held up first.

From per-rank timers of phases, by the increments of the largest cumulative time (``streams/frontier.py``). Where no one
phase or no one rank leads in most steps the finding says that it is ambiguous.
"""

from __future__ import annotations

from collections import Counter

import msgspec
import numpy as np

from schemas.results import Anomaly
from streams.attempt_window import AttemptWindow
from streams.checks import require
from streams.detectors.registry import JobDetector, register
from streams.frontier import Frontier, Indices, frontier, phases_of
from streams.robust import Array
from streams.series_table import Reports
from streams.stall import over
from streams.timers import scale_ns
from streams.view import AttemptView

MILLISECOND = 1_000_000
LARGEST = 1e12
FAR = 2**62
MOST_STEPS = 200
"""Of one window; more are not judged."""


class StageFrontierConfig(msgspec.Struct, frozen=True, kw_only=True):
    """``impact`` is the excess, as a share of the step, from which a step is held up; ``share`` of ``steps`` must be.

    The first ``warm_up_steps`` do not count; steps that some rank has not reported are waited for while they are among
    the last ``pending_steps``.
    """

    steps: int = 20
    share: float = 0.5
    impact: float = 0.1
    warm_up_steps: int = 5
    pending_steps: int = 20

    def __post_init__(self) -> None:
        require(self, above_0=("steps", "impact", "pending_steps"), shares=("share", "impact"))


class Step(msgspec.Struct, frozen=True, array_like=True):
    """One step: who held it up first and where, by how many ms, and how long its frontier is."""

    iteration: int
    time: int
    phase: str
    rank: int
    excess: float
    length: float
    shared: bool


class Readings(msgspec.Struct, kw_only=True):
    """The readings of one timer as columns of equal length; ``values`` in ms, null where there is none."""

    iterations: list[int] = []
    ranks: list[int] = []
    values: list[float | None] = []
    times: list[int] = []


class Columns(msgspec.Struct, frozen=True):
    """The same as arrays, without what is no reading."""

    iterations: Indices
    ranks: Indices
    values: Array
    times: Indices

    @classmethod
    def of(cls, found: Readings) -> Columns:
        """The readings that are finite numbers from 0 on."""
        values = np.array(found.values, dtype=np.float64)
        kept = np.nan_to_num(values, nan=-1.0) >= 0
        whole = (np.array(column, dtype=np.int64)[kept] for column in (found.iterations, found.ranks, found.times))
        iterations, ranks, times = whole
        return cls(iterations, ranks, np.minimum(values[kept], LARGEST), times)

    @classmethod
    def told(cls, name: str, reports: Reports) -> Columns:
        """The readings of a window."""
        flat = reports.flat
        scale = scale_ns(name) / MILLISECOND
        values = flat.values if scale == 1 else flat.values * scale
        kept = np.nan_to_num(values, nan=-1.0) >= 0
        ranks = np.repeat(flat.ranks, flat.lengths)
        return cls(flat.iterations[kept], ranks[kept], np.minimum(values[kept], LARGEST), flat.times[kept])

    def then(self, others: Columns) -> Columns:
        """These readings and others behind them."""
        return Columns(
            np.concatenate([self.iterations, others.iterations]),
            np.concatenate([self.ranks, others.ranks]),
            np.concatenate([self.values, others.values]),
            np.concatenate([self.times, others.times]),
        )

    def at(self, steps: Indices) -> Readings:
        """The readings of these steps."""
        kept = np.isin(self.iterations, steps)
        return Readings(
            iterations=self.iterations[kept].tolist(),
            ranks=self.ranks[kept].tolist(),
            values=self.values[kept].tolist(),
            times=self.times[kept].tolist(),
        )


class StageFrontierState(msgspec.Struct, kw_only=True):
    """Readings of steps that are not judged yet by timer, the last judged steps, and the first step that counts."""

    pending: dict[str, Readings] = {}
    judged: list[Step] = []
    began: int | None = None


@register
class StageFrontier(JobDetector[StageFrontierConfig, StageFrontierState]):
    """Follows the frontier of steps over their phases."""

    name = "stage_frontier"
    supporting = True
    config_type = StageFrontierConfig
    state_type = StageFrontierState

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """At most one finding a window, once enough steps were held up."""
        found = self._collected(window)
        if not found or not self._judge(view, found) or over(view):
            return []
        last = self.state.judged[-self.config.steps :]
        held = [step for step in last if step.excess >= self.config.impact * step.length > 0]
        if len(last) < self.config.steps or len(held) < self.config.share * len(last):
            return []
        return [self._finding(view, window, held, len(last))]

    def _collected(self, window: AttemptWindow) -> dict[str, Columns]:
        """The readings of phases in this window and those that wait, by timer; nothing if the window has none."""
        phases = phases_of(set(window.series))
        if not phases:
            return {}
        found = {name: Columns.of(waiting) for name, waiting in self.state.pending.items()}
        for name in phases:
            blocks = [block for block in window.series[name].blocks if 0 <= block.steps[0] <= block.steps[-1] < FAR]
            if blocks:
                fresh = Columns.told(name, Reports(blocks))
                found[name] = found[name].then(fresh) if name in found else fresh
        self.state.pending = {}
        return {name: found[name] for name in phases_of(found)}

    def _judge(self, view: AttemptView, found: dict[str, Columns]) -> bool:
        """Judge the steps that all who report have reported; returns whether there were any."""
        seen, counts = np.unique(np.concatenate([one.iterations for one in found.values()]), return_counts=True)
        if not seen.size:
            return False
        # What only few ranks report is no step of all, and not to be waited for long.
        steps = seen[counts * 2 >= counts.max()][-MOST_STEPS:]
        ranks = np.unique(np.concatenate([one.ranks for one in found.values()]))
        values, times = _laid_out(list(found.values()), steps, ranks)
        known = np.isfinite(values).any(axis=0).mean(axis=0) >= 0.5
        phases, values = [name for name, kept in zip(found, known, strict=True) if kept], values[:, :, known]
        ready = np.asarray(np.isfinite(values).all(axis=(1, 2)))
        ready[: -self.config.pending_steps] = True
        waiting = np.setdiff1d(seen, steps[ready])[-self.config.pending_steps :]
        if waiting.size:
            self.state.pending = {name: one.at(waiting) for name, one in found.items()}
        if not ready.any() or not phases:
            return False
        first = int(steps[ready][0])
        if self.state.began is None or first + self.config.pending_steps < self.state.began:
            # Steps are counted for the first time, or anew; those that had been waited for are only late.
            self.state.began, self.state.judged = first, []
        counted = ready & (steps >= self.state.began + self.config.warm_up_steps)
        self._note(view, steps[counted], times[counted], ranks.tolist(), phases, values[counted])
        return bool(counted.any())

    def _note(
        self,
        view: AttemptView,
        iterations: Indices,
        times: Indices,
        ranks: list[int],
        phases: list[str],
        values: Array,
    ) -> None:
        place = {rank: at for at, rank in enumerate(ranks)}
        groups = [[place[rank] for rank in group if rank in place] for group in view.peer_groups()]
        found: Frontier = frontier(values, [group for group in groups if group])
        for at, step in enumerate(iterations.tolist()):
            self.state.judged.append(
                Step(
                    step,
                    int(times[at]),
                    phases[int(found.phase[at])],
                    ranks[int(found.rank[at])],
                    round(float(found.excess[at]), 3),
                    round(float(found.length[at]), 3),
                    bool(found.shared[at]),
                )
            )
        self.state.judged = self.state.judged[-self.config.steps :]

    def _finding(self, view: AttemptView, window: AttemptWindow, held: list[Step], count: int) -> Anomaly:
        phase, in_phase = _most([step.phase for step in held])
        alone = [step for step in held if step.phase == phase and not step.shared]
        rank, by_rank = _most([str(step.rank) for step in alone])
        one_phase = in_phase >= self.config.share * count
        one_rank = one_phase and by_rank >= self.config.share * count
        told = [step for step in held if step.phase == phase] if one_phase else held
        more = float(np.median([step.excess for step in told]))
        part = float(np.median([step.excess / step.length for step in told]))
        where = f"in {phase}" if one_phase else "in one phase or another"
        whom = f"by rank {rank}" if one_rank else "by ranks that change or are as late as others"
        times = by_rank if one_rank else in_phase if one_phase else len(held)
        return self.anomaly(
            window,
            "frontier",
            onset=told[0].time,
            axis="space",
            layer="metric",
            symptom="slowdown",
            area="unknown",
            grounds="frontier" if one_rank else "frontier_ambiguous",
            severity="info",
            text=f"steps are held up first {where}, {whom}, in {times} of the last {count} steps"
            + ("" if one_rank else "; ambiguous"),
            peers=f"{more:.1f} ms beyond the median of the peers, {part:.0%} of a step",
            iteration=told[0].iteration,
            phase=view.phase,
            metric=phase if one_rank else "",
        )


def _laid_out(columns: list[Columns], steps: Indices, ranks: Indices) -> tuple[Array, Indices]:
    """Readings as [step, rank, phase], NaN where there is none, and when each step was last reported."""
    values = np.full((len(steps), len(ranks), len(columns)), np.nan)
    times = np.zeros(len(steps), dtype=np.int64)
    for at, one in enumerate(columns):
        kept = np.isin(one.iterations, steps)
        rows = np.searchsorted(steps, one.iterations[kept])
        values[rows, np.searchsorted(ranks, one.ranks[kept]), at] = one.values[kept]
        np.maximum.at(times, rows, one.times[kept])
    return values, times


def _most(values: list[str]) -> tuple[str, int]:
    """The value that comes most often, of equally many the first in order; an empty one where there is none."""
    counted = Counter(values)
    return min(((value, count) for value, count in counted.items()), key=lambda one: (-one[1], one[0]), default=("", 0))
