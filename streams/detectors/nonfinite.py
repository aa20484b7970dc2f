"""Numerics: a loss or gradient norm that is no number any more, and at which iteration that began.

Weights that are no numbers never become numbers again. So a loss that is finite again shows that training was not
harmed, and so does a loss that goes on finite for gradients, other losses and activations: in half precision a gradient
that overflows is part of training, the step is skipped and the loss scale goes down, whether or not that is printed.
Both are information. One report alone may be gone with the next: it is a warning until then.

After a reduction every rank shows the same NaN, so a rank is named only where several ranks report a series of their
own, exactly one of them shows it first, by its numbers and by its times (``streams/step_numbers.py``), and goes on to
show it; of pipeline stages it is the one that values, or gradients on their way back, went through first. A series that
a rank never showed finite began nowhere: that is information, but for the loss itself and the gradients.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from schemas.results import Anomaly, Area, Series, Severity, Suspect
from streams.checks import require
from streams.detectors.registry import JobDetector, register
from streams.nobodys import NOBODY, said_of
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
from streams.step_numbers import no_lead, numbering
from streams.view import AttemptView, AttemptWindow


class NonfiniteConfig(msgspec.Struct, frozen=True, kw_only=True):
    """``reporters``: how many ranks must report a series before one of them can be told apart.

    ``clean_windows``: after how many windows in which nobody shows it an earlier beginning is forgotten.
    ``overflows``: for how many reports in a row gradients may overflow; a loss scale that begins high needs some
    twenty.
    """

    reporters: int = 3
    clean_windows: int = 6
    overflows: int = 30

    def __post_init__(self) -> None:
        require(self, above_0=("reporters", "clean_windows", "overflows"))


class Run(msgspec.Struct, array_like=True):
    """Reports of one rank that are not finite, one after another: the first and its time, the latest, how many.

    ``skipped`` of them are told to be of skipped steps; a ``fresh`` one follows no finite report.
    """

    first: int
    time: int
    latest: int
    count: int
    skipped: int
    fresh: bool


class NonfiniteState(msgspec.Struct, kw_only=True):
    """What each rank shows by metric: ``runs`` that are not over, and up to where it was ``finite``.

    ``since`` has the first iteration at which anybody was finite, ``never`` the series that were told not to be from
    the beginning. ``last`` has by metric the last loss scale or count of skipped steps of each rank. ``loss`` is set
    once a loss was reported; up to ``vouched`` one was finite while anything else was not.
    """

    runs: dict[str, dict[int, Run]] = {}
    finite: dict[str, dict[int, int]] = {}
    since: dict[str, int] = {}
    never: list[str] = []
    clean_windows: int = 0
    last: dict[str, dict[int, float]] = {}
    loss: bool = False
    vouched: int = -1


class _Seen:
    """What one window shows: runs that go on in it by name and rank, those that ended, what never was finite."""

    def __init__(self) -> None:
        self.shown: list[tuple[str, int]] = []
        self.ended: list[tuple[str, int, Run]] = []
        self.never: dict[str, tuple[int, int]] = {}


def _values(series: Series) -> list[tuple[int, float]]:
    """The finite values by iteration."""
    return [(at, value) for at, value in zip(series.iterations, series.values, strict=True) if value is not None]


@register
class Nonfinite(JobDetector[NonfiniteConfig, NonfiniteState]):
    """Watches losses and gradient norms."""

    name = "nonfinite"
    version = 2
    config_type = NonfiniteConfig
    state_type = NonfiniteState

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """One finding in each window that shows values that are not finite, or that they are finite again."""
        told = [(rank, series) for name, reports in window.of_job.items() if concerns(name) for rank, series in reports]
        skipped = self._skipped(told)
        seen = _Seen()
        reported = False
        for rank, series in told:
            if is_watched(series):
                reported = True
                self._take(rank, series, skipped, seen)
        self._vouch(told)
        bad = sorted({name for name, rank in seen.shown if not self._harmless(name, self.state.runs[name][rank])})
        if seen.shown:
            self.state.clean_windows = 0
        if bad:
            return [self._finding(view, window, bad)]
        self.state.clean_windows += reported and not seen.shown
        if self.state.clean_windows >= self.config.clean_windows:
            self.state.runs = {}
        if new := {name: at for name, at in seen.never.items() if name not in self.state.never}:
            self.state.never = sorted({*self.state.never, *new})
            return [self._never(view, window, new)]
        return self._passing(view, window, seen)

    def _take(self, rank: int, series: Series, skipped: set[int], seen: _Seen) -> None:
        """One rank's reports in order; a run is over with the first that is finite."""
        name = series.name
        finite = self.state.finite.setdefault(name, {})
        run = self.state.runs.get(name, {}).get(rank)
        if run is None and not series.nonfinite:
            fine = series.iterations
        else:
            fine = []
            began = finite.get(rank, -1) >= 0
            shown = False
            for at, time, value in zip(series.iterations, series.times, series.values, strict=True):
                if value is not None:
                    fine.append(at)
                    if run is not None:
                        seen.ended.append((name, rank, run))
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
            self.state.since[name] = min(self.state.since.get(name, fine[0]), fine[0])

    def _keep(self, name: str, rank: int, run: Run | None) -> None:
        runs = self.state.runs.setdefault(name, {})
        if run is not None:
            runs[rank] = run
        else:
            runs.pop(rank, None)
        if not runs:
            del self.state.runs[name]

    def _vouch(self, told: list[tuple[int, Series]]) -> None:
        """Up to which iteration a loss is finite: weights that were no numbers before it would have shown there.

        Exactly 0 does not count: some print that for a loss that is no number.
        """
        losses = [series for _, series in told if kind_of(series.name) == "loss"]
        self.state.loss = self.state.loss or bool(losses)
        if not self.state.runs:
            self.state.vouched = -1
        else:
            fine = [at for series in losses for at, value in _values(series) if value]
            self.state.vouched = max(fine, default=self.state.vouched)

    def _harmless(self, name: str, run: Run) -> bool:
        """Whether the steps of a run are known to have done nothing to the weights, and are not too many in a row."""
        skipped = run.skipped == run.count
        if run.count > self.config.overflows:
            return False
        if kind_of(name) == "loss":
            return run.fresh and skipped
        vouched = self.state.vouched > run.first or (self.state.loss and run.latest == run.first)
        return vouched or (is_gradient(name) and skipped)

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

    def _passing(self, view: AttemptView, window: AttemptWindow, seen: _Seen) -> list[Anomaly]:
        """What does no harm, as information: the earliest of it."""
        going_on = [(name, rank, self.state.runs[name][rank]) for name, rank in seen.shown]
        runs = [(run.first, name, rank, run) for name, rank, run in [*seen.ended, *going_on]]
        if not runs:
            return []
        first, name, _, run = min(runs, key=lambda one: one[:3])
        if is_gradient(name) and run.skipped == run.count:
            text = f"gradients overflowed at iteration {first}; the step was skipped and the loss scale lowered"
            return [self._information(view, window, "overflow", run, "workload", text, "the losses were finite")]
        reports = "one report" if run.count == 1 else f"{run.count} reports"
        if any(one is run for _, _, one in going_on):
            text = f"{name} not finite at iteration {first}, for {reports} so far"
            return [self._information(view, window, "loss_goes_on", run, "workload", text, "the loss is finite")]
        ranks = sorted({other for at, which, other, _ in runs if (at, which) == (first, name)})
        text = f"{name} of {said_of(ranks)} not finite at iteration {first}, for {reports}, and finite again"
        return [self._information(view, window, "finite_again", run, "workload", text, "weights cannot be so again")]

    def _never(self, view: AttemptView, window: AttemptWindow, names: dict[str, tuple[int, int]]) -> Anomaly:
        text = f"{', '.join(sorted(names))} not finite from the first report on"
        peers = "never seen finite where it is not; when that began is not known"
        iteration, time = min(names.values())
        run = Run(iteration, time, iteration, 1, 0, True)
        return self._information(view, window, "never_finite", run, "unknown", text, peers)

    def _information(
        self, view: AttemptView, window: AttemptWindow, grounds: str, run: Run, area: Area, text: str, peers: str
    ) -> Anomaly:
        return self.anomaly(
            window,
            grounds,
            onset=run.time,
            axis="time",
            layer="metric",
            symptom="numerics",
            area=area,
            grounds=grounds,
            severity="info",
            text=text,
            peers=peers,
            iteration=run.first,
            phase=view.phase,
        )

    def _finding(self, view: AttemptView, window: AttemptWindow, bad: list[str]) -> Anomaly:
        onset = {name: min((run.first, run.time) for run in self.state.runs[name].values()) for name in bad}
        iteration, time = min(onset.values())
        names = [name for name, first in onset.items() if first[0] == iteration]
        stays = any(run.latest > onset[name][0] for name in bad for run in self.state.runs[name].values())
        suspects = self._own(view, window, names, iteration) if stays else []
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
            severity=self._severity(bad) if stays else "warning",
            text=f"{', '.join(names)} not finite " + (f"from iteration {iteration} on" if stays else f"at {iteration}"),
            peers=("finite before; " if before else "")
            + "the series was reported by "
            + ", ".join(f"{said_of(self.state.finite[name])} ({name})" for name in names),
            iteration=iteration,
            phase=view.phase,
            suspects=suspects,
        )

    def _severity(self, bad: list[str]) -> Severity:
        """A part of training that stays without a number while the loss goes on finite wakes nobody."""
        if self.state.vouched < 0 or any(kind_of(name) in ("loss", "gradient") for name in bad):
            return "critical"
        first = min(run.first for name in bad for run in self.state.runs[name].values())
        return "warning" if self.state.vouched > first else "critical"

    def _own(self, view: AttemptView, window: AttemptWindow, names: list[str], iteration: int) -> list[Suspect]:
        for name in names:
            showing = sorted(rank for rank, run in self.state.runs[name].items() if run.first == iteration)
            if NOBODY in showing:
                continue
            finite = self.state.finite[name].items()
            peers = {rank: at for rank, at in finite if rank not in showing and rank != NOBODY}
            # A peer that has not shown a finite value of that iteration may be no better.
            if any(at < iteration for at in peers.values()) or len(peers) + len(showing) < self.config.reporters:
                continue
            first = earliest_stage(view, name, showing, sorted(peers))
            if first and self._leads(view, window, name, showing, peers):
                where = "in the first pipeline stage whose is" if len(showing) > 1 else "the first that is"
                why = f"its own {name} was {where} not finite, at iteration {iteration}"
                return [view.suspect(rank, 0.9 if len(first) == 1 else 0.6, why) for rank in first]
        return []

    def _leads(
        self, view: AttemptView, window: AttemptWindow, name: str, showing: list[int], peers: dict[int, int]
    ) -> bool:
        """Whether those who show it first by number do so by time too, and mean one step by it."""
        told = window.series.get(name, [])
        marks = numbering(told, view.clock.step_ns or 0)
        own = [marks.get(rank, (0.0, float("inf"))) for rank in showing]
        if max(lower for lower, _ in own) - min(lower for lower, _ in own) > 0.5:
            return False
        iteration = self.state.runs[name][showing[0]].first
        return all(
            at >= iteration + no_lead(lower, error, marks.get(peer, (0.0, 0.0))[0])
            for lower, error in own
            for peer, at in peers.items()
        )
