"""Numerics: a loss or gradient norm that is no number any more, and at which iteration that began.

After a reduction every rank shows the same NaN, so a rank is named only where several ranks report a series of their
own and exactly one of them shows it first; of pipeline stages it is the one that values, or gradients on their way
back, went through first. In half precision a gradient that overflows is part of training: the step is skipped, the loss
scale goes down, and the next ones are finite again; only if they are not is anything wrong.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from schemas.identity import said_ranks
from schemas.results import Anomaly, Series, Suspect
from streams.checks import require
from streams.detectors.registry import JobDetector, register
from streams.numerics import concerns, counts_skipped, earliest_stage, is_gradient, is_scale, is_watched, tells_skipped
from streams.view import AttemptView, AttemptWindow


class NonfiniteConfig(msgspec.Struct, frozen=True, kw_only=True):
    """``reporters``: how many ranks must report a series before one of them can be told apart.

    ``clean_windows``: after how many windows with finite values only an earlier beginning is forgotten.
    ``overflows``: how many steps in a row may be skipped; a loss scale that begins high needs some twenty.
    """

    reporters: int = 3
    clean_windows: int = 6
    overflows: int = 30

    def __post_init__(self) -> None:
        require(self, above_0=("reporters", "clean_windows", "overflows"))


class NonfiniteState(msgspec.Struct, kw_only=True):
    """First iteration and time at which each rank showed it, by metric; up to where each reporter was finite.

    After ``clean_windows`` windows with finite values only, a new beginning counts as one. ``scale`` and ``skipped``
    are the last loss scale and count of skipped steps that a rank printed, ``run`` how many were skipped in a row.
    """

    first: dict[str, dict[int, tuple[int, int]]] = {}
    finite: dict[str, dict[int, int]] = {}
    clean_windows: int = 0
    scale: dict[int, float] = {}
    skipped: dict[int, float] = {}
    run: int = 0


def _time_of(series: Series, iteration: int) -> int:
    return series.times[series.iterations.index(iteration)]


def _values(series: Series) -> list[tuple[int, float]]:
    """The finite values by iteration."""
    return [(at, value) for at, value in zip(series.iterations, series.values, strict=True) if value is not None]


def _steps(last: dict[int, float], rank: int, values: list[tuple[int, float]]) -> Iterator[tuple[int, float, float]]:
    """Each value of a rank with the one before it, over windows; ``last`` is brought up to date."""
    for iteration, value in values:
        yield iteration, last.get(rank, value), value
        last[rank] = value


@register
class Nonfinite(JobDetector[NonfiniteConfig, NonfiniteState]):
    """Watches losses and gradient norms."""

    name = "nonfinite"
    config_type = NonfiniteConfig
    state_type = NonfiniteState

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """One finding in each window that shows values that are not finite."""
        told = [(rank, series) for name, reports in window.series.items() if concerns(name) for rank, series in reports]
        skipped = self._skipped(told)
        persists = self._persists(told, skipped)
        overflowed: list[tuple[int, int]] = []
        seen = reported = False
        for rank, series in told:
            if not is_watched(series):
                continue
            reported = True
            finite = self.state.finite.setdefault(series.name, {})
            finite[rank] = max((at for at, _ in _values(series)), default=finite.get(rank, -1))
            bad = [iteration for iteration, _ in series.nonfinite]
            if is_gradient(series.name) and not persists:
                overflowed += [(at, _time_of(series, at)) for at in bad if at in skipped]
                bad = [iteration for iteration in bad if iteration not in skipped]
            if bad:
                seen = True
                iteration, time = bad[0], _time_of(series, bad[0])
                self.state.first.setdefault(series.name, {}).setdefault(rank, (iteration, time))
        if seen:
            self.state.clean_windows = 0
            return [self._finding(view, window)]
        self.state.clean_windows += reported
        if self.state.clean_windows >= self.config.clean_windows:
            self.state.first = {}
        return [self._overflow(view, window, min(overflowed))] if overflowed else []

    def _skipped(self, told: list[tuple[int, Series]]) -> set[int]:
        """The iterations whose step was skipped: they say so, count one more, or print a lower loss scale."""
        found: set[int] = set()
        for rank, series in told:
            if tells_skipped(series.name):
                found.update(at for at, value in _values(series) if value > 0)
            elif is_scale(series.name):
                steps = _steps(self.state.scale, rank, _values(series))
                found.update(at for at, before, value in steps if value < before)
            elif counts_skipped(series.name):
                steps = _steps(self.state.skipped, rank, _values(series))
                found.update(at for at, before, value in steps if value > before)
        return found

    def _persists(self, told: list[tuple[int, Series]], skipped: set[int]) -> bool:
        """Whether gradients have overflowed for so many steps in a row that a lower loss scale does not help."""
        bad: set[int] = set()
        fine: set[int] = set()
        for _, series in told:
            if is_gradient(series.name) and series.unit not in ("ms", "s"):
                bad.update(at for at, _ in series.nonfinite if at in skipped)
                fine.update(at for at, _ in _values(series))
        longest = self.state.run
        for iteration in sorted(bad | fine):
            self.state.run = self.state.run + 1 if iteration in bad else 0
            longest = max(longest, self.state.run)
        return longest > self.config.overflows

    def _overflow(self, view: AttemptView, window: AttemptWindow, first: tuple[int, int]) -> Anomaly:
        iteration, time = first
        return self.anomaly(
            window,
            "overflow",
            onset=time,
            axis="time",
            layer="metric",
            symptom="numerics",
            area="workload",
            grounds="overflow",
            severity="info",
            text=f"gradients overflowed at iteration {iteration}; the step was skipped and the loss scale lowered",
            peers="the losses were finite",
            iteration=iteration,
            phase=view.phase,
        )

    def _finding(self, view: AttemptView, window: AttemptWindow) -> Anomaly:
        onset = {name: min(ranks.values()) for name, ranks in self.state.first.items()}
        iteration, time = min(onset.values())
        names = sorted(name for name, first in onset.items() if first[0] == iteration)
        suspects = self._own(view, names, iteration)
        return self.anomaly(
            window,
            "job",
            onset=time,
            axis="space" if suspects else "time",
            layer="metric",
            symptom="numerics",
            area="unknown",
            grounds="own_series" if suspects else "after_reduction",
            severity="critical",
            text=f"{', '.join(names)} not finite from iteration {iteration} on",
            peers="finite before; the series was reported by "
            + ", ".join(f"{said_ranks(self.state.finite[name])} ({name})" for name in names),
            iteration=iteration,
            phase=view.phase,
            suspects=suspects,
        )

    def _own(self, view: AttemptView, names: list[str], iteration: int) -> list[Suspect]:
        for name in names:
            showing = sorted(rank for rank, found in self.state.first[name].items() if found[0] == iteration)
            peers = {rank: at for rank, at in self.state.finite[name].items() if rank not in showing}
            # A peer that has not shown a finite value of that iteration may be no better.
            if any(at < iteration for at in peers.values()) or len(peers) + len(showing) < self.config.reporters:
                continue
            first = earliest_stage(view, name, showing, sorted(peers))
            if first:
                where = "in the first pipeline stage whose is" if len(showing) > 1 else "the first that is"
                why = f"its own {name} was {where} not finite, at iteration {iteration}"
                return [view.suspect(rank, 0.9 if len(first) == 1 else 0.6, why) for rank in first]
        return []
