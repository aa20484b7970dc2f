"""A rank's metrics against their own past: many of them leave the bands in which they lay so far, and stay out.

Space cancels time: what most peers' metrics do at once is the job's, not a rank's. A rank that no longer computes in
step, as on a node that throttles or swaps, leaves its past in several metrics, often before it is slow enough to be
found by its timers. Evidence beside other findings; it names nobody.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import NDArray

from schemas.results import Anomaly
from streams.attempt_window import AttemptWindow
from streams.bands import BandConfig, Bands
from streams.cells import Cells
from streams.checks import require
from streams.comparable import Comparable, ranks_compared
from streams.contrast import symptom_now, trains
from streams.detectors.registry import JobDetector, register
from streams.gauge_words import Reading, said_nodes, said_readings, said_usual, said_who
from streams.node_gauges import nodes_compared, on_nodes
from streams.peer_groups import Matrix, group_places, shares_of
from streams.robust import median_of
from streams.stall import over
from streams.view import AttemptView

Marks = NDArray[np.bool_]
_KEPT_AS: dict[str, type[np.generic]] = {
    "low": np.float32,
    "high": np.float32,
    "spread": np.float32,
    "seen": np.uint16,
    "recent": np.float16,
}
_SETTLES = 2
"""Windows after which those that leave their past together have."""
_MOST_SEEN = np.float32(65_535)


class MetricShiftConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A metric has left its past once it was out of its band for ``left`` of the present; a rank once ``share`` have.

    What more than a share of ``few`` of its peers do as well does not count, nor does anything without ``least_peers``.
    While it lasts it is said again after ``again`` windows; at most ``most`` findings a window, those with the most
    metrics out.
    """

    bands: BandConfig = BandConfig()
    left: float = 0.35
    share: float = 0.2
    few: float = 0.34
    least_peers: int = 2
    again: int = 6
    most: int = 4

    def __post_init__(self) -> None:
        require(self, above_0=("left", "share", "least_peers", "again", "most"), shares=("left", "share", "few"))
        if self.left == 1 or self.bands.memory > _MOST_SEEN:
            raise ValueError(f"metric_shift: left < 1 and memory <= {_MOST_SEEN:.0f} must hold")


class Followed(msgspec.Struct, kw_only=True):
    """The bands of each metric and rank; by rank since when it is out of them, and how many windows ago it was said."""

    cells: Cells = msgspec.field(default_factory=Cells)
    since: dict[int, int] = {}
    said: dict[int, int] = {}


class MetricShiftState(msgspec.Struct, kw_only=True):
    """What is carried of ranks, and of nodes as such, each of which stands under its lowest rank."""

    ranks: Followed = msgspec.field(default_factory=Followed)
    nodes: Followed = msgspec.field(default_factory=Followed)


