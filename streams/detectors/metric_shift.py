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
from streams.bands import BandConfig, Bands
from streams.cells import Cells
from streams.checks import require
from streams.comparable import comparable
from streams.contrast import symptom_now, trains
from streams.detectors.registry import JobDetector, register
from streams.gauge_words import Reading, said_readings, said_usual, said_who
from streams.peer_groups import Matrix, places_of, shares_of
from streams.stall import over
from streams.view import AttemptView, AttemptWindow

Marks = NDArray[np.bool_]
_KEPT_AS: dict[str, type[np.generic]] = {
    "low": np.float32,
    "high": np.float32,
    "spread": np.float32,
    "seen": np.uint16,
    "recent": np.float16,
}
_MOST_SEEN = np.float32(65_535)


class MetricShiftConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A metric has left its past once it was out of its band for ``left`` of the present; a rank once ``share`` have.

    What more than a share of ``few`` of its peers do as well does not count, nor does anything without ``least_peers``.
    It is said again once the rank was back; at most ``most`` findings a window, those with the most metrics out.
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


class MetricShiftState(msgspec.Struct, kw_only=True):
    """The bands of each metric and rank; by rank since when it is out of them, and how many windows ago it was said."""

    cells: Cells = msgspec.field(default_factory=Cells)
    since: dict[int, int] = {}
    said: dict[int, int] = {}


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
        cells = self.state.cells
        values = cells.fit(comparable(window.gauges))
        bands = Bands(**{name: cells.plane(name, kind).astype(np.float32) for name, kind in _KEPT_AS.items()})
        usual = (bands.low + bands.high) / 2
        bands.take(values.astype(np.float32), self.config.bands)
        bands.seen = np.minimum(bands.seen, _MOST_SEEN)
        for name, kind in _KEPT_AS.items():
            cells.put(name, getattr(bands, name).astype(kind))
        own = self._own(view, bands, np.isfinite(values))
        due = self._due(window, bands, own)
        found = []
        for who in self._together(own, due)[: self.config.most]:
            self.state.said |= {cells.ranks[place]: 0 for place in who}
            found.append(self._finding(view, window, values, usual, own, who))
        return found

    def _own(self, view: AttemptView, bands: Bands, known: Marks) -> Marks:
        """Which metrics of each rank are out of their bands as only a few of its peers' are."""
        out = known & (bands.recent >= self.config.left)
        own = np.zeros(out.shape, dtype=np.bool_)
        for places in places_of(view.peer_groups(), self.state.cells.ranks, self.config.least_peers):
            block, told = out[:, places], known[:, places]
            few = np.maximum(self.config.few, 1 / np.maximum(told.sum(axis=-1, keepdims=True), 1))
            enough = told.sum(axis=-1, keepdims=True) >= self.config.least_peers
            own[:, places] = block & enough & (shares_of(block, told) <= few)
        return own

    def _due(self, window: AttemptWindow, bands: Bands, own: Marks) -> list[int]:
        """Places of ranks of which something is to be said: they are out since now, or it was said long ago."""
        known = np.maximum((bands.seen > self.config.bands.warm_up).sum(axis=0), 1)
        share = own.sum(axis=0) / known
        ranks, since, said = self.state.cells.ranks, self.state.since, self.state.said
        # Who was out stays so until half of it is gone, so that what lies on the edge is not said again and again.
        out = [
            place
            for place in np.flatnonzero(share >= self.config.share / 2).tolist()
            if share[place] >= self.config.share or ranks[place] in since
        ]
        self.state.since = {ranks[place]: since.get(ranks[place], window.start - self._delay(window)) for place in out}
        self.state.said = {ranks[place]: said[ranks[place]] + 1 for place in out if ranks[place] in said}
        return [place for place in out if self.state.said.get(ranks[place], self.config.again) >= self.config.again]

    def _delay(self, window: AttemptWindow) -> int:
        """How long a metric must have been out of its band until it is said to have left its past (ns)."""
        windows = math.log(1 - self.config.left) / math.log(1 - 1 / self.config.bands.last)
        return int(windows) * (window.end - window.start)

    def _together(self, own: Marks, due: list[int]) -> list[list[int]]:
        """Places of ranks whose same metrics have left their past, those with the most of them first."""
        alike: dict[bytes, list[int]] = {}
        for place in due:
            alike.setdefault(own[:, place].tobytes(), []).append(place)
        return sorted(alike.values(), key=lambda who: (-int(own[:, who[0]].sum()), who))

    def _finding(
        self, view: AttemptView, window: AttemptWindow, values: Matrix, usual: Matrix, own: Marks, who: list[int]
    ) -> Anomaly:
        cells = self.state.cells
        ranks = [cells.ranks[place] for place in who]
        rows = np.flatnonzero(own[:, who[0]]).tolist()
        readings = [
            Reading(cells.rows[row], float(np.median(values[row, who])), float(np.median(usual[row, who])))
            for row in rows
        ]
        known = int(np.isfinite(values[:, who[0]]).sum())
        text = (
            f"{len(rows)} of {known} metrics of {said_who(view, ranks)} have left their past: {said_readings(readings)}"
        )
        return self.anomaly(
            window,
            "|".join(map(str, ranks)),
            onset=min(self.state.since[rank] for rank in ranks),
            axis="time",
            layer="metric",
            symptom=symptom_now(view, window),
            area="unknown",
            grounds="left_past",
            severity="info",
            text=text,
            peers=f"before: {said_usual(readings)}; few peers' metrics have",
            iteration=view.clock.iteration,
            phase=view.phase,
            about=ranks,
        )
