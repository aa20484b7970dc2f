"""Lines of a rank against its own past: what it prints for the first time while it trains, and what begins to flood.

Space cancels time: what many ranks begin to print at once, or what any rank printed before, is the job's. Where a
few always have something new to say, one more says nothing. Evidence beside other findings; it names nobody.
"""

from __future__ import annotations

import msgspec
import numpy as np

from schemas.identity import said_ranks
from schemas.results import Anomaly
from streams.attempt_window import AttemptWindow
from streams.checks import require
from streams.contrast import (
    Calm,
    few_of,
    observed,
    own_lines,
    printing_apart,
    speakers,
    symptom_now,
    trains,
    warming_up,
)
from streams.detectors.registry import JobDetector, register
from streams.past import Past
from streams.printed import Line, Marks, Printed
from streams.view import AttemptView

SHOWN_LINES = 3
NEW, FLOOD = "first_printed", "floods"


class LogShiftConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A flood: over ``ratio`` times the rank's own past and ``least_lines`` more a window, in ``k`` windows in a row.

    The past is the mean over windows, each of which counts ``weight`` times the rest, of up to ``most_templates``; it
    is known after ``reference_windows``. What more than ``few`` of the ranks do is the job's. Up to ``churn`` of the
    job's windows may hold lines that are new to a few before that is what it does all the time.
    """

    ratio: float = 4.0
    least_lines: float = 10.0
    k: int = 3
    weight: float = 0.2
    reference_windows: int = 3
    few: float = 0.25
    churn: float = 0.1
    least_peers: int = 4
    warm_up_windows: int = 2
    most_templates: int = 64

    def __post_init__(self) -> None:
        counts = ("k", "reference_windows", "least_peers", "most_templates")
        require(self, above_0=("ratio", "least_lines", *counts), shares=("weight", "few", "churn"))


class LogShiftState(msgspec.Struct, kw_only=True):
    """How long each flood lasts by ``template|rank``, ranks that print for others, windows with lines new to a few."""

    calm: Calm = msgspec.field(default_factory=Calm)
    past: Past = msgspec.field(default_factory=Past)
    floods: dict[str, int] = {}
    printers: list[int] = []
    new: int = 0


@register
class LogShift(JobDetector[LogShiftConfig, LogShiftState]):
    """Holds each rank's lines against what it printed before."""

    name = "log_shift"
    supporting = True
    config_type = LogShiftConfig
    state_type = LogShiftState

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """One finding for those ranks that begin to print a line, one for each template that floods."""
        if not self.state.calm.holds(view, window):
            self.state.floods = {}
            return []
        if not trains(view):
            return []
        table = own_lines(window.printed.of(observed(view, window)))
        templates = table.by_template()
        if warming_up(view, window, self.config.warm_up_windows):
            groups = [templates.of(group) for group in view.peer_groups()]
            printers = {rank for group in groups for rank in printing_apart(group, self.config.few)}
            self.state.printers = sorted(printers | set(self.state.printers))
            self._take(templates, np.zeros(templates.counts.shape, dtype=np.bool_))
            return []
        if self.state.past.windows < self.config.reference_windows:
            self._take(templates, np.zeros(templates.counts.shape, dtype=np.bool_))
            return []
        return [*self._new(view, window, table), *self._floods(view, window, templates)]

    def _take(self, table: Printed, apart: Marks) -> None:
        self.state.past.take(table, apart, self.config.weight, self.config.most_templates)

    def _new(self, view: AttemptView, window: AttemptWindow, table: Printed) -> list[Anomaly]:
        everybody = window.printed
        printed = {one.signature for one, marks in zip(everybody.lines, everybody.before, strict=True) if marks.any()}
        few = few_of(len(table.ranks), self.config.few)
        for_themselves = set(self.state.past.seen_for(self.config.reference_windows))
        for_themselves -= speakers(view.peer_groups(), self.state.printers)
        by_ranks: dict[tuple[int, ...], list[Line]] = {}
        for line, counts in zip(table.lines, table.counts, strict=True):
            who = tuple(table.ranks[column] for column in np.flatnonzero(counts).tolist())
            if 0 < len(who) <= few and line.signature not in printed and for_themselves >= set(who):
                by_ranks.setdefault(who, []).append(line)
        usual = self.state.new > max(1.0, self.config.churn * self.state.past.windows)
        self.state.new += bool(by_ranks)
        if usual or len(table.ranks) < self.config.least_peers:
            return []
        return [self._said_first(view, window, who, by_ranks[who]) for who in sorted(by_ranks)[:SHOWN_LINES]]

    def _said_first(self, view: AttemptView, window: AttemptWindow, who: tuple[int, ...], lines: list[Line]) -> Anomaly:
        shown = sorted(lines, key=lambda line: (line.first, line.signature))[:SHOWN_LINES]
        said = ", ".join(f'"{line.text}"' for line in shown)
        return self._finding(
            view,
            window,
            NEW,
            f"{NEW}|{'|'.join(map(str, who))}",
            f"{said_ranks(who)} printed for the first time: {said}",
            "no rank had printed it before",
            shown,
        )

    def _floods(self, view: AttemptView, window: AttemptWindow, table: Printed) -> list[Anomaly]:
        past = self.state.past.of(table)
        known = self.state.past.known(table, self.config.reference_windows)
        high = known & (table.counts > self.config.ratio * past)
        high &= table.counts >= past + self.config.least_lines
        high &= high.sum(axis=1, keepdims=True) <= few_of(len(table.ranks), self.config.few)
        self._take(table, high)
        before, self.state.floods = self.state.floods, {}
        found = []
        for row, line in enumerate(table.lines):
            fresh = []
            for column in np.flatnonzero(high[row]).tolist():
                key = f"{line.template}|{table.ranks[column]}"
                self.state.floods[key] = before.get(key, 0) + 1
                if self.state.floods[key] == self.config.k:
                    fresh.append(column)
            if fresh:
                who = [table.ranks[column] for column in fresh]
                count, usual = int(table.counts[row, fresh[0]]), float(past[row, fresh[0]])
                found.append(self._said_flood(view, window, line, who, count, usual))
        return found

    def _said_flood(
        self, view: AttemptView, window: AttemptWindow, line: Line, who: list[int], count: int, past: float
    ) -> Anomaly:
        seconds = (window.end - window.start) / 1e9
        text = f'{said_ranks(who)} printed "{line.text}" {count} times in {seconds:g} s, {past:.3g} times before'
        peers = f"{len(view.members) - len(who)} of {len(view.members)} ranks did not begin to"
        return self._finding(view, window, FLOOD, f"{FLOOD}|{line.template}", text, peers, [line])

    def _finding(
        self,
        view: AttemptView,
        window: AttemptWindow,
        grounds: str,
        subject: str,
        text: str,
        peers: str,
        lines: list[Line],
    ) -> Anomaly:
        return self.anomaly(
            window,
            subject,
            onset=min(line.first for line in lines),
            axis="time",
            layer="log",
            symptom=symptom_now(view, window),
            area="unknown",
            grounds=grounds,
            severity="info",
            text=text,
            peers=peers,
            iteration=view.clock.iteration,
            phase=view.phase,
            templates=[line.signature for line in lines],
        )
