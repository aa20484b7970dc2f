"""Lines of a rank against its own past: what it prints for the first time while it trains, and what begins to flood.

Space cancels time: what many ranks begin to print at once, or what any rank printed before, is the job's. A rank that
prints new words all the time says nothing by one more. Evidence beside other findings; it names nobody.
"""

from __future__ import annotations

import msgspec
import numpy as np

from schemas.identity import said_ranks
from schemas.results import Anomaly
from streams.checks import require
from streams.contrast import Calm, few_of, observed, printing_apart, speakers, symptom_now, trains, warming_up
from streams.detectors.registry import JobDetector, register
from streams.printed import Line, Printed
from streams.view import AttemptView, AttemptWindow

MOST_CELLS = 200_000
SHOWN_LINES = 3
NEW, FLOOD = "first_printed", "floods"


class LogShiftConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A flood: over ``ratio`` times the rank's own past and ``least_lines`` more a window, in ``k`` windows in a row.

    The past is the mean over windows, of which each counts ``weight`` times as much as all before it; it is known after
    ``reference_windows``. What more than ``few`` of the ranks do is the job's. Up to ``churn`` of its windows may hold
    new lines before a rank counts as one that prints new words all the time. ``most_templates`` are followed.
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
    """Means of lines a window by template, in the order of ``ranks``; how long each flood lasts by ``template|rank``.

    ``windows`` counts those that were taken in, ``new`` by rank those of them with lines that it had never printed.
    ``printers`` print for others.
    """

    calm: Calm = msgspec.field(default_factory=Calm)
    windows: int = 0
    printers: list[int] = []
    ranks: list[int] = []
    means: dict[str, list[float]] = {}
    floods: dict[str, int] = {}
    new: dict[int, int] = {}


@register
class LogShift(JobDetector[LogShiftConfig, LogShiftState]):
    """Holds each rank's lines against what it printed before."""

    name = "log_shift"
    supporting = True
    config_type = LogShiftConfig
    state_type = LogShiftState

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """One finding for those ranks that begin to print a line, one for each template that floods."""
        if not self.state.calm.holds(view, window) or not trains(view):
            return []
        table = window.printed.of(observed(view, window))
        if warming_up(view, window, self.config.warm_up_windows):
            groups = [table.by_template().of(group) for group in view.peer_groups()]
            printers = {rank for group in groups for rank in printing_apart(group, self.config.few)}
            self.state.printers = sorted(printers | set(self.state.printers))
            return []
        found = [*self._new(view, window, table), *self._floods(view, window, table.by_template())]
        self.state.windows += 1
        return found

    def _new(self, view: AttemptView, window: AttemptWindow, table: Printed) -> list[Anomaly]:
        known = window.printed.before.any(axis=1)
        begun = (table.counts > 0) & ~table.before
        begun[[row for row, line in enumerate(table.lines) if line.chatter]] = False
        allowed = max(1.0, self.config.churn * self.state.windows)
        for_others = speakers(view.peer_groups(), self.state.printers)
        by_ranks: dict[tuple[int, ...], list[Line]] = {}
        for row in np.flatnonzero(begun.any(axis=1) & ~known).tolist():
            who = tuple(table.ranks[column] for column in np.flatnonzero(begun[row]).tolist())
            calm = [rank for rank in who if self.state.new.get(rank, 0) <= allowed]
            if len(who) > few_of(len(table.ranks), self.config.few) or len(calm) < len(who):
                continue
            if len(table.ranks) >= self.config.least_peers and not for_others & set(who):
                by_ranks.setdefault(who, []).append(table.lines[row])
        for column in np.flatnonzero(begun.any(axis=0)).tolist():
            rank = table.ranks[column]
            self.state.new[rank] = self.state.new.get(rank, 0) + 1
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
        self._follow(table)
        state, config = self.state, self.config
        at = {line.template: row for row, line in enumerate(table.lines)}
        columns = np.searchsorted(state.ranks, table.ranks)
        floods: dict[str, int] = {}
        found = []
        for name in sorted(state.means):
            means = np.array(state.means[name])
            past = means[columns]
            counts = table.counts[at[name]] if name in at else np.zeros(len(columns), dtype=np.int64)
            high = (counts > config.ratio * past) & (counts >= past + config.least_lines)
            high &= bool(state.windows >= config.reference_windows)
            high &= bool(high.sum() <= few_of(len(table.ranks), config.few))
            means[columns] = np.round(np.where(high, past, past + config.weight * (counts - past)), 3)
            state.means[name] = means.tolist()
            ranks = [table.ranks[column] for column in np.flatnonzero(high).tolist()]
            floods |= {f"{name}|{rank}": state.floods.get(f"{name}|{rank}", 0) + 1 for rank in ranks}
            fresh = [rank for rank in ranks if floods[f"{name}|{rank}"] == config.k]
            if fresh:
                line = table.lines[at[name]]
                some = table.ranks.index(fresh[0])
                found.append(self._said_flood(view, window, line, fresh, int(counts[some]), float(past[some])))
        state.floods = floods
        return found

    def _follow(self, table: Printed) -> None:
        """Make room for new ranks and templates; where there is none, those that are printed least go."""
        state = self.state
        ranks = sorted({*state.ranks, *table.ranks})
        if ranks != state.ranks:
            places = np.searchsorted(ranks, state.ranks)
            for name, means in state.means.items():
                wider = np.zeros(len(ranks))
                wider[places] = means
                state.means[name] = wider.tolist()
            state.ranks = ranks
        for line, counts in zip(table.lines, table.counts, strict=True):
            if not line.chatter and counts.any():
                state.means.setdefault(line.template, [0.0] * len(ranks))
        most = max(1, min(self.config.most_templates, MOST_CELLS // max(len(ranks), 1)))
        printed = {line.template: int(counts.sum()) for line, counts in zip(table.lines, table.counts, strict=True)}
        weight = {name: max(sum(means), float(printed.get(name, 0))) for name, means in state.means.items()}
        kept = sorted(state.means, key=lambda name: (-weight[name], name))[:most]
        state.means = {name: state.means[name] for name in sorted(kept)}

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
