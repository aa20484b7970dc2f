"""How often ranks were seen at own work, at loading or waiting, and how much CPU they used, by window and rank."""

from __future__ import annotations

from base64 import b64decode, b64encode

import msgspec
import numpy as np
import numpy.typing as npt

from schemas.results import StackSpan, Window
from streams.attempt_window import AttemptWindow
from streams.member import WAITING
from streams.robust import Array, median_of
from streams.stacks import is_main
from streams.view import AttemptView

Counts = npt.NDArray[np.uint8]

COUNTED = ("waits", "loads", "works")
MOST_SAMPLES = 255
CPU = "cpu_percent"
CPU_UNIT = 0.05
"""Percent by which values of CPU are told apart where they are kept."""


class BusyRows(msgspec.Struct, kw_only=True):
    """Columns as they are written down: ``counts`` are [window, rank, what], ``cpu`` [window, rank], in base64."""

    ranks: list[int] = []
    starts: list[int] = []
    counts: str = ""
    cpu: str = ""


class BusyColumns:
    """The last windows of a job in which it got on, oldest first."""

    def __init__(self, rows: BusyRows) -> None:
        self.ranks, self.starts = list(rows.ranks), list(rows.starts)
        self._place = {rank: place for place, rank in enumerate(self.ranks)}
        shape = (len(self.starts), len(self.ranks))
        counts = np.frombuffer(b64decode(rows.counts), dtype=np.uint8)
        self._counts: Counts = counts.reshape((*shape, len(COUNTED)))
        self._cpu = np.frombuffer(b64decode(rows.cpu), dtype="<u2").astype(np.uint16).reshape(shape)

    def written(self) -> BusyRows:
        """The columns as they are written down."""
        return BusyRows(
            ranks=self.ranks,
            starts=self.starts,
            counts=b64encode(self._counts.tobytes()).decode(),
            cpu=b64encode(self._cpu.astype("<u2").tobytes()).decode(),
        )

    def take(self, view: AttemptView, window: AttemptWindow, most: int) -> None:
        """Take in one window; of all ``most`` are kept."""
        seen = {
            summary.identity.rank: found
            for summary in window.summaries
            if summary.identity.rank is not None and (found := _seen(view, summary)) is not None
        }
        cpu = _cpu_of(window)
        self._add([rank for rank in sorted({*seen, *cpu}) if rank not in self._place])
        counts = np.zeros((1, len(self.ranks), len(COUNTED)), dtype=np.uint8)
        used = np.zeros((1, len(self.ranks)), dtype=np.uint16)
        if seen:
            counts[0, [self._place[rank] for rank in seen]] = list(seen.values())
        if cpu:
            used[0, [self._place[rank] for rank in cpu]] = list(cpu.values())
        self.starts = [*self.starts, window.start][-most:]
        self._counts = np.concatenate([self._counts, counts])[-most:]
        self._cpu = np.concatenate([self._cpu, used])[-most:]

    def _add(self, ranks: list[int]) -> None:
        if not ranks:
            return
        self._place.update({rank: len(self.ranks) + at for at, rank in enumerate(ranks)})
        self.ranks += ranks
        self._counts = np.pad(self._counts, ((0, 0), (0, len(ranks)), (0, 0)))
        self._cpu = np.pad(self._cpu, ((0, 0), (0, len(ranks))))

    def places(self, ranks: list[int]) -> list[int]:
        """The columns of those of the ranks that have one."""
        return [self._place[rank] for rank in ranks if rank in self._place]

    def samples(self, last: int) -> npt.NDArray[np.int64]:
        """How often each rank was seen waiting, loading and at other work in the last windows, ``[rank, what]``."""
        counts: npt.NDArray[np.int64] = self._counts[-last:].sum(axis=0, dtype=np.int64)
        return counts

    def waits(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Samples that show each rank waiting, and all, ``[window, rank]``."""
        return self._counts[:, :, 0].astype(np.int64), self._counts.sum(axis=2, dtype=np.int64)

    def cpu(self, last: int) -> Array:
        """The CPU that each rank used in the last windows (percent), in the middle; NaN where it was not measured."""
        used = np.where(self._cpu[-last:] > 0, self._cpu[-last:] * CPU_UNIT, np.nan)
        return median_of(used.T)


def _seen(view: AttemptView, summary: Window) -> list[int] | None:
    """How often the rank's own main thread was seen waiting, loading and at other work; null where it was not.

    Children of a rank may be taken for trainers: the process that announced itself last counts, else the one that was
    seen waiting most.
    """
    mains = [span for span in summary.stacks if span.frames and is_main(span)]
    pids = {span.pid for span in mains}
    if len(pids) > 1 and summary.identity.rank in view.members:
        announced = [pid for pid in view.members[summary.identity.rank].announced if pid in pids]
        chosen = announced[-1] if announced else max(pids, key=lambda pid: (_waiting(mains, pid), pid))
        mains = [span for span in mains if span.pid == chosen]
    counts = [0, 0, 0]
    for span in mains:
        # Who saves a checkpoint is neither slow nor waits.
        if span.activity not in ("checkpoint", "unobserved"):
            counts[0 if span.activity in WAITING else 1 if span.activity == "data" else 2] += span.samples
    return [min(count, MOST_SAMPLES) for count in counts] if any(counts) else None


def _waiting(spans: list[StackSpan], pid: int) -> int:
    return sum(span.samples for span in spans if span.pid == pid and span.activity in WAITING)


def _cpu_of(window: AttemptWindow) -> dict[int, int]:
    """The processes' own CPU by rank, in units; 0 stands for what was not measured, so that nothing is 1."""
    table = window.gauges
    own = [at for at in table.places(CPU) if not table.metrics[at][1]]
    if not own:
        return {}
    units = np.clip(np.nan_to_num(np.rint(table.means[own[0]] / CPU_UNIT), nan=0.0, posinf=2**16 - 1), 0, 2**16 - 1)
    known = np.isfinite(table.means[own[0]])
    return {
        rank: max(int(unit), 1)
        for rank, unit, there in zip(table.ranks, units.tolist(), known.tolist(), strict=True)
        if there
    }
