"""Memory that grows without end: of a rank unlike its peers, or of all, which is the job's.

Resident and device memory of each rank over three spans, of minutes, half an hour and hours, so that a leak is found
whether it is fast or slow and whenever it begins. Not while training starts up, nor while a rank that joins does. What
grows for minutes only may be a cache that fills: that is information, unless memory soon ends. A rank is named only if
its peers are known not to grow.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from schemas.results import Anomaly
from streams.cells import Cells
from streams.checks import require
from streams.comparable import Comparable, Measured, ranks_compared
from streams.contrast import warming_up
from streams.detectors.registry import JobDetector, register
from streams.gauge_words import said_who
from streams.gauges import OWN
from streams.growth import Curves, growing, quarters_of, slope
from streams.lines.phases import QUIET_PHASES
from streams.metric_names import LONGEST, said_value
from streams.peer_groups import group_places
from streams.stall import over
from streams.view import AttemptView, AttemptWindow

STRIDES = (1, 8, 64)
"""How many windows each point of a span stands for."""
SECOND = 1_000_000_000
MOST_NAMED = 16
"""Where more ranks than that grow by themselves, it is the job's."""
SOON_S = 3600
LARGEST = 1e30
_MEMORY = re.compile(
    r"rss|resident|working_set|fb_used|(?:^|_)(?:u|p)ss(?:$|_)|mem(?:ory)?[._](?:used|usage)|memory_bytes|heap",
    re.IGNORECASE,
)
_NOT_OF_ONE = re.compile(r"percent|ratio|free|avail|limit|total|peak|max|^node_", re.IGNORECASE)
_FREE = re.compile(r"fb_free|mem(?:ory)?[._](?:free|avail)", re.IGNORECASE)
_LIMIT = re.compile(r"mem(?:ory)?.*limit|fb_total|memory[._]total", re.IGNORECASE)
Marks = NDArray[np.bool_]
Grounds = Literal["memory_growth", "memory_growth_of_all"]


class MemoryGrowthConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A span of ``points`` grows by ``share`` of its beginning and ``least_mib``.

    ``warm_up_windows`` of training do not count, where no iterations are known ``start_up_windows`` of the attempt, nor
    as many of a rank that came later.
    What more than a share of ``few`` of a rank's peers do is the job's; a peer that grows by ``quiet`` of it or more
    is not known not to.
    """

    points: int = 20
    share: float = 0.1
    least_mib: float = 16.0
    warm_up_windows: int = 6
    start_up_windows: int = 30
    few: float = 0.25
    quiet: float = 0.33

    def __post_init__(self) -> None:
        require(self, above_0=("share", "least_mib"), shares=("few", "quiet"))
        if self.points < 8:
            raise ValueError("memory_growth: points must be 8 or more")


class Growth(msgspec.Struct, frozen=True, kw_only=True):
    """One rank's memory that grows: from ``first`` to ``last`` since ``since``, by ``per_s``; ``left`` is free yet.

    ``own``: unlike its peers, who grew by ``usual``; else it stands for all its peers that grow, ``together`` so many.
    ``stride`` is that of the span.
    """

    rank: int
    measured: Measured
    stride: int
    since: int
    first: float
    last: float
    per_s: float
    own: bool
    together: int
    usual: float | None = None
    left: float | None = None


class MemoryGrowthState(msgspec.Struct, kw_only=True):
    """Points of each span, by stride: sums of the one that is not complete, the points, and the most before them.

    ``found`` is what each span showed when its latest point was complete.
    """

    cells: Cells = msgspec.field(default_factory=Cells)
    found: dict[int, list[Growth]] = {}


@register
class MemoryGrowth(JobDetector[MemoryGrowthConfig, MemoryGrowthState]):
    """Watches memory of processes and devices against its own past and against its peers'."""

    name = "memory_growth"
    config_type = MemoryGrowthConfig
    state_type = MemoryGrowthState

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """One finding in every window in which memory of somebody grows."""
        if over(view) or self._starts_up(view, window):
            return []
        seen = ranks_compared(view, window)
        values = self.state.cells.fit(_memory_of(seen))
        if view.phase in QUIET_PHASES:
            # A checkpoint and an evaluation hold what training does not.
            values[:] = np.nan
        values[:, self._joining(view, window)] = np.nan
        number = window.start // (window.end - window.start)
        for stride in STRIDES:
            self._add(stride, values)
            if (number + 1) % stride == 0:
                self._complete(view, window, seen, stride)
        found = self._latest(values)
        return [self._finding(view, window, found)] if found else []

    def _starts_up(self, view: AttemptView, window: AttemptWindow) -> bool:
        if view.clock.began is not None:
            return warming_up(view, window, self.config.warm_up_windows)
        return window.start < view.first + self.config.start_up_windows * (window.end - window.start)

    def _joining(self, view: AttemptView, window: AttemptWindow) -> list[int]:
        """Places of the ranks that came once training had begun, and not long ago; nothing tells when they train."""
        began = view.first if view.clock.began is None else view.clock.began
        since = max(began, window.start - self.config.start_up_windows * (window.end - window.start))
        ranks, members = self.state.cells.ranks, view.members
        return [at for at, rank in enumerate(ranks) if rank in members and members[rank].first_seen > since]

    def _add(self, stride: int, values: Curves) -> None:
        """Take a window's values into the point that is not complete: how many, and their sum."""
        cells, known = self.state.cells, np.isfinite(values)
        open_point = cells.plane(f"open {stride}", np.float32, 2)
        open_point[..., 0] += known
        open_point[..., 1] += np.clip(np.where(known, values, 0), 0, LARGEST)
        cells.put(f"open {stride}", open_point)

    def _complete(self, view: AttemptView, window: AttemptWindow, seen: Comparable, stride: int) -> None:
        """The point is complete: the oldest goes, and it is seen what grows."""
        cells = self.state.cells
        open_point = cells.plane(f"open {stride}", np.float32, 2)
        points = cells.plane(f"points {stride}", np.float32, self.config.points)
        peak = np.maximum(cells.plane(f"peak {stride}", np.float32), points[..., 0])
        points = np.roll(points, -1, axis=-1)
        points[..., -1] = open_point[..., 1] / np.maximum(open_point[..., 0], 1)
        cells.put(f"open {stride}", np.zeros_like(open_point))
        cells.put(f"points {stride}", points)
        cells.put(f"peak {stride}", peak)
        # No process has no memory: nothing was measured.
        curves = np.where(points > 0, points, np.nan).astype(np.float64)
        least = [self.config.least_mib * 2**20 if row.unit == "bytes" else 0.0 for row in cells.rows]
        grown = growing(curves, peak.astype(np.float64), self.config.share, np.array(least)[:, None])
        self.state.found[stride] = self._judged(view, window, seen, stride, curves, grown) if grown.any() else []

    def _judged(
        self, view: AttemptView, window: AttemptWindow, seen: Comparable, stride: int, curves: Curves, grown: Marks
    ) -> list[Growth]:
        """What grows, each with whether it does so unlike its peers."""
        cells, found = self.state.cells, []
        quarters = quarters_of(curves)
        rise = quarters[..., -1] - quarters[..., 0]
        since = window.end - stride * self.config.points * (window.end - window.start)
        column_of = {rank: at for at, rank in enumerate(seen.ranks)}
        for group in (group for places in group_places(view.peer_groups(), cells.ranks, 1) for group in places):
            for row in np.flatnonzero(grown[:, group].any(axis=1)).tolist():
                own, usual = self._apart(rise[row, group], grown[row, group])
                who = group[grown[row, group]]
                for place in (who if own else who[[np.argmax(rise[row, who])]]).tolist():
                    curve, measured, rank = curves[row, place], cells.rows[row], cells.ranks[place]
                    one = Growth(
                        rank=rank,
                        measured=measured,
                        stride=stride,
                        since=since,
                        first=float(quarters[row, place, 0]),
                        last=float(curve[-1]),
                        per_s=slope(curve) * SECOND / (stride * (window.end - window.start)),
                        own=own,
                        together=len(who),
                        usual=usual,
                        left=_left(seen, measured, column_of.get(rank), float(curve[-1])),
                    )
                    found.append(one)
        return found

    def _apart(self, rise: Curves, grown: Marks) -> tuple[bool, float | None]:
        """Whether those that grow do so unlike their peers, and how much these have grown; null where nobody knows."""
        others = rise[~grown & np.isfinite(rise)]
        if not others.size:
            return False, None
        known = others.size + int(grown.sum())
        calm = int((others < self.config.quiet * np.median(rise[grown])).sum())
        few = min(max(1, self.config.few * known), MOST_NAMED)
        own = grown.sum() <= few and calm >= (1 - self.config.few) * others.size
        return bool(own), float(np.median(others))

    def _latest(self, values: Curves) -> list[Growth]:
        """What grows by any span and was measured in this window, once; nobody's own where one span knows better."""
        cells = self.state.cells
        row_of = {row: at for at, row in enumerate(cells.rows)}
        place_of = {rank: at for at, rank in enumerate(cells.ranks)}
        latest: dict[tuple[Measured, int], Growth] = {}
        for stride in STRIDES:
            for one in self.state.found.get(stride, []):
                key, row, place = (one.measured, one.rank), row_of.get(one.measured), place_of.get(one.rank)
                if row is not None and place is not None and np.isfinite(values[row, place]):
                    own = one.own and latest.get(key, one).own
                    latest[key] = msgspec.structs.replace(one, own=own)
        return [latest[key] for key in sorted(latest)]

    def _finding(self, view: AttemptView, window: AttemptWindow, found: list[Growth]) -> Anomaly:
        """What grows now, what presses before the rest; of what single ranks and all do, the former says more."""
        pressing = [one for one in found if _presses(one)]
        presses, found = bool(pressing), pressing or found
        own = [one for one in found if one.own]
        ranks = sorted({one.rank for one in own}) if len({one.rank for one in own}) <= MOST_NAMED else []
        told = own if ranks else found
        most = max(told, key=lambda one: (one.last - one.first, -one.rank))
        name = most.measured.name + (f" ({most.measured.device})" if most.measured.device not in ("", OWN) else "")
        unit = most.measured.unit
        alike = sum(one.together for one in told if (one.measured, one.stride) == (most.measured, most.stride))
        who = said_who(view, ranks) if ranks else f"{alike} ranks" if alike > 1 else said_who(view, [most.rank])
        text = (
            f"{name} of {who} grows {'without end' if presses else 'for minutes'}: {said_value(most.first, unit)} "
            f"to {said_value(most.last, unit)} in {_said(most, window)}"
        )
        peers = "" if most.usual is None else f"those of its peers that do not grew by {said_value(most.usual, unit)}"
        grounds: Grounds = "memory_growth" if ranks else "memory_growth_of_all"
        return self.anomaly(
            window,
            grounds,
            onset=min(one.since for one in told),
            axis="time",
            layer="metric",
            symptom="memory",
            area="memory",
            grounds=grounds,
            severity="warning" if presses else "info",
            text=text,
            peers=peers,
            iteration=view.clock.iteration,
            phase=view.phase,
            suspects=[view.suspect(rank, 0.8, f"its {name} grows without end") for rank in ranks if presses],
            about=[] if presses else ranks,
        )


