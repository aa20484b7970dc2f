"""Appends a recording to a log in event time, with the ticks that stand between its batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from producers.recording import Recording
from producers.times import SECOND
from schemas.codec import encode, headers, kind_of
from schemas.entries import read_entry
from schemas.events import Tick
from schemas.ports import Log
from schemas.topics import RAW_TOPIC_OF, RAW_TOPICS

MOST_TICKS = 100_000
"""Ticks of a recording; one that lasts longer has fewer than one a second."""

CLOCK_TOPIC = "jobs"
"""Where to look for the last tick: hardly anything else stands there."""

LOOKED_AT = 500
"""How many of its last entries to look at: publishers may have appended side by side."""


def clock_of(log: Log) -> int | None:
    """The time (ns) that the publishers of a deployment have brought it to; null if the log no longer shows it."""
    since = max(log.end(CLOCK_TOPIC, 0) - LOOKED_AT, 0)
    entries = log.read(CLOCK_TOPIC, 0, since, LOOKED_AT)
    read = [read_entry(entry, CLOCK_TOPIC, 0, "publisher") for entry in entries]
    return max((one[1].time for one in read if isinstance(one, tuple) and one[0] == "tick"), default=None)


def publish(recording: Recording, log: Log, *, until: int | None, closing_ns: int) -> int:
    """Appends all batches and ticks, as ``stream``; returns the time of the last tick in ns, 0 if there was none."""
    last = 0
    for time in stream(recording, log, until=until, closing_ns=closing_ns):
        last = time
    return last


def stream(
    recording: Recording,
    log: Log,
    *,
    until: int | None,
    closing_ns: int,
    silence_ns: int | None = None,
    clock: int | None = None,
) -> Iterator[int]:
    """Appends batches and ticks in order of event time; yields the time of each tick once it stands in all partitions.

    All batches that arrived up to a tick stand before it. After the last arrival ticks go on until one is
    ``closing_ns`` or more behind it. ``until`` (ns) cuts the log off there: what is appended is a prefix of the whole.
    Of a silence ticks tell ``silence_ns``, and its last second; null for all of it. Where the log's ``clock`` (ns) is
    ahead ticks repeat it: that changes nothing, and the last tick of the log stays its clock.
    """
    arrivals = recording.arrivals
    if not arrivals:
        return
    at = 0
    for tick in _ticks([arrival.time for arrival in arrivals], closing_ns, silence_ns):
        bound = tick if until is None else min(tick, until)
        while at < len(arrivals) and arrivals[at].time <= bound:
            _append(recording, at, log)
            at += 1
        if until is not None and tick > until:
            return
        _tick(log, max(tick, clock or 0))
        yield tick


def _ticks(times: Sequence[int], closing_ns: int, silence_ns: int | None) -> Iterator[int]:
    """Whole seconds after the first time, up to the first that is ``closing_ns`` or more behind the last.

    A silence is passed over in one step from ``silence_ns`` on, but for its last tick: batches are judged by the ticks
    around them, and these stay the same.
    """
    told = [_told(before, after, silence_ns) for before, after in pairwise(times)]
    step = max(1, -(-sum(told) // (SECOND * MOST_TICKS))) * SECOND
    tick = (times[0] // SECOND + 1) * SECOND
    for before, after in pairwise([*times, times[-1] + closing_ns]):
        while tick < after:
            yield tick
            tick += step
            if silence_ns is not None and tick > before + silence_ns:
                tick += max(after - 1 - tick, 0) // step * step
    yield tick


def _told(before: int, after: int, silence_ns: int | None) -> int:
    return after - before if silence_ns is None else min(after - before, silence_ns)


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
