"""Memory by metric and rank over three spans, of minutes, half an hour and hours: what of it grows, and whether alone.

Growth of half an hour or more counts from where it began, not from where a span begins: a leak is told by how long it
goes on at its pace, so of much memory a little a minute is one as well. A cache that fills slows down: what would end
before it has grown as much again, going on as it does, is taken for one. And where it is known that memory soon ends,
less growth is enough for a rank that is alone in it.
"""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from streams.cells import Cells
from streams.comparable import Comparable, Measured
from streams.config import SECOND
from streams.growth import Curves, growing, quarters_of, slope, to_come
from streams.metric_names import LONGEST
from streams.peer_groups import group_places

STRIDES = (1, 8, 64)
"""How many windows each point of a span stands for."""
MOST_NAMED = 16
"""Where more ranks than that grow by themselves, it is the job's."""
SOON_S = 3600
LARGEST = 1e30
STEADY = 0.8
"""Of the pace since it began, which what grows further still has."""
_LONGEST_HELD = 65_535
_MEMORY = re.compile(
    r"rss|resident|working_set|fb_used|(?:^|_)(?:u|p)ss(?:$|_)|mem(?:ory)?[._](?:used|usage)|memory_bytes|heap",
    re.IGNORECASE,
)
_NOT_OF_ONE = re.compile(r"percent|ratio|free|avail|limit|total|peak|max|^node_", re.IGNORECASE)
_FREE = re.compile(r"fb_free|mem(?:ory)?[._](?:free|avail)", re.IGNORECASE)
_LIMIT = re.compile(r"mem(?:ory)?.*limit|fb_total|memory[._]total", re.IGNORECASE)
Marks = NDArray[np.bool_]


class GrowthRule(msgspec.Struct, frozen=True, kw_only=True):
    """A span of ``points`` grows if it has since it began by ``share`` of what there was, and by ``least_mib`` in it.

    What more than a share of ``few`` of a rank's peers do is the job's; a peer that grows by ``quiet`` of it or more
    is not known not to.
    """

    points: int = 20
    share: float = 0.1
    least_mib: float = 16.0
    few: float = 0.25
    quiet: float = 0.33


