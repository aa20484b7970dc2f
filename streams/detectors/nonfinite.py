"""Numerics: a loss or gradient norm that is no number any more, and at which iteration that began.

After a reduction every rank shows the same NaN, so a rank is named only where several ranks report a series of their
own and exactly one of them shows it first.
"""

from __future__ import annotations

import re

import msgspec

from schemas.identity import said_ranks
from schemas.results import Anomaly, Suspect
from streams.checks import require
from streams.detectors.registry import JobDetector, register
from streams.view import AttemptView, AttemptWindow

_WATCHED = re.compile(r"loss(?!_scale)|grad_?norm|perplexity|ppl")


class NonfiniteConfig(msgspec.Struct, frozen=True, kw_only=True):
    """``reporters``: how many ranks must report a series before one of them can be told apart.

    ``clean_windows``: after how many windows with finite values only an earlier beginning is forgotten.
    """

    reporters: int = 3
    clean_windows: int = 6

    def __post_init__(self) -> None:
        require(self, above_0=("reporters", "clean_windows"))


class NonfiniteState(msgspec.Struct, kw_only=True):
    """First iteration and time at which each rank showed it, by metric; up to where each reporter was finite.

    After ``clean_windows`` windows with finite values only, a new beginning counts as one.
    """

    first: dict[str, dict[int, tuple[int, int]]] = {}
    finite: dict[str, dict[int, int]] = {}
    clean_windows: int = 0


@register
class Nonfinite(JobDetector[NonfiniteConfig, NonfiniteState]):
    """Watches losses and gradient norms."""

    name = "nonfinite"
    config_type = NonfiniteConfig
    state_type = NonfiniteState

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """One finding in each window that shows values that are not finite."""
        seen = reported = False
        for summary in window.summaries:
            rank = summary.identity.rank
            for series in summary.series:
                if rank is None or not _WATCHED.search(series.name) or series.unit in ("ms", "s"):
                    continue
                reported = True
                finite = self.state.finite.setdefault(series.name, {})
                known = [at for at, value in zip(series.iterations, series.values, strict=True) if value is not None]
                finite[rank] = max(known, default=finite.get(rank, -1))
                if series.nonfinite:
                    seen = True
                    iteration = series.nonfinite[0][0]
                    time = series.times[series.iterations.index(iteration)]
                    self.state.first.setdefault(series.name, {}).setdefault(rank, (iteration, time))
        if seen:
            self.state.clean_windows = 0
            return [self._finding(view, window)]
        self.state.clean_windows += reported
        if self.state.clean_windows >= self.config.clean_windows:
            self.state.first = {}
        return []

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
            first = [rank for rank, found in self.state.first[name].items() if found[0] == iteration]
            peers = {rank: at for rank, at in self.state.finite[name].items() if rank not in first}
            # A peer that has not shown a finite value of that iteration may be no better.
            fine = all(at >= iteration for at in peers.values())
            if len(first) == 1 and fine and len(peers) + 1 >= self.config.reporters:
                rank = first[0]
                why = f"its own {name} was the first that is not finite, at iteration {iteration}"
                return [view.suspect(rank, 0.9, why)]
        return []
