"""The tables of steps of a job: one for each timer, role and kind of process."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from schemas.results import Window
from streams.attempt_window import AttemptWindow
from streams.robust import Array, median_of
from streams.series_table import Flat, one_behind_another
from streams.steps import StepColumns, StepTable
from streams.timers import Kind, kind_of_timer, plain_timer, scale_ns
from streams.view import AttemptView

MOST_TABLES: dict[Kind, int] = {"own": 32, "wait": 32, "mixed": 8, "total": 4, "none": 0}
"""By kind of timers; the last kinds only explain what the first two show, and take as much memory each."""


Steps = Sequence[tuple[int, int]]
"""Iterations with their times (ns)."""


class TableKey(msgspec.Struct, frozen=True, order=True):
    """What is measured, by whom: ``timer`` is its name without the unit."""

    kind: Kind
    process_type: str
    role: str
    timer: str

    @property
    def text(self) -> str:
        """The key as it is written down."""
        return "|".join((self.kind, self.process_type, self.role, self.timer))


def timer_of(text: str) -> str:
    """The timer that the text of a key names."""
    return text.rpartition("|")[2]


def is_own(text: str) -> bool:
    """Whether the timer of this key holds own work alone."""
    return text.startswith("own|")


class StepTables:
    """Takes windows in; keeps the tables by the text of their keys."""

    def __init__(self, warm_up: int, written: dict[str, StepColumns] | None = None) -> None:
        self._warm_up = warm_up
        self._tables = {text: StepTable(columns) for text, columns in sorted((written or {}).items())}

    def written(self) -> dict[str, StepColumns]:
        """The tables as they are written down."""
        return {text: table.written() for text, table in sorted(self._tables.items())}

    def __getitem__(self, text: str) -> StepTable:
        return self._tables[text]

    def collect(self, view: AttemptView, window: AttemptWindow) -> None:
        """Take in the timers of one window; of a rank's series of one name the first counts."""
        found: dict[TableKey, list[tuple[str, Flat]]] = {}
        who = [_who(view, summary) for summary in window.summaries]
        classes = {one: number for number, one in enumerate(dict.fromkeys(who))}
        numbers = np.array([classes[one] for one in who], dtype=np.int64)
        for name, reports in window.series.items():
            kind = kind_of_timer(name)
            of = numbers[reports.flat.places] if kind != "none" else numbers[:0]
            for process_type, role in [one for one, number in classes.items() if number in of]:
                key = TableKey(kind, process_type, role, plain_timer(name))
                found.setdefault(key, []).append((name, reports.flat.only(of == classes[process_type, role])))
        for key in sorted(found):
            if key.text in self._tables or len(self.of(key.kind)) < MOST_TABLES[key.kind]:
                self._take(key.text, found[key])
        for text in sorted(set(self._tables) - {key.text for key in found}):
            self._tables[text].take(None, np.empty(0), self._warm_up)

    def _take(self, text: str, found: list[tuple[str, Flat]]) -> None:
        """Take in reports under names that differ by their unit alone, in order of these; a rank's first counts."""
        whole = one_behind_another([flat for _, flat in found])
        scales = np.repeat([float(scale_ns(name)) for name, _ in found], [len(flat.ranks) for _, flat in found])
        first = np.zeros(len(whole.ranks), dtype=np.bool_)
        first[np.unique(whole.ranks, return_index=True)[1]] = True
        table = self._tables.setdefault(text, StepTable(StepColumns()))
        table.take(whole.only(first), scales[first], self._warm_up)

    def of(self, kind: Kind) -> list[str]:
        """The keys of timers of this kind, as they are written down."""
        return [text for text in sorted(self._tables) if text.startswith(f"{kind}|")]

    def waiting(self, ranks: list[int], steps: Steps) -> Array:
        """How long each of these ranks waits for others in these steps (ns); NaN where it is not known.

        Only who has all the timers that any of them has can be compared.
        """
        tables = [self._tables[text] for text in self.of("wait")]
        told = [_middles(table, ranks, steps) for table in tables if table.places(ranks)]
        told = [one for one in told if np.isfinite(one).any()]
        return np.sum(told, axis=0) if told else np.full(len(ranks), np.nan)

    def working_time(self, ranks: list[int], steps: Steps) -> Array:
        """How long each timer of these ranks takes that holds work, alone or with waiting (ns), [timer, rank]."""
        texts = (*self.of("own"), *self.of("mixed"))
        return np.array([_middles(self._tables[text], ranks, steps) for text in texts]).reshape(len(texts), len(ranks))

    def waiting_time(self, ranks: list[int], steps: Steps) -> Array:
        """How long all timers of a rank take that hold waiting, alone or with work (ns), in these steps.

        0 where it has none. Timers may lie within each other, so only differences tell.
        """
        found = np.zeros(len(ranks))
        for text in (*self.of("wait"), *self.of("mixed")):
            found += np.nan_to_num(_middles(self._tables[text], ranks, steps))
        return found

    def open_time(self, ranks: list[int], steps: Steps) -> Array:
        """How much of these steps (ns) none of a rank's timers covers.

        Timers may lie within each other, so what is left may be below 0: ranks can be compared, the number means
        nothing. NaN where a rank does not time its whole steps, or lacks a timer that most have.
        """
        left = np.full(len(ranks), -np.inf)
        for text in self.of("total"):
            left = np.fmax(left, _middles(self._tables[text], ranks, steps))
        for kind in ("own", "wait", "mixed"):
            for text in self.of(kind):
                middles = _middles(self._tables[text], ranks, steps)
                lacking = np.isnan(middles)
                left = np.where(lacking, np.nan if 2 * lacking.sum() < len(ranks) else left, left - middles)
        return np.where(np.isfinite(left), left, np.nan)


def _rows(table: StepTable, steps: Steps) -> list[int]:
    """Where the judged steps stand in a table; of those of one iteration, counted anew, the one nearest in time."""
    found: dict[int, list[int]] = {}
    for row, iteration in enumerate(table.iterations[: table.judged]):
        found.setdefault(iteration, []).append(row)
    return [
        min(found[iteration], key=lambda row: abs(table.times[row] - time))
        for iteration, time in steps
        if iteration in found
    ]


def _who(view: AttemptView, summary: Window) -> tuple[str, str]:
    """Process type and role of whose summary it is."""
    rank = summary.identity.rank
    return summary.identity.process_type, "" if rank is None else view.members[rank].identity.role


def _middles(table: StepTable, ranks: list[int], steps: Steps) -> Array:
    """Each rank's median (ns) over these steps; NaN where it reported none."""
    found = np.full(len(ranks), np.nan)
    rows = _rows(table, steps)
    if rows and (places := table.places(ranks)):
        found[np.isin(ranks, table.ranks)] = median_of(table.at(rows, places).T)
    return found
