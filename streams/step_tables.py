"""The tables of steps of a job: one for each timer, role and kind of process."""

from __future__ import annotations

from bisect import bisect_left

import msgspec
import numpy as np

from schemas.results import Series
from streams.robust import Array, median_of
from streams.steps import StepColumns, StepTable
from streams.timers import Kind, kind_of_timer, plain_timer, scale_ns
from streams.view import AttemptView, AttemptWindow

MOST_TABLES = 32
"""Of each kind of timers."""


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
        found: dict[TableKey, dict[str, dict[int, Series]]] = {}
        # Ten thousand ranks print the same few names.
        columns: dict[tuple[str, str, str], dict[int, Series] | None] = {}
        for summary in window.summaries:
            rank, process_type = summary.identity.rank, summary.identity.process_type
            if rank is None:
                continue
            role = view.members[rank].identity.role
            for series in summary.reported:
                told = (series.name, process_type, role)
                if told not in columns:
                    columns[told] = _column_of(found, *told)
                column = columns[told]
                if column is not None and rank not in column:
                    column[rank] = series
        for key in sorted(found):
            if key.text in self._tables or len(self.of(key.kind)) < MOST_TABLES:
                self._take(key.text, found[key])
        for text in sorted(set(self._tables) - {key.text for key in found}):
            self._tables[text].take([], [], [], self._warm_up)

    def _take(self, text: str, found: dict[str, dict[int, Series]]) -> None:
        taken: dict[int, Series] = {}
        scales: list[float] = []
        for name, by_rank in sorted(found.items()):
            new = {rank: series for rank, series in by_rank.items() if rank not in taken}
            taken.update(new)
            scales += [float(scale_ns(name))] * len(new)
        self._tables.setdefault(text, StepTable(StepColumns())).take(
            list(taken), list(taken.values()), scales, self._warm_up
        )

    def of(self, kind: Kind) -> list[str]:
        """The keys of timers of this kind, as they are written down."""
        return [text for text in sorted(self._tables) if text.startswith(f"{kind}|")]

    def waiting(self, ranks: list[int], steps: int) -> Array:
        """How long each of these ranks waits for others in a step (ns), over the last ones; NaN where it is not known.

        Only who has all the timers that any of them has can be compared.
        """
        tables = [self._tables[text] for text in self.of("wait")]
        told = [
            _middles(table, ranks, max(table.judged - steps, 0), table.judged)
            for table in tables
            if table.places(ranks)
        ]
        told = [one for one in told if np.isfinite(one).any()]
        return np.sum(told, axis=0) if told else np.full(len(ranks), np.nan)

    def open_time(self, ranks: list[int], first: int, behind: int | None) -> Array:
        """How much of a step (ns) none of a rank's timers covers, from one iteration to before another.

        Timers may lie within each other, so what is left may be below 0: ranks can be compared, the number means
        nothing. NaN where a rank does not time its whole steps, or lacks a timer that most have.
        """
        left = np.full(len(ranks), -np.inf)
        for text in self.of("total"):
            total = _middles(self._tables[text], ranks, *_between(self._tables[text], first, behind))
            left = np.fmax(left, total)
        for kind in ("own", "wait", "mixed"):
            for text in self.of(kind):
                middles = _middles(self._tables[text], ranks, *_between(self._tables[text], first, behind))
                lacking = np.isnan(middles)
                left = np.where(lacking, np.nan if 2 * lacking.sum() < len(ranks) else left, left - middles)
        return np.where(np.isfinite(left), left, np.nan)


def _between(table: StepTable, first: int, behind: int | None) -> tuple[int, int]:
    """The judged steps from one iteration to before another."""
    steps = table.iterations[: table.judged]
    return bisect_left(steps, first), len(steps) if behind is None else bisect_left(steps, behind)


def _column_of(
    found: dict[TableKey, dict[str, dict[int, Series]]], name: str, process_type: str, role: str
) -> dict[int, Series] | None:
    """Where the series of this name belong, by rank; null for what is no timer."""
    kind = kind_of_timer(name)
    if kind == "none":
        return None
    return found.setdefault(TableKey(kind, process_type, role, plain_timer(name)), {}).setdefault(name, {})


def _middles(table: StepTable, ranks: list[int], start: int, stop: int) -> Array:
    """Each rank's median (ns) over the judged steps ``start`` to ``stop``; NaN where it reported none."""
    found = np.full(len(ranks), np.nan)
    values = table.values(start, stop)
    if len(values):
        found[np.isin(ranks, table.ranks)] = median_of(values[:, table.places(ranks)].T)
    return found