def _presses(one: Growth) -> bool:
    """Whether growth is more than caches that fill: it lasts, or memory soon ends."""
    return one.stride > 1 or (one.left is not None and 0 < one.left < SOON_S * one.per_s)


def _memory_of(seen: Comparable) -> Comparable:
    """The rows that are memory which a rank holds."""
    rows = [at for at, one in enumerate(seen.measured) if _is_held(one.name[:LONGEST])]
    return Comparable([seen.measured[at] for at in rows], seen.ranks, seen.values[rows])


@lru_cache(maxsize=4096)
def _is_held(name: str) -> bool:
    return _MEMORY.search(name) is not None and _NOT_OF_ONE.search(name) is None


def _left(seen: Comparable, measured: Measured, column: int | None, held: float) -> float | None:
    """How much memory is left where that was measured: what is free, or the limit less what is held."""
    left = []
    for at, one in enumerate(seen.measured):
        if column is None or one.device != measured.device or not np.isfinite(seen.values[at, column]):
            continue
        if _FREE.search(one.name[:LONGEST]):
            left.append(float(seen.values[at, column]))
        elif _LIMIT.search(one.name[:LONGEST]):
            left.append(float(seen.values[at, column]) - held)
    return min((one for one in left if one > 0), default=None)


def _said(one: Growth, window: AttemptWindow) -> str:
    """How long it has grown, how fast, and how long the rest lasts."""
    pace = f"{(window.end - one.since) / SECOND:.0f} s, {said_value(one.per_s * 3600, one.measured.unit)} an hour"
    if one.left is None or one.per_s <= 0:
        return pace
    return f"{pace}; at this pace nothing is left in {max(1, round(one.left / one.per_s / 60))} minutes"
