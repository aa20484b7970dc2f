"""Open windows of one partition number: which window an event belongs to, what is late, what came twice.

Everything here is a function of the log: an event is on time if it stands before the first tick at or past its
window's end plus lateness *in its own partition*. Whether it comes from the future is judged by the ticks around it:
a batch that runs ahead of the tick before it waits for the one behind it, since time may only have had no teller. The
checkpoint holds what was true at the offsets to read on from, so that reading them again decides the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

import msgspec

from schemas.events import Batch, Event
from streams.config import StreamConfig
from streams.lines.facts import Facts

MARK_BYTES = 500
"""What it takes to remember that a batch was late, about."""


class Arrival(Enum):
    """What became of a batch's events."""

    BUFFERED = "buffered"
    LATE = "late"
    DUPLICATE = "duplicate"
    CLOSED = "closed"


Outcome = dict[Arrival, list[tuple[int, int]]]
"""(window number, event count) by what became of them."""


class Arrived(msgspec.Struct, frozen=True):
    """A batch as it stands in its topic; ``sent`` (ns) stands in for a tick before the first one, ``size`` in bytes.

    ``times`` are those of its events; ``facts`` those of its log lines, asked on arrival and when the window closes.
    """

    topic: str
    offset: int
    kind: str
    batch: Batch[Any]
    sent: int
    size: int
    times: list[int]
    facts: list[Facts]


class Held(msgspec.Struct, frozen=True):
    """A batch's events of one window, waiting for it to close; ``retimed`` has new times by index.

    ``facts`` are those of all lines of the batch, most of them shared with other lines. ``late`` counts events of the
    batch that came too late for their own windows while this one was the present.
    """

    topic: str
    offset: int
    kind: str
    batch: Batch[Any]
    facts: list[Facts]
    indices: Sequence[int]
    retimed: dict[int, int]
    size: int
    late: int = 0

    @property
    def events(self) -> list[Event]:
        """The events, in order of the batch, those re-timed with their new times."""
        batched = self.batch.events
        if not self.retimed:
            return batched if self.is_whole else [batched[index] for index in self.indices]
        return [_retimed(batched[index], self.retimed.get(index)) for index in self.indices]

    @property
    def lines(self) -> list[Facts]:
        """The facts of those of the events that are log lines: of all or of none."""
        return self.facts if self.is_whole or not self.facts else [self.facts[index] for index in self.indices]

    @property
    def is_whole(self) -> bool:
        """Whether these are all events of the batch."""
        return len(self.indices) == len(self.batch.events)


RETIMED_WITHIN_NS = 4_000_000_000
"""How far from when it was sent an event lies that took its time from the tick behind it.

Batches leave about once a second and ticks come once a second; what a spool held back for longer nobody can tell.
"""


def _retimed(event: Event, time: int | None) -> Event:
    """The event at its new time; how exact its own clock was says nothing of it."""
    if time is None:
        return event
    within = max(event.precision_ns, RETIMED_WITHIN_NS)
    return msgspec.structs.replace(event, time=time, time_source="inferred", precision_ns=within)


Name = tuple[str, str, str, int]
"""Topic, producer, boot and sequence number of a batch."""


class _Seen(msgspec.Struct, frozen=True):
    topic: str
    offset: int
    window: int


class Checkpoint(msgspec.Struct, frozen=True):
    """The buffer's memory as of the offsets it is read on from."""

    offsets: dict[str, int]
    watermarks: dict[str, int]
    closed: int | None
    seen: list[tuple[str, str, str, list[int]]]


