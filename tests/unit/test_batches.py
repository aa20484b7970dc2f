"""Observations into batches: bounded, in order, numbered without gaps, and never taken for another recording's."""

from __future__ import annotations

from pathlib import Path

import pytest
from streams_support import JOBS, Script, at, hanging, restarting, worker, written_log

from producers.batches import MOST_BYTES, PRODUCER, Arrival, batch
from producers.observations import Observation
from producers.recording import Recording, Unused, merged, read_recording
from rankwatch.demo import bundled_recording
from schemas.codec import encode
from schemas.events import Event, Log, Metric
from schemas.identity import Identity
from schemas.topics import TOPICS

SECOND = 1_000_000_000


def line(
    number: int, text: str = "hello", *, second: float = 1.0, rank: int = 0, event: Event | None = None
) -> Observation:
    """A line of a worker; ``number`` is its place in the file."""
    log = event or Log(time=at(second), stream="stdout", text=text, line=number)
    return Observation(worker("job", rank), at(second), log, "out.log", number)


def lines_of(arrivals: list[Arrival]) -> list[int]:
    return [event.line for arrival in arrivals for event in arrival.batch.events if isinstance(event, Log)]


def test_a_batch_holds_one_kind_of_one_worker_in_one_second() -> None:
    metric = Metric(time=at(1), name="m", value=1.0)
    found = batch([line(1), line(2), line(3, rank=1), line(4, event=metric), line(5, second=2.0)])
    assert [[type(event).__name__ for event in arrival.batch.events] for arrival in found] == [
        ["Log", "Log"],
        ["Metric"],
        ["Log"],
        ["Log"],
    ]
    assert [arrival.batch.identity.key for arrival in found] == ["job|0", "job|0", "job|1", "job|0"]
    assert [arrival.time for arrival in found] == [at(1), at(1), at(1), at(2)]


@pytest.mark.parametrize(
    "other",
    [
        Identity(job="job", rank=0, group="actor"),
        Identity(job="job", rank=0, cluster="c2"),
        Identity(job="job", rank=0, device="GPU-1"),
        Identity(job="job", rank=0, role="critic"),
        Identity(job="job", rank=0, attempt="1"),
        Identity(job="job", rank=0, coordinates={"pp": 1}),
    ],
    ids=["group", "cluster", "device", "role", "attempt", "coordinates"],
)
def test_identities_that_differ_in_anything_share_no_batch(other: Identity) -> None:
    log = Log(time=at(1), stream="stdout", text="a")
    found = batch([Observation(one, at(1), log, "f", 1) for one in (Identity(job="job", rank=0), other)])
    assert {encode(arrival.batch.identity) for arrival in found} == {
        encode(Identity(job="job", rank=0)),
        encode(other),
    }


def test_what_is_more_than_the_bound_comes_in_several_batches_in_order_without_gaps() -> None:
    size = MOST_BYTES // 10
    before, after = [line(1, second=0.5)], [line(99, second=2.0)]
    found = batch([*before, *(line(number, "x" * size, second=1.0) for number in range(2, 37)), *after])
    assert lines_of(found) == [*range(1, 37), 99]
    assert [arrival.batch.seq for arrival in found] == list(range(len(found)))
    assert len({arrival.batch.boot for arrival in found}) == 1
    assert all(len(encode(arrival.batch)) <= MOST_BYTES for arrival in found)
    assert len(found) - 2 <= 2 * -(-35 * size // MOST_BYTES), "no more of them than halving needs"
    assert {arrival.time for arrival in found[1:-1]} == {at(1)}, "all at the time of the whole"


def test_one_event_alone_may_be_more_than_the_bound_and_stays_whole() -> None:
    found = batch([line(1), line(2, "x" * (MOST_BYTES + 5)), line(3)])
    assert [len(arrival.batch.events) for arrival in found] == [1, 1, 1]
    assert lines_of(found) == [1, 2, 3]


def test_no_batch_of_a_recording_is_more_than_a_topic_takes() -> None:
    with bundled_recording() as folder:
        found = read_recording(folder)
    assert max(len(encode(arrival.batch)) for arrival in found.arrivals) <= MOST_BYTES
    assert min(topic.most_bytes for topic in TOPICS.values()) > MOST_BYTES


def boot(found: list[Arrival] | Recording) -> str:
    arrivals = found.arrivals if isinstance(found, Recording) else found
    [name] = {arrival.batch.boot for arrival in arrivals}
    assert {arrival.batch.producer for arrival in arrivals} == {PRODUCER}
    return name


def test_the_boot_is_the_same_for_the_same_recording_wherever_it_lies_and_whenever_it_is_read(tmp_path: Path) -> None:
    with bundled_recording() as folder:
        first = read_recording(folder)
        (tmp_path / "elsewhere").symlink_to(folder)
        again = read_recording(tmp_path / "elsewhere" / ".")
    assert boot(first) == boot(again)
    assert first.arrivals == again.arrivals
    observations = hanging("hang", 4).observations
    assert boot(batch(observations)) == boot(batch(reversed(observations)))


@pytest.mark.parametrize(
    "other",
    [
        [line(1), line(2, "other")],
        [line(1), line(2, second=1.5)],
        [line(1), line(2), line(3)],
        [line(1)],
        [line(1), line(2, rank=1)],
        [line(1), line(3)],
    ],
    ids=["another text", "another time", "one more", "one less", "another worker", "another place"],
)
def test_the_boot_differs_where_anything_differs(other: list[Observation]) -> None:
    assert boot(batch(other)) != boot(batch([line(1), line(2)]))


def test_all_recordings_of_the_tests_have_boots_of_their_own() -> None:
    assert len({boot(JOBS[name]()) for name in JOBS}) == len(JOBS)


def test_recordings_that_are_merged_keep_their_own_order_and_stand_in_that_of_time() -> None:
    parts = [hanging("one", 4).recording, restarting("two").recording, hanging("three", 2, flush_s=3).recording]
    found = merged(parts)
    assert [arrival.time for arrival in found.arrivals] == sorted(arrival.time for arrival in found.arrivals)
    for part in parts:
        name = boot(part)
        assert [arrival for arrival in found.arrivals if arrival.batch.boot == name] == part.arrivals
    assert len(found.arrivals) == sum(len(part.arrivals) for part in parts)
    assert found.job == "one"
    assert found.span == (min(part.span[0] for part in parts), max(part.span[1] for part in parts))


def test_in_what_order_recordings_are_given_changes_only_whose_name_comes_first() -> None:
    parts = [hanging("one", 4).recording, restarting("two").recording]
    there, back = merged(parts), merged(parts[::-1])
    assert (there.arrivals, there.job, back.job) == (back.arrivals, "one", "two")


def test_what_was_not_used_of_merged_recordings_is_kept_and_counted() -> None:
    def part(job: str, files: int, reason: str) -> Recording:
        script = Script(job)
        script.log(worker(job, 0), 1.0, "hello")
        found = script.recording
        inputs = type(found.inputs)(files=files, records=files * 10, unused=[Unused("f", 1, reason)])
        return Recording(job=job, arrivals=found.arrivals, inputs=inputs)

    found = merged([part("a", 1, "odd"), part("b", 2, "broken")])
    assert (found.inputs.files, found.inputs.records) == (3, 30)
    assert [one.reason for one in found.inputs.unused] == ["odd", "broken"]
    one = part("a", 1, "odd")
    assert merged([one]) is one
    assert written_log(found).end("logs", 0)
