"""Traces of PyTorch's profiler (Kineto), packed by gzip or not, reduced to sketches while they are read.

A trace is one object: ``schemaVersion``, ``distributedInfo`` with the rank, ``traceEvents``, ``baseTimeNanoseconds``.
Events are read one by one, so that a file of hundreds of megabytes takes no more memory than the columns of its calls.
It is one observation, made when its last call had ended.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from producers.captures import Captures
from producers.inputs import Unused
from producers.jsonstream import BrokenJsonError, JsonStream, head_of, opened
from producers.loaders import Loaders, Part, Thread
from producers.observations import Observation
from producers.owners import Owners
from producers.readers.kineto_calls import function_of, part_of, recorded_of, source_of
from producers.rows import Fields
from producers.scan import Source
from producers.segments import Collectives, Segments, Undivided, segments_of
from producers.sketch import MOST_CALLS, Calls, Kind, Sketch, Step
from producers.sole import sole
from producers.times import HOUR, possible
from schemas.events import Job, Profile, Timeline, TimeSource
from schemas.identity import MOST_RANKS

MOST_ENTRIES = 20_000_000
"""Events of a trace that are looked at, whatever they are."""
MOST_ODD = 0.01
"""Of the events of a trace: one that lacks more is no longer like the others'."""
UNTIMED = "nothing tells when the trace was taken; it counts from the beginning of the job"
_HEAD = 65_536
_FIRST = re.compile(
    r"\s{0,64}\{\s{0,64}\"(?:schemaVersion|traceEvents|distributedInfo|deviceProperties|displayTimeUnit|"
    r"baseTimeNanoseconds|traceName|trace_id|record_shapes|profile_memory|with_stack|with_flops|with_modules)\"\s{0,64}:"
)
_TELLING = ("traceEvents", "distributedInfo", "deviceProperties")
_LONGEST_NS = 24 * HOUR
_RANK = re.compile(r"(?:^|[^A-Za-z])(?:global_?)?rank[-_=]?(\d{1,7})(?!\d)", re.IGNORECASE)
_STEP = re.compile(r"ProfilerStep#(\d{1,15})$")
_PAIR = re.compile(r"send|recv|p2p", re.IGNORECASE)


class Trace(msgspec.Struct, frozen=True):
    """What a file holds: whose it says it is, its calls as a sketch, and when the last had ended (ns UTC).

    ``taken`` is null where the trace tells no time of day. ``recorded`` are the kinds of calls in it. ``alike`` is
    whether its process groups show that all ranks do the same work. ``segments`` are those of its steps;
    ``undivided`` says why there can be none.
    """

    file: str
    rank: int | None
    world_size: int | None
    taken: int | None
    sketch: Sketch
    calls: int
    recorded: str
    alike: bool
    unused: list[Unused]
    segments: list[Segments] = []
    undivided: str = ""


def recognised(source: Source) -> bool:
    """Whether a file begins like a trace of the profiler. Raises OSError."""
    head = head_of(source.path, _HEAD)
    return _FIRST.match(head) is not None and any(f'"{name}"' in head for name in _TELLING)


def read(source: Source) -> Trace:
    """The trace in a file. Raises OSError, and ValueError with the reason where it cannot be read.

    Nor is one read whose events do not all come: first those of the CPU are written, then those of the GPU, so that a
    part of a trace shows another critical path than the whole.
    """
    draft = _Draft()
    fault = ""
    with opened(source.path) as file:
        stream = JsonStream(file)
        try:
            for name, value in stream.members("traceEvents"):
                if not draft.take(name, value):
                    raise ValueError(f"a trace of more than {MOST_ENTRIES} events")
        except BrokenJsonError as error:
            fault = str(error)
            if not stream.ended:
                raise ValueError(f"a part of a trace, which is not like the whole: {fault}") from None
    return draft.trace(source.file, fault)