class WindowBuffer:
    """Holds the events of open windows, by window number (time // window length)."""

    def __init__(self, topics: tuple[str, ...], config: StreamConfig) -> None:
        self._config = config
        self._topics = topics
        self._ticks: dict[str, list[tuple[int, int]]] = {topic: [] for topic in topics}
        self._watermarks: dict[str, int] = {}
        self._next: dict[str, int] = dict.fromkeys(topics, 0)
        self._open: dict[int, list[Held]] = {}
        self._early: dict[str, list[Arrived]] = {topic: [] for topic in topics}
        self._seen: dict[Name, _Seen] = {}
        self._seen_in: dict[int, list[Name]] = {}
        self.closed: int | None = None
        self.held_events = 0
        self.held_bytes = 0
        self._ahead_ns: dict[int, int] = {}

    @property
    def ahead_ns(self) -> int:
        """How far an event of the open windows ran ahead of its partition's ticks at most."""
        return max(self._ahead_ns.values(), default=0)

    @property
    def open_windows(self) -> int:
        """How many windows hold something and are not closed."""
        return len(self._open)

    def watermark(self, topic: str) -> int | None:
        """The latest tick of the topic, or null before the first."""
        return self._watermarks.get(topic)

    def next_offset(self, topic: str) -> int:
        """The offset behind the last entry taken in."""
        return self._next[topic]

    def placed_before(self, topic: str) -> int:
        """The offset before which it is known of every entry what became of it."""
        early = self._early[topic]
        return early[0].offset if early else self._next[topic]

    def tick(self, topic: str, offset: int, time: int) -> list[tuple[Arrived, Outcome]]:
        """Time has come to ``time`` in this topic; returns what became of the batches that waited for it."""
        early, self._early[topic] = self._early[topic], []
        self.held_bytes -= sum(one.size for one in early)
        present = max(time, self._watermarks.get(topic, time))
        placed = [(one, self._place(one, present)) for one in early]
        self._next[topic] = offset + 1
        if time > self._watermarks.get(topic, time - 1):
            self._watermarks[topic] = time
            self._ticks[topic].append((offset, time))
        return placed

    def skip(self, topic: str, offset: int) -> None:
        """An entry that holds nothing for windows."""
        self._next[topic] = offset + 1

    def add(self, arrived: Arrived) -> Outcome:
        """Take a batch in; returns what became of its events, nothing where that is not known before the next tick."""
        topic = arrived.topic
        self._next[topic] = arrived.offset + 1
        present = self._watermarks.get(topic, arrived.sent)
        latest = present + self._config.skew_ns
        if max(arrived.times, default=0) > latest:
            self._early[topic].append(arrived)
            self.held_bytes += arrived.size
            return {}
        return self._place(arrived, present)

    def _place(self, arrived: Arrived, present: int) -> Outcome:
        """Put events into their windows; those beyond ``present`` and the skew bound are re-timed to it."""
        topic, offset, kind, batch = arrived.topic, arrived.offset, arrived.kind, arrived.batch
        name = (topic, batch.producer, batch.boot, batch.seq)
        known = self._seen.get(name)
        if known is not None and not self._forgotten(known):
            return {Arrival.DUPLICATE: [(known.window, len(batch.events))]}
        by_window, retimed, ahead = self._placed(arrived.times, present)
        outcome: Outcome = {}
        for window, indices in sorted(by_window.items()):
            fate = self._fate(topic, window)
            if fate is Arrival.BUFFERED:
                moved = {index: retimed[index] for index in indices if index in retimed}
                share = arrived.size * len(indices) // len(batch.events)
                held = Held(topic, offset, kind, batch, arrived.facts, indices, moved, share)
                self._open.setdefault(window, []).append(held)
                self.held_events += len(indices)
                self.held_bytes += share
                self._ahead_ns[window] = max(self._ahead_ns.get(window, 0), ahead[window])
            outcome.setdefault(fate, []).append((window, len(indices)))
        late = sum(count for _, count in outcome.get(Arrival.LATE, ()))
        if late:
            # The window of the last tick is open, since it closes only a window's length and lateness later.
            here = self._watermarks[topic] // self._config.window_ns
            nothing = msgspec.structs.replace(batch, events=[])
            self._open.setdefault(here, []).append(Held(topic, offset, kind, nothing, [], [], {}, MARK_BYTES, late))
            self.held_bytes += MARK_BYTES
        if by_window:
            self._remember(name, _Seen(topic, offset, max(by_window)))
        return outcome

    def _placed(
        self, times: list[int], present: int
    ) -> tuple[Mapping[int, Sequence[int]], dict[int, int], dict[int, int]]:
        """Indices by window, new times by index, and by window how far one ran ahead of the present (ns)."""
        window_ns, latest = self._config.window_ns, present + self._config.skew_ns
        first, last = min(times, default=0), max(times, default=0)
        if times and last <= latest and first // window_ns == last // window_ns:
            # So it is with nearly every batch.
            return {first // window_ns: range(len(times))}, {}, {first // window_ns: last - present}
        by_window: dict[int, list[int]] = {}
        retimed: dict[int, int] = {}
        ahead: dict[int, int] = {}
        for index, time in enumerate(times):
            if time > latest:
                retimed[index] = present
            window = retimed.get(index, time) // window_ns
            by_window.setdefault(window, []).append(index)
            ahead[window] = max(ahead.get(window, 0), time - present)
        return by_window, retimed, ahead

    def _deadline(self, window: int) -> int:
        return (window + 1) * self._config.window_ns + self._config.lateness_ns

    def _fate(self, topic: str, window: int) -> Arrival:
        if self._watermarks.get(topic, -1) >= self._deadline(window):
            return Arrival.LATE
        if self.closed is not None and window <= self.closed:
            return Arrival.CLOSED
        return Arrival.BUFFERED

    def closable(self) -> int | None:
        """The next window that the ticks of all topics have passed, or null.

        Windows that hold nothing are passed over: the last of them stands for all, so a long gap costs nothing, and a
        partition without events reports its progress all the same.
        """
        if len(self._watermarks) < len(self._topics):
            return None
        low = min(self._watermarks.values())
        last = (low - self._config.lateness_ns) // self._config.window_ns - 1
        held = min((window for window in self._open if window <= last), default=None)
        if held is not None:
            return held
        return last if self.closed is None or last > self.closed else None

    def close(self, window: int) -> list[Held]:
        """Take out what the window held; it is closed from now on."""
        held = self._open.pop(window, [])
        self.held_events -= sum(len(part.indices) for part in held)
        self.held_bytes -= sum(part.size for part in held)
        self.closed = window
        self._ahead_ns.pop(window, None)
        # What is forgotten is a fact of the topic's own ticks; it stays in memory long enough to be told again.
        self._forget_before(window - 2 * self._config.remembered_windows)
        self._trim_ticks(self._offsets())
        return held

    def _remember(self, name: Name, seen: _Seen) -> None:
        self._seen[name] = seen
        self._seen_in.setdefault(seen.window, []).append(name)

    def _forget_before(self, oldest: int) -> None:
        for window in [one for one in self._seen_in if one < oldest]:
            for name in self._seen_in.pop(window):
                if name in self._seen and self._seen[name].window == window:
                    del self._seen[name]

    def _forgotten(self, seen: _Seen) -> bool:
        now = self._watermarks.get(seen.topic)
        return now is not None and seen.window < now // self._config.window_ns - self._config.remembered_windows

    def _offsets(self) -> dict[str, int]:
        """From where to read on: the first event of the oldest open window, by topic."""
        offsets = dict(self._next)
        for held in self._open.values():
            for part in held:
                offsets[part.topic] = min(offsets[part.topic], part.offset)
        for topic, early in self._early.items():
            if early:
                offsets[topic] = min(offsets[topic], early[0].offset)
        return offsets

    def _trim_ticks(self, offsets: dict[str, int]) -> dict[str, int]:
        """The watermarks as of ``offsets``; of the ticks before them only the last of each topic is kept."""
        watermarks: dict[str, int] = {}
        for topic, ticks in self._ticks.items():
            before = [time for offset, time in ticks if offset < offsets[topic]]
            if before:
                watermarks[topic] = before[-1]
            self._ticks[topic] = ticks[max(len(before) - 1, 0) :]
        return watermarks

    def checkpoint(self) -> Checkpoint:
        """What to remember at a window boundary, with the offsets to read on from."""
        offsets = self._offsets()
        watermarks = self._trim_ticks(offsets)
        seen: dict[tuple[str, str, str], list[tuple[int, int, int]]] = {}
        for (topic, producer, boot, seq), one in self._seen.items():
            if one.offset < offsets[topic]:
                seen.setdefault((topic, producer, boot), []).append((seq, one.offset, one.window))
        columns = [(*name, _steps(sorted(found))) for name, found in sorted(seen.items())]
        return Checkpoint(offsets, watermarks, self.closed, columns)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Begin again from a checkpoint; the caller reads on from its offsets.

        A topic that was none of ours when it was written is read from its beginning, one that is none any more is not.
        """
        self._next = {topic: checkpoint.offsets.get(topic, 0) for topic in self._topics}
        self._watermarks = {topic: time for topic, time in checkpoint.watermarks.items() if topic in self._next}
        self._ticks = {topic: [] for topic in self._topics}
        for topic, time in self._watermarks.items():
            self._ticks[topic].append((-1, time))
        self.closed = checkpoint.closed
        self._open = {}
        self._early = {topic: [] for topic in self._topics}
        self._ahead_ns = {}
        self.held_events = self.held_bytes = 0
        self._seen, self._seen_in = {}, {}
        for topic, producer, boot, steps in checkpoint.seen:
            for seq, offset, window in _unstepped(steps if topic in self._next else []):
                self._remember((topic, producer, boot, seq), _Seen(topic, offset, window))


def _steps(found: list[tuple[int, int, int]]) -> list[int]:
    """Rows as one list of differences from row to row: hundreds of thousands of them are written every few seconds."""
    last = (0, 0, 0)
    steps: list[int] = []
    for row in found:
        steps += [now - before for now, before in zip(row, last, strict=True)]
        last = row
    return steps


def _unstepped(steps: list[int]) -> Iterator[tuple[int, int, int]]:
    seq = offset = window = 0
    for at in range(0, len(steps), 3):
        seq, offset, window = seq + steps[at], offset + steps[at + 1], window + steps[at + 2]
        yield seq, offset, window
