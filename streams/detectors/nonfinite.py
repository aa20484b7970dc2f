"""Numerics: a loss or gradient norm that is no number any more, and at which iteration that began.

After a reduction every rank shows the same NaN, so a rank is named only where several ranks report a series of their
own and exactly one of them shows it first; of pipeline stages it is the one that values, or gradients on their way
back, went through first. In half precision a gradient that overflows is part of training: the step is skipped, the loss
scale goes down, and the next ones are finite again; only if they are not is anything wrong. A series that a rank never
showed finite began nowhere: that is information, but for the loss itself and the gradients.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from schemas.identity import said_ranks
from schemas.results import Anomaly, Area, Series, Suspect
from streams.checks import require
from streams.detectors.registry import JobDetector, register
from streams.numerics import (
    concerns,
    counts_skipped,
    earliest_stage,
    is_gradient,
    is_scale,
    is_watched,
    kind_of,
    tells_skipped,
)
from streams.series_table import Block
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

    After ``clean_windows`` windows with finite values only, a new beginning counts as one. ``since`` has the first
    iteration at which anybody was finite, ``never`` the series that were told not to be from the beginning. ``last``
    has by metric the last loss scale or count of skipped steps of each rank, ``run`` how many were skipped in a row.
    """

    first: dict[str, dict[int, tuple[int, int]]] = {}
    finite: dict[str, dict[int, int]] = {}
    since: dict[str, int] = {}
    never: list[str] = []
    clean_windows: int = 0
    last: dict[str, dict[int, float]] = {}
    run: int = 0


def _time_of(series: Series, iteration: int) -> int:
    return series.times[series.iterations.index(iteration)]


def _values(series: Series) -> list[tuple[int, float]]:
    """The finite values by iteration."""
    return [(at, value) for at, value in zip(series.iterations, series.values, strict=True) if value is not None]


def _parted(window: AttemptWindow) -> tuple[list[tuple[int, Series]], list[Block]]:
    """The series that concern this, by rank; apart those of ranks that report finite numbers only, and no skips.

    Of these all there is to know is how far they were finite: ten thousand ranks mostly are.
    """
    told: list[tuple[int, Series]] = []
    plain: list[Block] = []
    for name, reports in window.series.items():
        if not concerns(name):
            continue
        if not (is_scale(name) or counts_skipped(name) or tells_skipped(name)) and all(
            not block.nonfinite and np.isfinite(block.values).all() for block in reports.blocks
        ):
            plain += reports.blocks
        else:
            told += reports
    return told, plain


@register
class Nonfinite(JobDetector[NonfiniteConfig, NonfiniteState]):
    """Watches losses and gradient norms."""

    name = "nonfinite"
    config_type = NonfiniteConfig
    state_type = NonfiniteState

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """One finding in each window that shows values that are not finite."""
        told, plain = _parted(window)
        skipped = self._skipped(told)
        persists = self._persists(told, skipped, plain)
        overflowed: list[tuple[int, int]] = []
        never: dict[str, tuple[int, int]] = {}
        seen, reported = False, self._note_plain(plain)
        for rank, series in told:
            if not is_watched(series):
                continue
            reported = True
            fine = [at for at, _ in _values(series)]
            began = self._began(rank, series, fine)
            self._note(rank, series.name, fine)
            bad = [iteration for iteration, _ in series.nonfinite]
            if bad and not began:
                at = (bad[0], _time_of(series, bad[0]))
                never[series.name] = min(never.get(series.name, at), at)
                bad = []
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
        if new := {name: at for name, at in never.items() if name not in self.state.never}:
            self.state.never = sorted({*self.state.never, *new})
            return [self._never(view, window, new)]
        return [self._overflow(view, window, min(overflowed))] if overflowed else []

    def _began(self, rank: int, series: Series, fine: list[int]) -> bool:
        """Whether a first value that is not finite is a beginning: the rank was finite before, or it must be always."""
        if not series.nonfinite or kind_of(series.name) in ("loss", "gradient"):
            return True
        first = series.nonfinite[0][0]
        return self.state.finite.get(series.name, {}).get(rank, -1) >= 0 or min(fine, default=first) < first

    def _note_plain(self, plain: list[Block]) -> bool:
        """Take in who was finite all the time; returns whether a series of theirs is watched."""
        watched = [block for block in plain if is_watched(block.series(0))]
        for block in watched:
            finite = self.state.finite.setdefault(block.name, {})
            finite.update(dict.fromkeys(block.ranks, max(block.steps)))
            first = block.steps[0]
            self.state.since[block.name] = min(self.state.since.get(block.name, first), first)
        return bool(watched)

    def _note(self, rank: int, name: str, fine: list[int]) -> None:
        finite = self.state.finite.setdefault(name, {})
        finite[rank] = max(fine, default=finite.get(rank, -1))
        if fine:
            self.state.since[name] = min(self.state.since.get(name, fine[0]), fine[0])

    def _skipped(self, told: list[tuple[int, Series]]) -> set[int]:
        """The iterations whose step was skipped: they say so, count one more, or print a lower loss scale."""
        found: set[int] = set()
        for rank, series in told:
            if tells_skipped(series.name):
                found.update(at for at, value in _values(series) if value > 0)
            elif is_scale(series.name):
                found.update(at for at, before, value in self._steps(rank, series) if value < before)
            elif counts_skipped(series.name):
                found.update(at for at, before, value in self._steps(rank, series) if value > before)
        return found

    def _steps(self, rank: int, series: Series) -> Iterator[tuple[int, float, float]]:
        """Each value of a rank's series with the one before it, over windows."""
        last = self.state.last.setdefault(series.name, {})
        for iteration, value in _values(series):
            yield iteration, last.get(rank, value), value
            last[rank] = value

    def _persists(self, told: list[tuple[int, Series]], skipped: set[int], plain: list[Block]) -> bool:
        """Whether gradients have overflowed for so many steps in a row that a lower loss scale does not help."""
        bad: set[int] = set()
        fine = {
            at for block in plain if is_gradient(block.name) and block.unit not in ("ms", "s") for at in block.steps
        }
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
        text = f"gradients overflowed at iteration {first[0]}; the step was skipped and the loss scale lowered"
        return self._information(view, window, "overflow", first, "workload", text, "the losses were finite")

    def _never(self, view: AttemptView, window: AttemptWindow, names: dict[str, tuple[int, int]]) -> Anomaly:
        text = f"{', '.join(sorted(names))} not finite from the first report on"
        peers = "never seen finite where it is not; when that began is not known"
        return self._information(view, window, "never_finite", min(names.values()), "unknown", text, peers)

    def _information(
        self,
        view: AttemptView,
        window: AttemptWindow,
        grounds: str,
        first: tuple[int, int],
        area: Area,
        text: str,
        peers: str,
    ) -> Anomaly:
        iteration, time = first
        return self.anomaly(
            window,
            grounds,
            onset=time,
            axis="time",
            layer="metric",
            symptom="numerics",
            area=area,
            grounds=grounds,
            severity="info",
            text=text,
            peers=peers,
            iteration=iteration,
            phase=view.phase,
        )

    def _finding(self, view: AttemptView, window: AttemptWindow) -> Anomaly:
        onset = {name: min(ranks.values()) for name, ranks in self.state.first.items()}
        iteration, time = min(onset.values())
        names = sorted(name for name, first in onset.items() if first[0] == iteration)
        suspects = self._own(view, names, iteration)
        before = all(self.state.since.get(name, iteration) < iteration for name in names)
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
            peers=("finite before; " if before else "")
            + "the series was reported by "
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
