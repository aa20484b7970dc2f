"""A recording into a log: batches and ticks in event time, and prefixes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from producers.batches import Arrival
from producers.publish import MOST_TICKS, clock_of, publish, stream
from producers.recording import Inputs, Recording, merged, read_recording
from producers.times import SECOND
from rankwatch.publish import lateness, summary
from schemas.codec import decode, headers
from schemas.events import Batch, Event, Heartbeat, Metric
from schemas.identity import Identity
from schemas.ports import Entry
from schemas.topics import RAW_TOPICS
from streams.config import StreamConfig

SHARED = Path(__file__).resolve().parents[3] / "shared/data/recorded"
BASE = 1_795_975_833 * SECOND


class FakeLog:
    """A log of two partitions a topic."""

    def __init__(self) -> None:
        self.entries: dict[tuple[str, int], list[Entry]] = {(t, p): [] for t in RAW_TOPICS for p in (0, 1)}

    def partitions(self, topic: str) -> int:
        return 2

    def flush(self) -> None:
        """Memory is safe at once."""

    def append(
        self, topic: str, key: bytes, value: bytes, headers: Mapping[str, str], time: int, partition: int | None = None
    ) -> tuple[int, int]:
        chosen = len(key) % 2 if partition is None else partition
        into = self.entries[topic, chosen]
        into.append(Entry(len(into), key, value, dict(headers), time))
        return chosen, len(into) - 1

    def read(self, topic: str, partition: int, offset: int, limit: int) -> Sequence[Entry]:
        return self.entries[topic, partition][offset : offset + limit]

    def end(self, topic: str, partition: int) -> int:
        return len(self.entries[topic, partition])


def arrival(seq: int, second: float, event: Event, job: str = "j") -> Arrival:
    identity = Identity(job=job, rank=seq % 3, node="n")
    return Arrival(
        BASE + round(second * SECOND), Batch(producer="recorded", boot="0", seq=seq, identity=identity, events=[event])
    )


def recording(*seconds: float) -> Recording:
    arrivals = [
        arrival(n, s, Metric(time=BASE + round(s * SECOND), name="m", value=1.0)) for n, s in enumerate(seconds)
    ]
    return Recording(job="j", arrivals=arrivals, inputs=Inputs(files=1, records=len(arrivals), unused=[]))


def ticks(log: FakeLog, topic: str = "metrics", partition: int = 0) -> list[float]:
    entries = log.entries[topic, partition]
    return [(decode("tick", e.value).time - BASE) / SECOND for e in entries if e.headers["schema"] == "tick"]


def test_ticks_stand_in_every_partition_of_every_raw_topic_each_second() -> None:
    log = FakeLog()
    last = publish(recording(0.5, 2.5), log, until=None, closing_ns=2 * SECOND)
    assert last == BASE + 5 * SECOND
    assert {tuple(ticks(log, topic, partition)) for topic, partition in log.entries} == {(1, 2, 3, 4, 5)}


def test_the_first_tick_is_the_whole_second_after_the_first_arrival() -> None:
    log = FakeLog()
    publish(recording(3.0), log, until=None, closing_ns=0)
    assert ticks(log) == [4.0]


def test_a_batch_stands_before_the_first_tick_at_or_after_it() -> None:
    log = FakeLog()
    publish(recording(0.5, 2.0, 2.000000001), log, until=None, closing_ns=0)
    order = [e.headers["schema"] for p in (0, 1) for e in log.entries["metrics", p] if p == len(b"j|0") % 2]
    assert order == ["metric", "tick", "metric", "tick", "metric", "tick"]


def test_a_batch_goes_to_its_topic_with_key_headers_and_arrival_time() -> None:
    log = FakeLog()
    beat = Recording("j", [arrival(0, 0.5, Heartbeat(time=BASE, pids=[1]))], Inputs(1, 1, []))
    publish(beat, log, until=None, closing_ns=0)
    entry = log.entries["heartbeats", 1][0]
    assert (entry.key, entry.headers, entry.time) == (b"j|0", headers("heartbeat"), BASE + SECOND // 2)
    assert decode("heartbeat", entry.value) == beat.arrivals[0].batch


def cut(log: FakeLog, whole: FakeLog) -> bool:
    return all(entries == whole.entries[place][: len(entries)] for place, entries in log.entries.items())


@pytest.mark.parametrize("until", [-1.0, 0.5, 0.9, 1.0, 2.2, 2.5, 3.0, 6.9, 100.0])
def test_until_gives_a_prefix_of_the_whole(until: float) -> None:
    whole, part = FakeLog(), FakeLog()
    source = recording(0.5, 0.7, 1.0, 2.2, 2.4, 5.0)
    publish(source, whole, until=None, closing_ns=3 * SECOND)
    last = publish(source, part, until=BASE + round(until * SECOND), closing_ns=3 * SECOND)
    assert cut(part, whole)
    values = [e for place in part.entries for e in part.entries[place] if e.headers["schema"] == "metric"]
    assert sorted(e.time for e in values) == [a.time for a in source.arrivals if a.time <= BASE + until * SECOND]
    seen = ticks(part)
    assert seen == [second for second in range(1, 9) if second <= until]
    assert last == (BASE + round(seen[-1] * SECOND) if seen else 0)


def test_a_caller_can_act_between_ticks() -> None:
    log = FakeLog()
    lengths = [
        (time - BASE) // SECOND * 100 + log.end("logs", 0)
        for time in stream(recording(0.5, 2.5), log, until=None, closing_ns=0)
    ]
    assert lengths == [101, 202, 303]


def test_a_recording_of_days_has_a_bounded_number_of_ticks() -> None:
    log = FakeLog()
    publish(recording(0.5, 1_000_000.5), log, until=None, closing_ns=0)
    found = ticks(log)
    assert MOST_TICKS - 2 <= len(found) <= MOST_TICKS + 2 and found[1] - found[0] == 10


def test_an_empty_recording_appends_nothing() -> None:
    log = FakeLog()
    assert publish(Recording("j", [], Inputs(0, 0, [])), log, until=None, closing_ns=SECOND) == 0
    assert not any(log.entries.values())


@pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded jobs are not beside the project")
def test_a_recorded_job_cut_anywhere_is_a_prefix() -> None:
    source = read_recording(SHARED / "restart")
    whole = FakeLog()
    publish(source, whole, until=None, closing_ns=5 * SECOND)
    for share in (0.1, 0.5, 0.93):
        part = FakeLog()
        until = source.arrivals[0].time + int((source.arrivals[-1].time - source.arrivals[0].time) * share)
        publish(source, part, until=until, closing_ns=5 * SECOND)
        assert cut(part, whole) and 0 < part.end("metrics", 0) < whole.end("metrics", 0)


def test_of_a_silence_ticks_tell_the_beginning_and_the_last_second() -> None:
    log = FakeLog()
    publish_with = stream(recording(0.5, 100.0), log, until=None, closing_ns=2 * SECOND, silence_ns=3 * SECOND)
    assert len(list(publish_with)) == len(ticks(log))
    assert ticks(log) == [1, 2, 3, 99, 100, 101, 102]


def test_the_clock_of_a_log_is_its_latest_tick_whoever_came_last() -> None:
    log = FakeLog()
    assert clock_of(log) is None
    publish(recording(0.5, 20.5), log, until=None, closing_ns=0)
    assert clock_of(log) == BASE + 21 * SECOND
    log.append("jobs", b"", b"no tick", headers("tick"), 0, 0)
    log.append("jobs", b"", b"{}", {}, 0, 0)
    assert clock_of(log) == BASE + 21 * SECOND


def test_whoever_publishes_behind_the_clock_repeats_it() -> None:
    log = FakeLog()
    told = list(stream(recording(*range(700)), log, until=None, closing_ns=0, clock=BASE + 699 * SECOND))
    assert (told[0], told[-1]) == (BASE + SECOND, BASE + 699 * SECOND)
    assert set(ticks(log)) == {699}
    assert clock_of(log) == BASE + 699 * SECOND


@pytest.mark.parametrize(
    ("clock", "said"),
    [
        (None, ""),
        (-100, ""),
        (18.9, ""),
        (19, "what lies before is late"),
        (38.9, "what lies before is late"),
        (39, "all of it is late"),
    ],
)
def test_a_recording_behind_the_clock_is_warned_of_with_both_times_and_the_remedy(
    clock: float | None, said: str
) -> None:
    """The first window ends 7 seconds after ``BASE``; what lies in it is late 2 seconds later."""
    warning = lateness(recording(10.0, 30.0), None if clock is None else BASE + round(clock * SECOND), StreamConfig())
    assert (said in warning) if said else not warning
    if clock == 39:
        assert warning == (
            "the recording begins at 2026-11-29T18:10:43.000Z, but the clock of this deployment is at "
            "2026-11-29T18:11:12.000Z: all of it is late and makes no incident; make a deployment of its own: "
            "rankwatch topics create --topic-prefix NAME. --ticks publisher"
        )


def test_what_was_published_is_counted_in_records_and_batches_and_several_jobs_are_named() -> None:
    one = recording(0.5, 2.5)
    assert summary(one) == "published 2 records in 2 batches"
    other = Recording("k\x1b", [arrival(0, 1.0, Heartbeat(time=BASE, pids=[1]), "k\x1b")], Inputs(1, 1, []))
    assert summary(merged([other, one])) == "published 3 records in 3 batches of jobs j, k "