class _Draft:
    """A trace being read."""

    def __init__(self) -> None:
        self.calls = Calls()
        self.steps: list[Step] = []
        self.on_device: list[Step] = []
        self.collectives = Collectives()
        self.entries = 0
        self.odd = 0
        self.told: Fields = {}
        self.recorded: Counter[str] = Counter()
        self.loaders = Loaders()
        self.threads: set[Thread] = set()
        self._names: dict[tuple[str, str], tuple[str, Kind, bool, Part] | None] = {}

    def take(self, name: str, value: Any) -> bool:
        """Take in a member, or an event; returns whether there may be more."""
        self.entries += 1
        if name != "traceEvents":
            if name in ("distributedInfo", "baseTimeNanoseconds"):
                self.told[name] = value
        elif not isinstance(value, dict):
            self.odd += 1
        elif value.get("ph") == "X":
            self._call(value)
        return self.entries < MOST_ENTRIES

    def _call(self, event: Fields) -> None:
        name, category = event.get("name"), event.get("cat")
        if not isinstance(name, str) or not isinstance(category, str):
            self.odd += 1
            return
        start, duration = _nanoseconds(event.get("ts")), _nanoseconds(event.get("dur", 0))
        if start is None or duration is None or duration > _LONGEST_NS:
            self.odd += 1
            return
        step = _STEP.match(name)
        if step is not None and category in ("user_annotation", "gpu_user_annotation"):
            annotated = self.steps if category == "user_annotation" else self.on_device
            annotated.append(Step(start, start + duration, int(step.group(1))))
            if category == "user_annotation":
                self.threads.add(_thread(event))
            name = "ProfilerStep"
        function = self._function(name, category)
        if function is not None:
            said, kind, device, part = function
            if part and not device:
                self.loaders.take(part, _thread(event), start, start + duration, len(self.calls))
            self.recorded[source_of(category.lower())] += 1
            self.calls.add(said, kind, start, start + duration, device=device)
            told = event.get("args")
            told = told if isinstance(told, dict) else {}
            if device and kind == "collective":
                self.collectives.ran(name, start, start + duration, told)
            elif kind == "os":
                self.collectives.launched(told.get("correlation"), start)

    def _function(self, name: str, category: str) -> tuple[str, Kind, bool, Part] | None:
        """How a function is called, what it is and what it tells of loading.

        Null for what is no call, as spans of annotations on the device.
        """
        key = (name, category)
        found = self._names.get(key)
        if found is None and key not in self._names:
            function = function_of(name, category)
            found = None if function is None else (*function, part_of(name, function[1]))
            # Names with numbers in them may be without end; such are looked at again each time.
            if len(self._names) < 100_000:
                self._names[key] = found
        return found

    def trace(self, file: str, fault: str) -> Trace:
        """The trace. Raises ValueError where there is none."""
        if self.calls.left_out:
            raise ValueError(f"a trace of more than {MOST_CALLS} calls")
        if self.odd > MOST_ODD * (self.odd + len(self.calls)):
            raise ValueError(f"a trace of which {self.odd} events have no name, no category or no possible time")
        for wait, loader in self.loaders.waits(self.threads):
            self.calls.hold(wait, loader)
        sketch = self.calls.sketch(self.steps)
        if sketch is None:
            raise ValueError("a trace without calls of functions or kernels")
        unused = []
        if fault:
            unused.append(Unused(file, 0, f"what stands behind the events of the trace cannot be read: {fault}"))
        if self.odd:
            unused.append(Unused(file, 0, "events without a name, a category or a possible time", self.odd))
        info = self.told.get("distributedInfo")
        rank, world = _place(info)
        talks = {name for name, kind in self.calls.names() if kind == "collective"}
        alike = bool(talks) and not any(_PAIR.search(name) for name in talks) and _has_one_group(info, world)
        taken, recorded = _moment(sketch.end, self.told), ",".join(recorded_of(self.recorded))
        segments, undivided = self._segments(world, alike)
        calls = len(self.calls)
        return Trace(file, rank, world, taken, sketch, calls, recorded, alike, unused, segments, undivided)

    def _segments(self, world: int | None, alike: bool) -> tuple[list[Segments], str]:
        """The segments of its steps, and why there are none where there might be."""
        if not self.steps or not self.collectives.found:
            return [], ""
        try:
            found, communication = self.collectives, self.calls.communication
            return segments_of(found, self.steps, self.on_device, communication, world, alike), ""
        except Undivided as reason:
            return [], str(reason)


