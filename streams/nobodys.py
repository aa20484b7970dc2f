"""What workers print whose rank nobody knows, as the job's own word: that of one rank without a number.

A file in which no line proves a rank may be of any of them, or of all. Losses, gradient norms and the time of a step
are the same on all ranks that train together, so it does not matter whose word it is. It is one word, however many such
files and writers there are: of one iteration the median of what is told, and what was told before is not told again. It
counts only for what no rank prints itself, is nobody's peer, and nobody is missed for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from statistics import median

import msgspec

from schemas.identity import Identity, said_ranks
from schemas.results import Series, Window

NOBODY = -1
"""Stands where a rank's number does. It is no rank, and is never named."""
MOST_NAMES = 512
"""Series that are followed; what invents names must not fill the memory."""
PATIENCE_WINDOWS = 3
"""Windows without a new iteration after which lower numbers are of training that began again, not of who is late."""
Point = tuple[int, int, float | None, str, str]
"""Iteration, time, value, what it is where it is no finite number, unit."""


class Nobodys(msgspec.Struct, kw_only=True):
    """By series its latest iteration and the end of the window in which that came.

    ``ranks`` are the series that ranks print as well.
    """

    latest: dict[str, tuple[int, int]] = {}
    ranks: list[str] = []

    def take(self, summaries: list[Window], printed: Collection[str]) -> Window | None:
        """One window of all workers without a rank, in any order, as one worker's; null where they tell nothing.

        ``printed`` are the names of the series that ranks print in this window.
        """
        if not summaries:
            return None
        by_name = _points(summaries)
        self.ranks = sorted({*self.ranks, *(by_name.keys() & printed)})[:MOST_NAMES]
        end = summaries[0].end
        series = []
        for name in sorted(by_name.keys() - set(self.ranks)):
            if name not in self.latest and len(self.latest) >= MOST_NAMES:
                continue
            points = self._new(name, by_name[name], end - summaries[0].start, end)
            if points:
                series.append(_series(name, points))
        return _as_one(summaries, series)

    def _new(self, name: str, points: list[Point], window_ns: int, end: int) -> list[Point]:
        """Of each iteration that was not told before one point."""
        before, told = self.latest.get(name, (-1, end))
        new = [point for point in points if point[0] > before]
        if not new and end - told > PATIENCE_WINDOWS * window_ns:
            new = [point for point in points if point[0] < before]
        if new:
            self.latest[name] = max(point[0] for point in new), end
        return list(_merged(new))


def said_of(ranks: Iterable[int]) -> str:
    """Ranks in a sentence, where one may be nobody known."""
    listed = set(ranks)
    if NOBODY not in listed:
        return said_ranks(listed)
    nobody = "a worker whose rank is not known"
    return f"{said_ranks(listed - {NOBODY})} and {nobody}" if len(listed) > 1 else nobody


def _points(summaries: Iterable[Window]) -> dict[str, list[Point]]:
    found: dict[str, list[Point]] = {}
    for summary in summaries:
        for series in summary.reported:
            reasons = dict(series.nonfinite)
            found.setdefault(series.name, []).extend(
                (at, time, value, reasons.get(at, "") if value is None else "", series.unit)
                for at, time, value in zip(series.iterations, series.times, series.values, strict=True)
            )
    return found


def _merged(points: list[Point]) -> Iterator[Point]:
    """One point an iteration: its first time, the median; no finite number as soon as one is none."""
    together: dict[int, list[Point]] = {}
    for point in points:
        together.setdefault(point[0], []).append(point)
    for iteration, found in sorted(together.items()):
        values = [value for _, _, value, _, _ in found if value is not None]
        whole = len(values) == len(found)
        reason = min((reason for _, _, value, reason, _ in found if value is None), default="")
        time, unit = min(point[1] for point in found), min(point[4] for point in found)
        yield iteration, time, median(values) if whole else None, reason, unit


def _series(name: str, points: list[Point]) -> Series:
    return Series(
        name=name,
        unit=points[0][4],
        iterations=[point[0] for point in points],
        times=[point[1] for point in points],
        values=[point[2] for point in points],
        nonfinite=[(point[0], point[3]) for point in points if point[3]],
    )


def _as_one(summaries: list[Window], series: list[Series]) -> Window | None:
    latest = max(((one.iterations[-1], one.times[-1]) for one in series), default=(None, None))
    turned = [one for one in summaries if one.phase_time is not None]
    phase = max(turned or summaries, key=lambda one: (one.phase_time or 0, one.phase)).phase
    first = summaries[0]
    return Window(
        id="",
        identity=Identity(job=first.identity.job, attempt=first.identity.attempt, rank=NOBODY),
        start=first.start,
        end=first.end,
        phase=phase,
        phase_time=max((one.phase_time for one in turned if one.phase_time is not None), default=None),
        iteration=latest[0],
        iteration_time=latest[1],
        iteration_within_ns=max(
            (one.iteration_within_ns for one in summaries if one.iteration == latest[0]), default=0
        ),
        total_iterations=max((one.total_iterations or 0 for one in summaries), default=0) or None,
        series=series,
        finished=min((one.finished for one in summaries if one.finished is not None), default=None),
    )
