"""Templates across ranks: who prints what peers do not, and who lacks what nearly all peers print, for k of n windows.

Evidence beside other findings: it says where to read, and names nobody. Not compared are who may print for all (the
first and the last of a group, and whoever printed apart from the others as training began), chatter outside its own
class, ranks whose window was cut or whose producer is silent, and anything once ranks fail or leave.
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
    above_peers,
    classes,
    few_of,
    lacking,
    observed,
    printing_apart,
    speakers,
    symptom_now,
    trains,
    typical,
    warming_up,
)
from streams.detectors.registry import JobDetector, register
from streams.past import Past
from streams.printed import Line, Marks, Printed
from streams.view import AttemptView

MOST_MARKS = 500
MORE, LACKS = "prints_apart", "lacks"


class LogContrastConfig(msgspec.Struct, frozen=True, kw_only=True):
    """``ratio`` to what is typical and to the rank's own past, and ``surprise`` (a G of 10.83 has p = 0.001), in ``k``
    of the last ``n`` windows.

    Lacking is what ``common`` of the peers print, at least ``least_lines`` a window, and what the rank printed so often
    that ``surprise`` lines were due in ``n`` windows. Groups of fewer than ``least_peers`` are not compared; where more
    than ``few`` stand apart it is by design. Who prints for all is learnt in the first ``warm_up_windows`` of training.
    The past is the mean over windows, each of which counts ``weight`` times the rest, of up to ``most_templates``.
    """

    ratio: float = 4.0
    surprise: float = 10.83
    k: int = 2
    n: int = 3
    common: float = 0.9
    least_lines: int = 2
    least_peers: int = 4
    few: float = 0.25
    warm_up_windows: int = 2
    weight: float = 0.2
    most_templates: int = 64

    def __post_init__(self) -> None:
        counts = ("k", "least_lines", "least_peers", "most_templates")
        require(self, above_0=("ratio", "surprise", *counts), shares=("common", "few", "weight"))
        if self.k > self.n:
            raise ValueError(f"k windows of n: {self.k} of {self.n} cannot be")


class LogContrastState(msgspec.Struct, kw_only=True):
    """Marks of the last windows by ``template|rank|which``, and the ranks that print for others."""

    calm: Calm = msgspec.field(default_factory=Calm)
    past: Past = msgspec.field(default_factory=Past)
    marks: dict[str, list[int]] = {}
    printers: list[int] = []


class _Mark(msgspec.Struct, frozen=True):
    """One rank apart in one window, by one template."""

    line: Line
    rank: int
    which: str
    count: int
    peers: str

    @property
    def key(self) -> str:
        return f"{self.line.template}|{self.rank}|{self.which}"


@register
class LogContrast(JobDetector[LogContrastConfig, LogContrastState]):
    """Contrasts the counts of each template within peer groups."""

    name = "log_contrast"
    supporting = True
    config_type = LogContrastConfig
    state_type = LogContrastState

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """One finding a template, in the window in which it becomes continuous."""
        if not self.state.calm.holds(view, window):
            self.state.marks = {}
            return []
        if not trains(view):
            return []
        table = window.printed.by_template().of(observed(view, window))
        groups = [table.of(group) for group in view.peer_groups()]
        groups = [group for group in groups if len(group.ranks) >= self.config.least_peers]
        marks: list[_Mark] = []
        if warming_up(view, window, self.config.warm_up_windows):
            printers = {rank for group in groups for rank in printing_apart(group, self.config.few)}
            self.state.printers = sorted(printers | set(self.state.printers))
        else:
            marks = [mark for group in groups for part in classes(group) for mark in self._marks(part)]
        apart = np.zeros(table.counts.shape, dtype=np.bool_)
        row_of = {line.template: row for row, line in enumerate(table.lines)}
        column_of = {rank: column for column, rank in enumerate(table.ranks)}
        for mark in marks:
            apart[row_of[mark.line.template], column_of[mark.rank]] = True
        self.state.past.take(table, apart, self.config.weight, self.config.most_templates)
        return self._findings(view, window, self._continuous(marks))

    def _marks(self, part: Printed) -> list[_Mark]:
        """Who stands apart in a group in this window, by one class of lines."""
        if len(part.ranks) < self.config.least_peers:
            return []
        few = few_of(len(part.ranks), self.config.few)
        usual, middle = typical(part.counts, few), np.median(part.counts, axis=1)
        more = above_peers(part.counts, few, self.config.ratio, self.config.surprise)
        for_others = np.isin(part.ranks, sorted(speakers([part.ranks], self.state.printers)))
        # Where most print apart from each other, the lines differ by design.
        more &= ~for_others & (2 * for_others.sum() <= len(part.ranks))
        past = self.state.past.of(part)
        more &= self.state.past.known(part, self.config.n) & (part.counts > self.config.ratio * past)
        # By chance nothing comes in n windows with a probability of exp(-n * past).
        used = part.before & (self.config.n * past >= self.config.surprise)
        lacks = lacking(part.counts, used, self.config.common, self.config.least_lines)
        found = []
        for which, marks in ((MORE, more), (LACKS, lacks)):
            few_rows: Marks = marks & (marks.sum(axis=1, keepdims=True) <= few)
            for row, column in np.argwhere(few_rows).tolist():
                said = f"{middle[row]:.0f} times on the median"
                if which == MORE:
                    said = f"all but {few} {f'at most {usual[row, 0]} times' if usual[row, 0] else 'never'}"
                count = int(part.counts[row, column])
                found.append(_Mark(part.lines[row], part.ranks[column], which, count, said))
        return found

    def _continuous(self, marks: list[_Mark]) -> list[_Mark]:
        """Those that are apart in enough windows by now, and were not before."""
        now = {mark.key: mark for mark in marks}
        history = {key: [*seen, 0][-self.config.n :] for key, seen in self.state.marks.items()}
        fresh = []
        for key in sorted(now):
            before = self.state.marks.get(key, [])
            after = [*before, 1][-self.config.n :]
            needed = self.config.k if now[key].which == MORE else self.config.n
            if sum(after) >= needed > sum(before):
                fresh.append(now[key])
            history[key] = after
        kept = sorted((key for key, seen in history.items() if any(seen)), key=lambda key: (-sum(history[key]), key))
        self.state.marks = {key: history[key] for key in sorted(kept[:MOST_MARKS])}
        return fresh

    def _findings(self, view: AttemptView, window: AttemptWindow, fresh: list[_Mark]) -> list[Anomaly]:
        by_line: dict[tuple[str, str], list[_Mark]] = {}
        for mark in fresh:
            by_line.setdefault((mark.line.template, mark.which), []).append(mark)
        return [self._finding(view, window, marks) for _, marks in sorted(by_line.items())]

    def _finding(self, view: AttemptView, window: AttemptWindow, marks: list[_Mark]) -> Anomaly:
        line, which = marks[0].line, marks[0].which
        who, most = said_ranks(mark.rank for mark in marks), max(mark.count for mark in marks)
        seconds = (window.end - window.start) / 1e9
        said = f'no longer prints "{line.text}"' if which == LACKS else f'"{line.text}" {most} times in {seconds:g} s'
        layout = "" if view.knows_layout or len(view.peer_groups()) > 1 else "; roles and stages are not known"
        return self.anomaly(
            window,
            f"{line.template}|{which}",
            onset=window.start if which == LACKS else line.first,
            axis="space",
            layer="log",
            symptom=symptom_now(view, window),
            area="unknown",
            grounds=which,
            severity="info",
            text=f"{who}: {said}",
            peers=f"its peers: {marks[0].peers}{layout}",
            iteration=view.clock.iteration,
            phase=view.phase,
            templates=[line.signature] if which == MORE else [],
        )