def _nanoseconds(value: Any) -> int | None:
    """Microseconds, whole or not, as nanoseconds; null for what cannot be."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return round(value * 1_000) if 0 <= value < 9e15 else None


def _thread(event: Fields) -> Thread:
    """Process and thread of a call, as they are written."""
    return str(event.get("pid"))[:40], str(event.get("tid"))[:40]


def _moment(time: int, told: Fields) -> int | None:
    """A time of the trace in ns UTC: times count from a base where one is told."""
    base = told.get("baseTimeNanoseconds", 0)
    if isinstance(base, bool) or not isinstance(base, int):
        return None
    return base + time if possible(base + time) else None


def _place(info: Any) -> tuple[int | None, int | None]:
    """Rank and world size, null where they cannot be."""
    fields = info if isinstance(info, dict) else {}
    rank, world = (
        value if isinstance(value, int) and not isinstance(value, bool) and low <= value < MOST_RANKS else None
        for value, low in ((fields.get("rank"), 0), (fields.get("world_size"), 1))
    )
    if rank is not None and world is not None and rank >= world:
        return None, None
    return rank, world


def _has_one_group(info: Any, world: int | None) -> bool:
    """Whether all process groups are listed and each has all ranks: then no rank has a stage or a part of its own.

    Stages may talk over a group of all ranks as well, but not without sends and receives.
    """
    listed = info.get("pg_config") if isinstance(info, dict) else None
    if world is None or not isinstance(listed, list) or not listed or info.get("pg_count") != len(listed):
        return False
    return all(isinstance(one, dict) and one.get("pg_size") == world for one in listed)


def observe(
    traces: Sequence[Trace], captures: Captures, owners: Owners, span: tuple[int, int]
) -> Iterable[Observation | Unused]:
    """Each trace's functions when it was taken; ``span`` are the first and last time of the recording."""
    seen: dict[tuple[bytes, int], str] = {}
    for trace in traces:
        yield from _observe(trace, captures, owners, span, seen)
    # One trace alone is never held against others, whatever can be told of it.
    undivided = Counter(trace.undivided for trace in traces if trace.undivided and len(traces) > 1)
    for reason, count in sorted(undivided.items()):
        first = next(trace.file for trace in traces if trace.undivided == reason)
        yield Unused(first, 0, f"steps cannot be divided into own work and waiting: {reason}", count)


def _observe(
    trace: Trace,
    captures: Captures,
    owners: Owners,
    span: tuple[int, int],
    seen: dict[tuple[bytes, int], str],
) -> Iterable[Observation | Unused]:
    rows = captures.of(trace.file)
    by_table = {row.integer("rank") for row in rows} - {None}
    by_name = {int(found) for found in _RANK.findall(trace.file.rpartition("/")[2])}
    told = [*({trace.rank} - {None}), *by_table]
    ranks = set(told) or by_name
    rank = sole(ranks)
    if len(ranks) > 1:
        listed = ", ".join(str(one) for one in sorted(one for one in ranks if one is not None))
        yield Unused(trace.file, 0, f"sources disagree about the rank: {listed}")
    elif not ranks:
        yield Unused(trace.file, 0, "nothing tells whose the trace is; distributedInfo or a name as rank3.json would")
    time, precision = trace.taken, 0
    source: TimeSource = "captured"
    if time is None and rows:
        time = max(row.time for row in rows)
    if time is None:
        start, end = span
        time, source, precision = start, "inferred", min(max(end - start, 0), HOUR)
        yield Unused(trace.file, 0, UNTIMED)
    identity = owners.of_rank(trace.file, rank, time)
    place = (msgspec.json.encode(identity, order="deterministic"), time)
    if place in seen:
        yield Unused(trace.file, 0, f"taken when {seen[place]} was, and of the same rank; one of the two is used")
        return
    seen[place] = trace.file
    if trace.alike and rank is not None:
        known = Job(time=time, time_source=source, precision_ns=precision, layout={"pp": 1})
        yield Observation(identity, time, known, trace.file, 0)
    events = [*_events(trace, time, source, precision), *_timelines(trace, time, source, precision)]
    for number, event in enumerate(events):
        yield Observation(identity, time, event, trace.file, number)


def _events(trace: Trace, time: int, source: TimeSource, precision: int) -> Iterable[Profile]:
    sketch = trace.sketch
    for one in sketch.functions:
        yield Profile(
            time=time,
            time_source=source,
            precision_ns=precision,
            name=one.name,
            kind=one.kind,
            share=one.share,
            mean=one.mean,
            spread=one.spread,
            count=one.count,
            typical=one.typical,
            unrest=one.unrest,
            duration=sketch.end - sketch.start,
            steps=sketch.steps,
            first_step=sketch.first_step,
            world_size=trace.world_size,
            unlisted=sketch.unlisted,
            recorded=trace.recorded,
        )


def _timelines(trace: Trace, time: int, source: TimeSource, precision: int) -> Iterable[Timeline]:
    for one in trace.segments:
        names = sorted(set(one.names))
        yield Timeline(
            time=time,
            time_source=source,
            precision_ns=precision,
            iteration=one.step,
            names=names,
            operations=[names.index(name) for name in one.names],
            starts=one.starts,
            durations=one.durations,
            microbatches=[at // 2 for at in range(len(one.names))],
            members=trace.world_size or 0,
            recorded=trace.recorded,
        )
