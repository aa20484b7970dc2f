"""What a window says in columns: series by iteration, gauges, how far collectives have come."""

from __future__ import annotations

import msgspec

from schemas import events, results

LONGEST_SHAPE = 200


class Point(msgspec.Struct, frozen=True):
    """One reading at an iteration."""

    iteration: int
    time: int
    value: float | None
    nonfinite: str
    unit: str


def series_of(name: str, points: list[Point]) -> results.Series:
    """The points of one metric as columns, by iteration."""
    ordered = sorted(points, key=lambda point: (point.iteration, point.time))
    return results.Series(
        name=name,
        unit=ordered[0].unit,
        iterations=[point.iteration for point in ordered],
        times=[point.time for point in ordered],
        values=[point.value for point in ordered],
        nonfinite=[(point.iteration, point.nonfinite) for point in ordered if point.nonfinite],
    )


def gauge_of(name: str, device: str, found: list[events.Metric]) -> results.Gauge:
    """The samples of one metric, in order of time, summed up; there is at least one, and all are finite."""
    values: list[float] = [event.value for event in found if event.value is not None]
    return results.Gauge(
        name=name,
        unit=found[0].unit,
        device=device or None,
        count=len(values),
        mean=sum(values) / len(values),
        minimum=min(values),
        maximum=max(values),
        first=values[0],
        last=values[-1],
    )


def reached_of(found: list[events.Collective]) -> results.CollectiveState:
    """How far a rank had come in one group, from the operations that one dump shows of it."""
    collective = [event for event in found if not event.point_to_point] or found
    last = max(collective, key=lambda event: (event.sequence, event.created))
    done = [event.sequence for event in collective if event.state == "completed"]
    completed = max(done, default=-1)
    waiting = [event for event in collective if event.state != "completed" and event.created]
    oldest = min(waiting, key=lambda event: (event.sequence, event.created), default=None)
    return results.CollectiveState(
        group=last.group,
        captured=last.time,
        ranks=last.ranks,
        last_enqueued=last.sequence,
        last_completed=completed,
        operation=last.operation,
        enqueued_at=last.created,
        outstanding=any(event.state != "completed" for event in found),
        shows_sends=any(event.point_to_point for event in found),
        only_sends=all(event.point_to_point for event in found),
        oldest=-1 if oldest is None else oldest.sequence,
        oldest_operation="" if oldest is None else oldest.operation,
        oldest_shape="" if oldest is None else f"{oldest.dtype} {oldest.input_sizes}"[:LONGEST_SHAPE],
        oldest_at=0 if oldest is None else oldest.created,
        inferred=last.time_source == "inferred",
        oldest_started=oldest is not None and oldest.state == "started",
    )
