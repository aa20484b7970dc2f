"""Appends a recording to a log in event time, with the ticks that stand between its batches."""

from __future__ import annotations

from collections.abc import Iterator

from producers.recording import Recording
from producers.times import SECOND
from schemas.codec import encode, headers, kind_of
from schemas.events import Tick
from schemas.ports import Log
from schemas.topics import RAW_TOPIC_OF, RAW_TOPICS

MOST_TICKS = 100_000
"""Ticks of a recording; one that lasts longer has fewer than one a second."""


def publish(recording: Recording, log: Log, *, until: int | None, closing_ns: int) -> int:
    """Appends all batches and ticks, as ``stream``; returns the time of the last tick in ns, 0 if there was none."""
    last = 0
    for time in stream(recording, log, until=until, closing_ns=closing_ns):
        last = time
    return last


def stream(recording: Recording, log: Log, *, until: int | None, closing_ns: int) -> Iterator[int]:
    """Appends batches and ticks in order of event time; yields the time of each tick once it stands in all partitions.

    All batches that arrived up to a tick stand before it. After the last arrival ticks go on until one is
    ``closing_ns`` or more behind it. ``until`` (ns) cuts the log off there: what is appended is a prefix of the whole.
    """
    arrivals = recording.arrivals
    if not arrivals:
        return
    end = arrivals[-1].time + closing_ns
    at = 0
    for tick in _ticks(arrivals[0].time, arrivals[-1].time, end):
        bound = tick if until is None else min(tick, until)
        while at < len(arrivals) and arrivals[at].time <= bound:
            _append(recording, at, log)
            at += 1
        if until is not None and tick > until:
            return
        _tick(log, tick)
        yield tick


def _ticks(first: int, last: int, end: int) -> Iterator[int]:
    """Whole seconds after ``first``, up to the first at or beyond ``end``."""
    step = max(1, -(-(last - first) // (SECOND * MOST_TICKS))) * SECOND
    tick = (first // SECOND + 1) * SECOND
    while tick < end:
        yield tick
        tick += step
    yield tick


def _append(recording: Recording, at: int, log: Log) -> None:
    arrival = recording.arrivals[at]
    kind = kind_of(arrival.batch.events[0])
    key = arrival.batch.identity.key.encode("utf-8")
    log.append(RAW_TOPIC_OF[kind], key, encode(arrival.batch), headers(kind), arrival.time)


def _tick(log: Log, time: int) -> None:
    value, described = encode(Tick(time=time)), headers("tick")
    for topic in RAW_TOPICS:
        for partition in range(log.partitions(topic)):
            log.append(topic, b"", value, described, time, partition)
