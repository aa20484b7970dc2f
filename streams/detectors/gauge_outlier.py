"""Cross-rank outliers of sampled metrics, per window, with continuity: a rank unlike its peers for k of n windows.

In Minder's manner (2411.01791): metrics one by one, each rank by its distance from its peers, those metrics first that
say more, and the same rank again and again; without continuity its precision falls from .904 to .757. The distance is
that from the median in median deviations, which, unlike a sum of distances to all, has a scale by itself. Hardware
metrics are rarely the cause of slowness, so a finding only supports an incident.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from schemas.results import Anomaly
from streams.attempt_window import AttemptWindow
from streams.cells import Cells
from streams.checks import require
from streams.comparable import Comparable, Measured, ranks_compared
from streams.contrast import symptom_now
from streams.detectors.registry import JobDetector, register
from streams.gauge_words import Reading, said_nodes, said_readings, said_usual, said_who
from streams.metric_names import floors, priority
from streams.node_gauges import nodes_compared, on_nodes
from streams.peer_groups import Matrix, group_places, shares_of
from streams.robust import middle_of
from streams.stall import over
from streams.view import AttemptView

Bits = NDArray[np.uint8]
Sides = NDArray[np.int8]
_ONES = np.array([number.bit_count() for number in range(256)], dtype=np.uint8)
MOST_WINDOWS = 8


class GaugeOutlierConfig(msgspec.Struct, frozen=True, kw_only=True):
    """``mads`` from the peers' median, in ``k`` of the last ``n`` windows in which the rank was measured.

    Deviations have floors by unit, ``floor`` times those of ``streams/metric_names.py``. Groups of fewer than
    ``least_peers`` are not compared. What more than a share of ``few`` of a group shows is no outlier: a node of three
    may. What holds is said again after ``again`` windows, for an incident that begins later; at most ``most`` findings
    a window, those with the most telling metrics.
    """

    mads: float = 5.0
    floor: float = 1.0
    least_peers: int = 4
    few: float = 0.34
    k: int = 3
    n: int = 4
    again: int = 6
    most: int = 8

    def __post_init__(self) -> None:
        require(self, above_0=("mads", "floor", "least_peers", "k", "again", "most"), shares=("few",))
        if not self.k <= self.n <= MOST_WINDOWS:
            raise ValueError(f"k windows of n, at most {MOST_WINDOWS}: {self.k} of {self.n} cannot be")


class Followed(msgspec.Struct, kw_only=True):
    """By metric and rank a bit for each of the last windows, the latest lowest: was it ``high``, was it ``low``.

    ``said`` is how many windows ago that was said of a rank which still stands apart.
    """

    cells: Cells = msgspec.field(default_factory=Cells)
    said: dict[int, int] = {}


class GaugeOutlierState(msgspec.Struct, kw_only=True):
    """What is carried of ranks, and of nodes as such, each of which stands under its lowest rank."""

    ranks: Followed = msgspec.field(default_factory=Followed)
    nodes: Followed = msgspec.field(default_factory=Followed)


class _Apart(msgspec.Struct, frozen=True):
    """What a window shows in the place of the cells: values, the peers' medians, and who stands apart to which side."""

    values: Matrix
    usual: Matrix
    standing: Sides


