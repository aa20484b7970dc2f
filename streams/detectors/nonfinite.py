"""Numerics: a loss or gradient norm that is no number any more, and at which iteration that began.

What did no harm is information (``streams/nonfinite_runs.py``). One report alone may be gone with the next: it is a
warning until then.

After a reduction every rank shows the same NaN, so a rank is named only where several ranks report a series of their
own, exactly one of them shows it first, by its numbers and by its times (``streams/step_numbers.py``), and goes on to
show it; of pipeline stages it is the one that values, or gradients on their way back, went through first. A series that
a rank never showed finite began nowhere: that is information, for the loss itself and the gradients where others show
numbers beside it. What few ranks go on to show while the others go on without it is a warning, and no reduction is said
to have spread it.
"""

from __future__ import annotations

import msgspec

from schemas.results import Anomaly, Area, Severity, Suspect
from streams.attempt_window import AttemptWindow
from streams.checks import require
from streams.detectors.registry import JobDetector, register
from streams.nobodys import NOBODY, said_of
from streams.nonfinite_runs import Run, Runs, RunsSeen
from streams.numerics import concerns, earliest_stage, is_gradient, kind_of
from streams.step_numbers import no_lead, numbering
from streams.view import AttemptView

SAID, LONGEST = 8, 200
"""Names in a finding, and characters of each."""


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


class NonfiniteState(msgspec.Struct, kw_only=True):
    """Runs of what is not finite; after ``clean_windows`` windows in which nobody shows any they are forgotten.

    ``never`` are the series that were told not to be finite from the beginning.
    """

    runs: Runs = msgspec.field(default_factory=Runs)
    never: list[str] = []
    clean_windows: int = 0