class Growth(msgspec.Struct, frozen=True, kw_only=True):
    """One rank's memory that grows: from ``first`` to ``last`` since ``since``, by ``per_s``; ``left`` is free yet.

    ``own``: unlike its peers, who grew by ``usual``; else it stands for all its peers that grow, ``together`` so many.
    ``stride`` is that of the span. ``settles``: it slows down so that it will not take what is left.
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
    settles: bool = False

    @property
    def presses(self) -> bool:
        """Whether it is more than caches that fill: it lasts, or memory soon ends."""
        ends = self.left is not None and self.left < SOON_S * self.per_s and not self.settles
        return self.stride > 1 or ends


class MemorySpans(msgspec.Struct, kw_only=True):
    """Points of each span, by stride: sums of the one that is not complete, the points, and the most before them.

    ``base`` is what there was when growth began that still holds, 0 for none, and ``held`` for how many points it has.
    ``found`` is what each span showed when its latest point was complete.
    """

    cells: Cells = msgspec.field(default_factory=Cells)
    found: dict[int, list[Growth]] = {}


class _Span(msgspec.Struct, frozen=True):
    """One span, complete: the latest point ends at ``end``, each stands for ``point_ns``; matrices are [row, rank].

    ``settles`` is where less is to come than is ``left``.
    """

    stride: int
    point_ns: int
    end: int
    curves: Curves
    quarters: Curves
    base: Curves
    held: Curves
    left: Curves
    settles: Marks


class MemoryFollower:
    """Takes windows in, one after another; ``state`` moves on. ``groups`` are the ranks that are held together."""

    def __init__(self, state: MemorySpans, rule: GrowthRule) -> None:
        self._state = state
        self._rule = rule

    def take(self, values: Curves, seen: Comparable, start: int, end: int, groups: list[list[int]]) -> list[Growth]:
        """What grows, with one window's values in the place of the cells; NaN is what is not to be judged."""
        number = start // (end - start)
        for stride in STRIDES:
            self._add(stride, values)
            if (number + 1) % stride == 0:
                self._complete(stride, seen, start, end, groups)
        return self._latest(values)

    def _add(self, stride: int, values: Curves) -> None:
        """Take a window's values into the point that is not complete: how many, and their sum."""
        cells, known = self._state.cells, np.isfinite(values)
        open_point = cells.plane(f"open {stride}", np.float32, 2)
        open_point[..., 0] += known
        open_point[..., 1] += np.clip(np.where(known, values, 0), 0, LARGEST)
        cells.put(f"open {stride}", open_point)

    def _complete(self, stride: int, seen: Comparable, start: int, end: int, groups: list[list[int]]) -> None:
        """The point is complete: the oldest goes, and it is seen what grows."""
        cells = self._state.cells
        open_point = cells.plane(f"open {stride}", np.float32, 2)
        points = cells.plane(f"points {stride}", np.float32, self._rule.points)
        peak = np.maximum(cells.plane(f"peak {stride}", np.float32), points[..., 0])
        points = np.roll(points, -1, axis=-1)
        points[..., -1] = open_point[..., 1] / np.maximum(open_point[..., 0], 1)
        cells.put(f"open {stride}", np.zeros_like(open_point))
        cells.put(f"points {stride}", points)
        cells.put(f"peak {stride}", peak)
        # No process has no memory: nothing was measured.
        curves = np.where(points > 0, points, np.nan).astype(np.float64)
        least = [self._rule.least_mib * 2**20 if row.unit == "bytes" else 0.0 for row in cells.rows]
        shaped = growing(curves, peak.astype(np.float64), 0.0, np.array(least)[:, None])
        quarters = quarters_of(curves)
        base, held = self._since(stride, shaped, quarters)
        self._state.found[stride] = []
        if shaped.any():
            left = _left(cells, seen, curves[..., -1])
            settles = to_come(quarters) - (curves[..., -1] - quarters[..., -1]) < left
            span = _Span(stride, stride * (end - start), end, curves, quarters, base, held, left, settles)
            self._state.found[stride] = self._judged(span, shaped, groups)

    def _since(self, stride: int, shaped: Marks, quarters: Curves) -> tuple[Curves, Curves]:
        """What there was when the growth began that holds, and for how many points it has; a gap does not end it."""
        cells, gap = self._state.cells, np.isnan(quarters).any(axis=-1)
        base = cells.plane(f"base {stride}", np.float32).astype(np.float64)
        base = np.where(shaped & (base == 0), quarters[..., 0], np.where(shaped | gap, base, 0.0))
        held = cells.plane(f"held {stride}", np.uint16).astype(np.float64)
        held = np.where(base > 0, held + 1, 0.0)
        cells.put(f"base {stride}", base.astype(np.float32))
        cells.put(f"held {stride}", np.minimum(held, _LONGEST_HELD).astype(np.uint16))
        return base, held

    def _grown(self, span: _Span, shaped: Marks) -> tuple[Marks, Marks]:
        """What has grown enough of what has the shape of it, and what is pressing before: memory ends with it soon."""
        first, last = span.quarters[..., 0], span.quarters[..., -1]
        rise, total = last - first, last - span.base
        apart = 0.75 * self._rule.points
        with np.errstate(invalid="ignore"):
            grown = shaped & (rise >= self._rule.share * first)
            if span.stride == 1:
                return grown, np.zeros_like(shaped)
            steady = rise / apart >= STEADY * total / (apart + np.maximum(span.held - 1, 0))
            grown |= shaped & steady & (total >= self._rule.share * span.base)
            grown &= to_come(span.quarters) >= rise
            soon = shaped & ~span.settles & (span.left < rise / apart * SECOND / span.point_ns * SOON_S)
        return grown, soon

    def _judged(self, span: _Span, shaped: Marks, groups: list[list[int]]) -> list[Growth]:
        """What grows, each with whether it does so unlike its peers; what only presses has to."""
        grown, soon = self._grown(span, shaped)
        marks, found = grown | soon, []
        rise = span.quarters[..., -1] - span.quarters[..., 0]
        for group in (group for places in group_places(groups, self._state.cells.ranks, 1) for group in places):
            for row in np.flatnonzero(marks[:, group].any(axis=1)).tolist():
                own, usual = self._apart(rise[row, group], marks[row, group])
                who = group[(marks if own else grown)[row, group]]
                if who.size:
                    told = who if own else who[[np.argmax(rise[row, who])]]
                    found += [self._growth(span, row, place, own, who.size, usual) for place in told.tolist()]
        return found

    def _growth(self, span: _Span, row: int, place: int, own: bool, together: int, usual: float | None) -> Growth:
        cells, left = self._state.cells, float(span.left[row, place])
        return Growth(
            rank=cells.ranks[place],
            measured=cells.rows[row],
            stride=span.stride,
            since=span.end - int(self._rule.points + span.held[row, place] - 1) * span.point_ns,
            first=float(span.base[row, place]),
            last=float(span.curves[row, place, -1]),
            per_s=slope(span.curves[row, place]) * SECOND / span.point_ns,
            own=own,
            together=together,
            usual=usual,
            left=left if np.isfinite(left) else None,
            settles=bool(span.settles[row, place]),
        )

    def _apart(self, rise: Curves, grown: Marks) -> tuple[bool, float | None]:
        """Whether those that grow do so unlike their peers, and how much these have grown; null where nobody knows."""
        others = rise[~grown & np.isfinite(rise)]
        if not others.size:
            return False, None
        known = others.size + int(grown.sum())
        calm = int((others < self._rule.quiet * np.median(rise[grown])).sum())
        few = min(max(1, self._rule.few * known), MOST_NAMED)
        own = grown.sum() <= few and calm >= (1 - self._rule.few) * others.size
        return bool(own), float(np.median(others))

    def _latest(self, values: Curves) -> list[Growth]:
        """What grows by any span and was measured in this window, once; nobody's own where one span knows better."""
        cells = self._state.cells
        row_of = {row: at for at, row in enumerate(cells.rows)}
        place_of = {rank: at for at, rank in enumerate(cells.ranks)}
        latest: dict[tuple[Measured, int], Growth] = {}
        for stride in STRIDES:
            for one in self._state.found.get(stride, []):
                key, row, place = (one.measured, one.rank), row_of.get(one.measured), place_of.get(one.rank)
                if row is not None and place is not None and np.isfinite(values[row, place]):
                    own = one.own and latest.get(key, one).own
                    latest[key] = msgspec.structs.replace(one, own=own)
        return [latest[key] for key in sorted(latest)]