@register
class GaugeOutlier(JobDetector[GaugeOutlierConfig, GaugeOutlierState]):
    """Contrasts what a window measured within peer groups, all metrics and ranks at once."""

    name = "gauge_outlier"
    version = 2
    supporting = True
    config_type = GaugeOutlierConfig
    state_type = GaugeOutlierState

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """One finding for each rank or node when one more of its metrics becomes continuous, and now and then again."""
        ranks = self._of(view, window, self.state.ranks, ranks_compared(view, window))
        nodes = self._of(view, window, self.state.nodes, nodes_compared(view, window))
        return [*ranks, *nodes]

    def _of(self, view: AttemptView, window: AttemptWindow, kept: Followed, seen: Comparable) -> list[Anomaly]:
        cells = kept.cells
        values = cells.fit(seen)
        if over(view) or not cells.rows:
            return []
        sides, usual = self._sides(
            cells, values, group_places(view.peer_groups(), cells.ranks, self.config.least_peers)
        )
        standing, fresh = self._continuous(cells, sides, np.isfinite(usual) & np.isfinite(values))
        apart = _Apart(values, usual, standing)
        told = self._subjects(view, cells, apart, self._due(kept, apart, fresh))[: self.config.most]
        kept.said |= {cells.ranks[place]: 0 for who, _ in told for place in who}
        return [self._finding(view, window, kept, apart, who, rows) for who, rows in told]

    def _due(self, kept: Followed, apart: _Apart, fresh: NDArray[np.bool_]) -> list[int]:
        """Places of ranks of which something is to be said."""
        ranks, before = kept.cells.ranks, kept.said
        held = np.flatnonzero((apart.standing != 0).any(axis=0)).tolist()
        anew: NDArray[np.bool_] = np.any(fresh, axis=0)
        kept.said = {ranks[place]: before[ranks[place]] + 1 for place in held if ranks[place] in before}
        return [p for p in held if anew[p] or kept.said.get(ranks[p], self.config.again) >= self.config.again]

    def _sides(self, cells: Cells, values: Matrix, batches: list[NDArray[np.int64]]) -> tuple[Sides, Matrix]:
        """Who is above (1) or below (-1) the peers, and the peers' medians; NaN where there are too few of them."""
        sides = np.zeros(values.shape, dtype=np.int8)
        usual = np.full(values.shape, np.nan)
        least = np.array([floors(row.unit) for row in cells.rows]) * self.config.floor
        for places in batches:
            block = values[:, places]
            known = np.isfinite(block)
            enough = known.sum(axis=-1, keepdims=True) >= self.config.least_peers
            center, deviation = middle_of(block, least[:, 0, None, None], least[:, 1, None, None])
            out = enough & known & (np.abs(block - center) > self.config.mads * deviation)
            out &= shares_of(out, known) <= self.config.few
            sides[:, places] = np.where(out, np.sign(block - center), 0)
            usual[:, places] = np.where(enough, center, np.nan)
        return sides, usual

    def _continuous(self, cells: Cells, sides: Sides, judged: NDArray[np.bool_]) -> tuple[Sides, NDArray[np.bool_]]:
        """Who stands apart in enough of the last windows, and who does since this one."""
        mask = (1 << self.config.n) - 1
        standing = np.zeros(sides.shape, dtype=np.int8)
        fresh = np.zeros(sides.shape, dtype=np.bool_)
        for name, side in (("high", 1), ("low", -1)):
            before: Bits = cells.plane(name, np.uint8)
            after = np.where(judged, (before << 1 | (sides == side)) & mask, before).astype(np.uint8)
            held = judged & (_ONES[after] >= self.config.k)
            standing[held] = side
            fresh |= held & (_ONES[before] < self.config.k) & (sides == side)
            cells.put(name, after)
        return standing, fresh

    def _subjects(
        self, view: AttemptView, cells: Cells, apart: _Apart, due: list[int]
    ) -> list[tuple[list[int], list[int]]]:
        """Places of ranks, and of the rows that they stand apart by: nodes as one, the most telling first."""
        left = apart.standing.copy()
        found = []
        nodes = {view.node_of(cells.ranks[place]) for place in due} - {""}
        of_node: dict[str, list[int]] = {}
        for place, rank in enumerate(cells.ranks if nodes else []):
            of_node.setdefault(view.node_of(rank), []).append(place)
        for node in sorted(nodes):
            who = of_node[node]
            first = apart.standing[:, who[0]]
            rows = np.flatnonzero((first != 0) & (apart.standing[:, who] == first[:, None]).all(axis=1))
            if len(who) > 1 and rows.size:
                found.append((who, rows.tolist()))
                left[rows[:, None], who] = 0
        alone = [place for place in due if left[:, place].any()]
        found += [([place], np.flatnonzero(left[:, place]).tolist()) for place in alone]
        return sorted(found, key=lambda one: (min(priority(cells.rows[row].name) for row in one[1]), one))

    def _finding(
        self, view: AttemptView, window: AttemptWindow, kept: Followed, apart: _Apart, who: list[int], rows: list[int]
    ) -> Anomaly:
        ranks = [kept.cells.ranks[place] for place in who]
        readings = [_reading(kept.cells.rows[row], apart, row, who) for row in rows]
        of_node = kept is self.state.nodes
        told = said_nodes(view, ranks) if of_node else said_who(view, ranks)
        return self.anomaly(
            window,
            f"{'node' if of_node else 'rank'}|{'|'.join(map(str, ranks))}",
            onset=window.start - (self.config.k - 1) * (window.end - window.start),
            axis="space",
            layer="metric",
            symptom=symptom_now(view, window),
            area="unknown",
            grounds="unlike_peers",
            severity="info",
            text=f"{told} unlike {'its' if len(ranks) == 1 else 'their'} peers "
            f"in {self.config.k} of {self.config.n} windows: {said_readings(readings)}",
            peers=f"peers' median: {said_usual(readings)}",
            iteration=view.clock.iteration,
            phase=view.phase,
            about=on_nodes(view, ranks) if of_node else ranks,
        )


def _reading(measured: Measured, apart: _Apart, row: int, who: list[int]) -> Reading:
    return Reading(measured, float(np.median(apart.values[row, who])), float(np.median(apart.usual[row, who])))