@register
class Nonfinite(JobDetector[NonfiniteConfig, NonfiniteState]):
    """Watches losses and gradient norms."""

    name = "nonfinite"
    grounds = frozenset(
        {
            "own_series",
            "after_reduction",
            "alone",
            "part",
            "one_report",
            "overflow",
            "loss_goes_on",
            "finite_again",
            "went_back",
            "never_finite",
        }
    )
    version = 2
    config_type = NonfiniteConfig
    state_type = NonfiniteState

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """One finding in each window that shows values that are not finite, or that they are finite again."""
        runs = self.state.runs
        seen = runs.take({name: told for name, told in window.of_job.items() if concerns(name)})
        shown = sorted({name for name, _ in seen.shown})
        beside = {(name, rank) for name in shown for rank in runs.placeholders(name)}
        for name, rank in sorted(beside & set(seen.shown)):
            run = runs.going[name][rank]
            seen.never[name] = min(seen.never.get(name, (run.first, run.time)), (run.first, run.time))
        seen.shown = [one for one in seen.shown if one not in beside]
        bad = sorted({name for name, rank in seen.shown if not runs.harmless(name, rank, self.config.overflows)})
        if shown:
            self.state.clean_windows = 0
        if bad:
            return [self._finding(view, window, bad)]
        if seen.lost:
            return [self._went_back(view, window, seen)]
        self.state.clean_windows += seen.reported and not shown
        if self.state.clean_windows >= self.config.clean_windows:
            runs.going = {}
        if new := {name: at for name, at in seen.never.items() if name not in self.state.never}:
            self.state.never = sorted({*self.state.never, *new})
            return [self._never(view, window, new)]
        return self._passing(view, window, seen)

    def _passing(self, view: AttemptView, window: AttemptWindow, seen: RunsSeen) -> list[Anomaly]:
        """What does no harm, as information: the earliest of it."""
        going_on = [(name, rank, self.state.runs.going[name][rank]) for name, rank in seen.shown]
        runs = [(run.first, name, rank, run) for name, rank, run in [*seen.ended, *going_on]]
        if not runs:
            return []
        first, name, _, run = min(runs, key=lambda one: one[:3])
        if is_gradient(name) and run.skipped == run.count:
            text = f"gradients overflowed at iteration {first}; the step was skipped and the loss scale lowered"
            return [self._told(view, window, "overflow", run, "workload", text, "the losses were finite")]
        reports = "one report" if run.count == 1 else f"{run.count} reports"
        if any(one is run for _, _, one in going_on):
            text = f"{name} not finite at iteration {first}, for {reports} so far"
            return [self._told(view, window, "loss_goes_on", run, "workload", text, "the loss is finite")]
        ranks = sorted({other for at, which, other, _ in runs if (at, which) == (first, name)})
        text = f"{name} of {said_of(ranks)} not finite at iteration {first}, for {reports}, and finite again"
        return [self._told(view, window, "finite_again", run, "workload", text, "weights that are no numbers stay so")]

    def _went_back(self, view: AttemptView, window: AttemptWindow, seen: RunsSeen) -> Anomaly:
        """It is over by a checkpoint from before it, which says nothing of the weights that were given up."""
        iteration, name, _, run = min(seen.lost, key=lambda one: (one[3].first, *one[:3]))
        text = f"{name} not finite from iteration {run.first} on, until the job went back to {iteration}"
        peers = "what comes after a checkpoint is no sign that nothing was lost"
        return self._told(view, window, "went_back", run, "unknown", text, peers, "warning")

    def _never(self, view: AttemptView, window: AttemptWindow, names: dict[str, tuple[int, int]]) -> Anomaly:
        text = f"{_said(sorted(names))} not finite from the first report on"
        peers = "never seen finite where it is not; when that began is not known"
        iteration, time = min(names.values())
        run = Run(iteration, time, iteration, 1, 0, True)
        return self._told(view, window, "never_finite", run, "unknown", text, peers)

    def _told(
        self,
        view: AttemptView,
        window: AttemptWindow,
        grounds: str,
        run: Run,
        area: Area,
        text: str,
        peers: str,
        severity: Severity = "info",
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
            severity=severity,
            text=text,
            peers=peers,
            iteration=run.first,
            phase=view.phase,
        )

    def _finding(self, view: AttemptView, window: AttemptWindow, bad: list[str]) -> Anomaly:
        runs = self.state.runs
        spread = {name: found for name in bad if not runs.is_alone(name) and (found := runs.began(name))}
        began = spread or {name: runs.shown(name) for name in bad}
        onset = {name: min((run.first, run.time) for run in each.values()) for name, each in began.items()}
        iteration, time = min(onset.values())
        names = [name for name, first in onset.items() if first[0] == iteration]
        stays = any(run.latest > onset[name][0] for name, each in began.items() for run in each.values())
        suspects = self._own(view, window, {name: began[name] for name in names}, iteration) if stays else []
        before = all(runs.since.get(name, iteration) < iteration for name in names)
        grounds = ("own_series" if suspects else "after_reduction") if spread else ("alone" if suspects else "part")
        return self.anomaly(
            window,
            "job",
            onset=time,
            axis="space" if suspects else "time",
            layer="metric",
            symptom="numerics",
            area="unknown",
            grounds=grounds if stays else "one_report",
            severity=self._severity(sorted(spread)) if stays and spread else "warning",
            text=f"{_said(names)} not finite " + (f"from iteration {iteration} on" if stays else f"at {iteration}"),
            peers=("finite before; " if before else "")
            + ("" if spread else "others are finite since; ")
            + "the series was reported by "
            + _said([f"{said_of(runs.finite[name])} ({name})" for name in names]),
            iteration=iteration,
            phase=view.phase,
            suspects=suspects,
        )

    def _severity(self, bad: list[str]) -> Severity:
        """A part of training that stays without a number while the loss goes on finite wakes nobody."""
        if not self.state.runs.vouched or any(kind_of(name) in ("loss", "gradient") for name in bad):
            return "critical"
        first = min(run.first for name in bad for run in self.state.runs.shown(name).values())
        return "warning" if self.state.runs.vouched_to > first else "critical"

    def _own(
        self, view: AttemptView, window: AttemptWindow, began: dict[str, dict[int, Run]], iteration: int
    ) -> list[Suspect]:
        runs = self.state.runs
        for name, found in began.items():
            showing = sorted(rank for rank, run in found.items() if run.first == iteration)
            if NOBODY in showing:
                continue
            beside = {*runs.placeholders(name), NOBODY}
            peers = {rank: at for rank, at in runs.finite[name].items() if rank not in showing and rank not in beside}
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
        marks = numbering(window.series.get(name) or (), view.clock.step_ns or 0)
        own = [marks.get(rank, (0.0, float("inf"))) for rank in showing]
        if max(lower for lower, _ in own) - min(lower for lower, _ in own) > 0.5:
            return False
        iteration = self.state.runs.going[name][showing[0]].first
        return all(
            at >= iteration + no_lead(lower, error, marks.get(peer, (0.0, 0.0))[0])
            for lower, error in own
            for peer, at in peers.items()
        )


def _said(names: list[str]) -> str:
    """The first of these names, cut where they are long."""
    more = f" and {len(names) - SAID} more" if len(names) > SAID else ""
    return ", ".join(name[:LONGEST] for name in names[:SAID]) + more