@register
class MetricShift(JobDetector[MetricShiftConfig, MetricShiftState]):
    """Holds what a window measured against the past of the same rank, and that against its peers."""

    name = "metric_shift"
    supporting = True
    config_type = MetricShiftConfig
    state_type = MetricShiftState

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """One finding for ranks that leave their past alike, and now and then again while they are out."""
        if over(view) or not trains(view):
            return []
        ranks = self._of(view, window, self.state.ranks, ranks_compared(view, window))
        nodes = self._of(view, window, self.state.nodes, nodes_compared(view, window))
        return [*ranks, *nodes]

    def _of(self, view: AttemptView, window: AttemptWindow, kept: Followed, seen: Comparable) -> list[Anomaly]:
        cells = kept.cells
        values = cells.fit(seen)
        if not cells.rows:
            return []
        bands = Bands(**{name: cells.plane(name, kind).astype(np.float32) for name, kind in _KEPT_AS.items()})
        bands.take(values, self.config.bands)
        bands.seen = np.minimum(bands.seen, _MOST_SEEN)
        for name, kind in _KEPT_AS.items():
            cells.put(name, getattr(bands, name).astype(kind))
        own = self._own(view, cells, bands, np.isfinite(values))
        due = self._due(window, kept, bands, own & (bands.recent >= self.config.left))
        found = []
        for who, rows in self._together(view, kept, own, due)[: self.config.most]:
            kept.said |= {cells.ranks[place]: 0 for place in who}
            found.append(self._finding(view, window, kept, values, who, rows))
        return found

    def _own(self, view: AttemptView, cells: Cells, bands: Bands, known: Marks) -> Marks:
        """Which metrics of each rank are halfway out of their past at least, as only a few of its peers' are.

        Metrics and ranks do not leave it in the very same window: who is halfway does as the others do. A role or stage
        whose ranks nearly all are counts too, where only a few of all others are.
        """
        halfway = known & (bands.recent >= self.config.left / 2)
        all_known, all_out = (one.sum(axis=1)[:, None, None] for one in (known, halfway))
        own = np.zeros(known.shape, dtype=np.bool_)
        for places in group_places(view.peer_groups(), cells.ranks, self.config.least_peers):
            told, out = known[:, places], halfway[:, places]
            count = told.sum(axis=-1, keepdims=True)
            share = shares_of(out, told)
            alone = share <= np.maximum(self.config.few, 1 / np.maximum(count, 1))
            others = all_known - count
            whole = (share >= 1 - self.config.few) & (others >= self.config.least_peers)
            whole &= all_out - out.sum(axis=-1, keepdims=True) <= self.config.few * others
            own[:, places] = out & (count >= self.config.least_peers) & (alone | whole)
        return own

    def _due(self, window: AttemptWindow, kept: Followed, bands: Bands, own: Marks) -> list[int]:
        """Places of ranks of which something is to be said: they are out since now, or it was said long ago."""
        known = np.maximum((bands.seen > self.config.bands.warm_up).sum(axis=0), 1)
        share = own.sum(axis=0) / known
        ranks, since, said = kept.cells.ranks, kept.since, kept.said
        # Who was out stays so until half of it is gone, so that what lies on the edge is not said again and again.
        out = [
            place
            for place in np.flatnonzero(share >= self.config.share / 2).tolist()
            if share[place] >= self.config.share or ranks[place] in since
        ]
        kept.since = {ranks[place]: since.get(ranks[place], window.start - self._delay(window)) for place in out}
        again = self.config.again
        kept.said = {ranks[place]: said.get(ranks[place], again - _SETTLES - 1) + 1 for place in out}
        return [place for place in out if kept.said[ranks[place]] >= again]

    def _delay(self, window: AttemptWindow) -> int:
        """How long a metric must have been out of its band until it is said to have left its past (ns)."""
        windows = math.log(1 - self.config.left) / math.log(1 - 1 / self.config.bands.last)
        return int(windows) * (window.end - window.start)

    def _together(
        self, view: AttemptView, kept: Followed, own: Marks, due: list[int]
    ) -> list[tuple[list[int], list[int]]]:
        """Places of ranks and rows that have left their past together, those with the most rows first.

        Most of a role or stage, or the ranks of a node, are together where any row is out on all of them; others where
        the same rows are.
        """
        ranks, left = kept.cells.ranks, set(due)
        at = {rank: place for place, rank in enumerate(ranks) if rank in kept.since}
        groups = [group for group in view.peer_groups() if any(at.get(rank) in left for rank in group)] if left else []
        of_group = [[at[rank] for rank in group if rank in at] for group in groups]
        most = [
            who for who, group in zip(of_group, groups, strict=True) if len(who) >= (1 - self.config.few) * len(group)
        ]
        of_node: dict[str, list[int]] = {}
        for rank, place in at.items():
            of_node.setdefault(view.node_of(rank), []).append(place)
        found = []
        for who in [*most, *(of_node[node] for node in sorted(of_node) if node)]:
            rows = np.flatnonzero(own[:, who].all(axis=1)).tolist()
            if rows and len(who) > 1 and left & set(who):
                found.append((who, rows))
                left -= set(who)
        alike: dict[bytes, list[int]] = {}
        for place in sorted(left):
            alike.setdefault(own[:, place].tobytes(), []).append(place)
        found += [(who, np.flatnonzero(own[:, who[0]]).tolist()) for who in alike.values()]
        return sorted(found, key=lambda one: (-len(one[1]), one))

    def _finding(
        self, view: AttemptView, window: AttemptWindow, kept: Followed, values: Matrix, who: list[int], rows: list[int]
    ) -> Anomaly:
        cells, of_node = kept.cells, kept is self.state.nodes
        ranks = [cells.ranks[place] for place in who]
        group = next(set(one) for one in view.peer_groups() if ranks[0] in one)
        peers = [place for place, rank in enumerate(cells.ranks) if rank in group and place not in who]
        readings = [
            Reading(cells.rows[row], float(median_of(values[row, who])), float(median_of(values[row, peers])))
            for row in rows
        ]
        known = int(np.isfinite(values[:, who[0]]).sum())
        told = said_nodes(view, ranks) if of_node else said_who(view, ranks)
        text = f"{len(rows)} of {known} metrics of {told} have left their past: {said_readings(readings)}"
        return self.anomaly(
            window,
            f"{'node' if of_node else 'rank'}|{'|'.join(map(str, ranks))}",
            onset=min(kept.since[rank] for rank in ranks),
            axis="time",
            layer="metric",
            symptom=symptom_now(view, window),
            area="unknown",
            grounds="left_past",
            severity="info",
            text=text,
            peers=f"few peers' metrics have; peers' median: {said_usual(readings)}" if peers else "few others' have",
            iteration=view.clock.iteration,
            phase=view.phase,
            about=on_nodes(view, ranks) if of_node else ranks,
        )
