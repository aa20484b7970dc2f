"""What a window says in columns: series by iteration, gauges, how far collectives have come and how long they took."""

from __future__ import annotations

import re
from math import prod

import msgspec

from schemas import events, results
from schemas.members import runs_of

LONGEST_SHAPE = 200
MOST_TOLD, MOST_RUNS = 64, 64
"""Of a group as each of its members says it: more ranks are told as runs, unless these are too many."""
MOST_AWAITED = 64
"""Sends and receives of a group that are told one by one."""
SHOWS_SENDS = "nccl"
"""The library whose flight recorder shows sends and receives: where it shows none, there are none."""
_SPELLED = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "long": "int64",
    "int": "int32",
    "byte": "uint8",
}
"""Types as C++ calls them, as Python does."""
_SENT = re.compile(r"send (?P<sender>\d{1,6})->(?P<receiver>\d{1,6})|recv (?P<to>\d{1,6})<-(?P<source>\d{1,6})")
MOST_OPERATIONS = 32
"""Operations of one kind, size and group in a window; of more the last ones are kept."""
MOST_KINDS = 32


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


def gauges_of(samples: dict[tuple[str, str], list[events.Metric]]) -> results.Gauges:
    """The samples by name and device, each in order of time, summed up; none is without any, and all are finite."""
    keys = sorted(samples)
    values = [[event.value for event in samples[key] if event.value is not None] for key in keys]
    return results.Gauges(
        names=[name for name, _ in keys],
        devices=[device for _, device in keys],
        units=[samples[key][0].unit for key in keys],
        counts=[len(own) for own in values],
        means=[sum(own) / len(own) for own in values],
        minima=[min(own) for own in values],
        maxima=[max(own) for own in values],
        firsts=[own[0] for own in values],
        lasts=[own[-1] for own in values],
    )


class Reached:
    """The operations of a worker in one window by group and dump; ``left_out`` counts sends and receives without room.

    Those of NCCL's inspector have ended, so they do not show how far the rank has come.
    """

    def __init__(self) -> None:
        self.left_out = 0
        self._found: dict[tuple[str, int], list[events.Collective]] = {}

    def take(self, event: events.Collective) -> None:
        """Take in an operation."""
        if event.tool != "inspector":
            self._found.setdefault((event.group, event.time), []).append(event)

    def states(self) -> list[results.CollectiveState]:
        """How far the rank had come in each group at each dump."""
        states = []
        for _, found in sorted(self._found.items()):
            awaits = _awaits(found)
            self.left_out += max(len(awaits) - MOST_AWAITED, 0)
            states.append(_reached(found, awaits[:MOST_AWAITED]))
        return states


def reached_of(found: list[events.Collective]) -> results.CollectiveState:
    """How far a rank had come in one group, from the operations that one dump shows of it."""
    return _reached(found, _awaits(found)[:MOST_AWAITED])


def _reached(found: list[events.Collective], awaits: list[tuple[int, int, int]]) -> results.CollectiveState:
    """Where RAS counted, no operation is known to be completed: it tells launches alone."""
    collective = [event for event in found if not event.point_to_point] or found
    last = max(collective, key=lambda event: (event.sequence, event.created))
    counted = last.tool == "ras"
    done = [event for event in collective if event.state == "completed" and not counted]
    latest = max(done, key=lambda event: (event.sequence, event.operation), default=None)
    waiting = [event for event in collective if event.state != "completed" and event.created]
    oldest = min(waiting, key=lambda event: (event.sequence, event.created), default=None)
    runs = runs_of(last.ranks) if len(last.ranks) > MOST_TOLD else []
    runs = runs if len(runs) <= MOST_RUNS else []
    return results.CollectiveState(
        group=last.group,
        captured=last.time,
        ranks=[] if runs else last.ranks,
        runs=runs,
        last_enqueued=last.sequence,
        last_completed=-1 if latest is None else latest.sequence,
        operation=last.operation,
        enqueued_at=last.created,
        outstanding=counted or any(event.state != "completed" for event in found),
        shows_sends=any(event.point_to_point or event.library == SHOWS_SENDS for event in found),
        only_sends=all(event.point_to_point for event in found),
        oldest=-1 if oldest is None else oldest.sequence,
        oldest_operation="" if oldest is None else oldest.operation,
        oldest_shape="" if oldest is None else _shape(oldest),
        oldest_at=0 if oldest is None else oldest.created,
        oldest_started=oldest is not None and oldest.state == "started",
        completed_operation="" if latest is None else latest.operation,
        awaits=awaits,
        inferred=last.time_source == "inferred",
        printed=counted,
        completed_known=not counted,
    )


def _shape(event: events.Collective) -> str:
    """Type and sizes of what the rank brings; empty where the dump does not tell sizes."""
    dtype = _SPELLED.get(event.dtype.lower(), event.dtype.lower())
    return f"{dtype} {event.input_sizes}"[:LONGEST_SHAPE] if any(event.input_sizes) else ""


def _awaits(found: list[events.Collective]) -> list[tuple[int, int, int]]:
    """Each pair once, with when the first of its operations was enqueued, the oldest first."""
    pairs: dict[tuple[int, int], int] = {}
    for event in found:
        told = _SENT.match(event.operation) if event.state != "completed" and event.point_to_point else None
        if told is not None:
            pair = int(told["sender"] or told["source"]), int(told["receiver"] or told["to"])
            pairs[pair] = min(event.created, pairs.get(pair, event.created))
    oldest = sorted(pairs.items(), key=lambda item: (item[1], item[0]))
    return [(sender, receiver, created) for (sender, receiver), created in oldest]


Kind = tuple[str, str, int, int]
"""Group, operation, size and peer, -1 for none."""


class Timed:
    """The operations of a worker in one window that say how long they took; ``left_out`` counts those without room."""

    def __init__(self) -> None:
        self.left_out = 0
        self._found: dict[Kind, dict[int, events.Collective]] = {}

    def take(self, event: events.Collective) -> None:
        """Take in an operation."""
        if not event.duration or event.state != "completed":
            return
        operation = event.operation.partition(" ")[0]
        kind = (event.group, operation, _size(event), -1 if event.peer is None else event.peer)
        if kind not in self._found and len(self._found) >= MOST_KINDS:
            self.left_out += 1
            return
        self._found.setdefault(kind, {})[event.sequence] = event

    def columns(self) -> list[results.OperationTimes]:
        """The last operations of each kind."""
        found = []
        for (group, operation, size, peer), own in sorted(self._found.items()):
            last = [own[sequence] for sequence in sorted(own)[-MOST_OPERATIONS:]]
            self.left_out += len(own) - len(last)
            found.append(
                results.OperationTimes(
                    group=group,
                    operation=operation,
                    size=size,
                    members=max(len(one.ranks) for one in last),
                    peer=None if peer < 0 else peer,
                    sequences=[one.sequence for one in last],
                    durations=[one.duration for one in last],
                    times=[one.time for one in last],
                )
            )
        return found


def _size(event: events.Collective) -> int:
    """The size in bytes, or as many elements where a flight recorder tells shapes."""
    return event.size or sum(prod(shape) for shape in event.input_sizes if shape) % 2**62