def memory_of(seen: Comparable, least: Curves) -> Comparable:
    """The rows that are memory which is held, without values in which a sample was 0: ``least`` [row, rank] tells it.

    What holds memory never holds none, so such a sample has failed, and the mean of the others is not known.
    """
    rows = [at for at, one in enumerate(seen.measured) if _is_held(one.name[:LONGEST])]
    values = np.where(least[rows] > 0, seen.values[rows], np.nan)
    return Comparable([seen.measured[at] for at in rows], seen.ranks, values)


@lru_cache(maxsize=4096)
def _is_held(name: str) -> bool:
    return _MEMORY.search(name) is not None and _NOT_OF_ONE.search(name) is None


def _left(cells: Cells, seen: Comparable, held: Curves) -> Curves:
    """How much is left in the place of the cells: what is free, or the limit less what is held; else infinite."""
    left = np.full(held.shape, np.inf)
    columns = np.searchsorted(cells.ranks, np.array(seen.ranks, dtype=np.int64))
    told = [(at, one) for at, one in enumerate(seen.measured) if _is_bound(one.name[:LONGEST])]
    for row, measured in enumerate(cells.rows):
        for at, one in told:
            if one.device == measured.device:
                free = seen.values[at] - (0 if _FREE.search(one.name[:LONGEST]) else held[row, columns])
                left[row, columns] = np.fmin(left[row, columns], np.where(free > 0, free, np.inf))
    return left


@lru_cache(maxsize=4096)
def _is_bound(name: str) -> bool:
    return _FREE.search(name) is not None or _LIMIT.search(name) is not None
