"""Whose turn it is, how much is read at once, and over how many partitions: none of it changes a result."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from streams_support import (
    CONFIG,
    JOBS,
    JUDGED,
    RESULTS,
    SHARED,
    Script,
    any_of,
    is_tick,
    log_of,
    put,
    raw_of,
    recording_of,
    records,
    run,
    said,
    steady,
    tick,
    written_log,
)

from producers.publish import stream
from producers.recording import read_recording
from rankwatch.demo import bundled_recording
from schemas.topics import RAW_TOPICS
from streams.config import StreamConfig
from streams.driver import Driver, furthest_behind
from streams.log.memory import MemoryLog
from streams.runner import Stage

SEEDS = range(6)
RECORDED = ("oom", "rl-healthy", "straggler")
Ready = Sequence[tuple[Stage, str, int]]


def first_ready(ready: Ready) -> tuple[int, int]:
    """One topic is drained before the next is begun."""
    return 0, 10**9


def last_ready(ready: Ready) -> tuple[int, int]:
    return len(ready) - 1, 10**9


def behind_by_one(ready: Ready) -> tuple[int, int]:
    """As a worker reads that follows a growing log."""
    return furthest_behind(ready)[0], 1


def one_by_one(ready: Ready) -> tuple[int, int]:
    return 0, 1


ORDERS = {
    "following": behind_by_one,
    "drained": first_ready,
    "drained from behind": last_ready,
    "one by one": one_by_one,
}


@pytest.mark.parametrize("job", JOBS)
def test_any_choice_of_what_to_read_next_gives_the_same(job: str) -> None:
    expected_log = written_log(JOBS[job](), 3)
    run(expected_log)
    expected = said(expected_log)
    for seed in SEEDS:
        log = written_log(JOBS[job](), 3)
        run(log, choose=any_of(seed, most=1 + 5 * seed))
        assert said(log) == expected, seed


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("job", ["spanning", "two at once"])
def test_draining_one_partition_after_another_gives_the_same(job: str, order: str) -> None:
    expected_log, log = written_log(JOBS[job](), 2), written_log(JOBS[job](), 2)
    run(expected_log)
    run(log, choose=ORDERS[order])
    assert said(log) == said(expected_log)


@pytest.mark.parametrize("job", JOBS)
def test_following_the_log_while_it_grows_gives_the_same_as_reading_it_afterwards(job: str) -> None:
    expected_log = written_log(JOBS[job]())
    run(expected_log)
    log = MemoryLog(2)
    driver = Driver(log, CONFIG)
    for _ in stream(JOBS[job](), log, until=None, closing_ns=CONFIG.closing_ns):
        driver.run()
    assert said(log) == said(expected_log)


@pytest.mark.parametrize("job", JOBS)
def test_the_number_of_partitions_changes_no_finding(job: str) -> None:
    found = []
    for partitions in (1, 2, 5):
        log = written_log(JOBS[job](), partitions)
        run(log, choose=any_of(partitions))
        found.append(said(log, ("windows", *JUDGED)))
    assert found[0]["incidents"]
    assert found[0] == found[1] == found[2]


def test_stamped_events_and_notices_do_not_depend_on_the_order_of_reading() -> None:
    topics = (*(name for name in MemoryLog(1)._topics if name.startswith("stamped.")), "notices")
    expected_log = written_log(JOBS["restart"]())
    run(expected_log)
    expected = said(expected_log, topics)
    assert expected["notices"]
    assert expected["stamped.logs"]
    for seed in SEEDS:
        log = written_log(JOBS["restart"]())
        run(log, choose=any_of(seed))
        assert said(log, topics) == expected, seed


def test_a_job_that_begins_long_after_another_does_not_depend_on_the_order() -> None:
    late = Script("late")
    late.start(2, 151.2)
    late.train(2, 151, 180)
    recording = recording_of(steady("early", 2, 30), late)
    expected_log = written_log(recording, 4)
    run(expected_log)
    for choose in (first_ready, last_ready, any_of(3)):
        log = written_log(recording, 4)
        run(log, choose=choose)
        assert said(log) == said(expected_log)


def test_a_copy_that_comes_after_it_was_forgotten_is_judged_alike_in_any_order() -> None:
    """Whether a batch is still known must follow from its own partition, not from how far the others are read."""
    config = StreamConfig(remembered_windows=1)
    raw = raw_of(written_log(steady(seconds=60).recording, 1, config))
    kept = raw["logs", 0]
    early = next(entry for entry in kept if not is_tick(entry))
    raw["logs", 0] = [*kept[:-5], early, *kept[-5:]]
    found = []
    for choose in (first_ready, behind_by_one, any_of(1, most=3)):
        log = log_of(raw)
        run(log, config, choose=choose)
        found.append(said(log))
    assert found[0] == found[1] == found[2]


def test_random_jobs_do_not_depend_on_the_order_of_reading() -> None:
    """Ragged sending: batches of several windows, some late, some twice, some partitions empty."""
    for seed in range(8):
        chance = random.Random(seed)
        script = Script(f"random-{seed}", flush_s=chance.choice((1, 6, 7)))
        script.start(3)
        script.train(3, 1, 45, compute=lambda rank, step, c=chance: 300 + 40 * c.random())
        script.alive(3, 0, 45)
        log, other = written_log(script.recording, 3), written_log(script.recording, 3)
        run(log)
        run(other, choose=any_of(seed, most=30))
        assert said(log) == said(other), seed
        assert script.flush_s < 4 or records(log, "late"), seed


@pytest.mark.parametrize("gap", [40, 200, 700])
@pytest.mark.parametrize("order", ORDERS)
def test_a_job_that_falls_silent_and_comes_back_does_not_depend_on_the_order(gap: int, order: str) -> None:
    """Windows in which nobody says anything pass alike, whether they are seen one by one or jumped over."""
    script = Script("pause")
    script.start(4)
    script.train(4, 1, 40)
    script.train(4, 41, 70, zero=gap)
    script.alive(4, 0, 45)
    script.alive(4, 45 + gap, 70 + gap)
    live, log = MemoryLog(3), written_log(script.recording, 3)
    driver = Driver(live, CONFIG)
    for _ in stream(script.recording, live, until=None, closing_ns=CONFIG.closing_ns):
        driver.run()
    run(log, choose=ORDERS[order])
    assert said(log) == said(live)


def test_a_topic_whose_ticks_stop_holds_all_windows_back() -> None:
    log = MemoryLog(1)
    put(log, steady(seconds=1).recording.arrivals[0].batch)
    for second in range(1, 40):
        tick(log, second, topics=[topic for topic in RAW_TOPICS if topic != "stacks"])
    run(log)
    assert said(log)["windows"] == []
    tick(log, 40, topics=["stacks"])
    run(log)
    assert len(said(log)["windows"]) == 1


def test_the_bundled_recording_does_not_depend_on_who_drives() -> None:
    with bundled_recording() as folder:
        recording = read_recording(folder)
    expected_log = written_log(recording)
    run(expected_log)
    expected = said(expected_log, JUDGED)
    assert expected["incidents"]
    for partitions in (1, 2, 5):
        log = written_log(recording, partitions)
        run(log, choose=any_of(partitions, most=50))
        assert said(log, JUDGED) == expected, partitions


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_job_does_not_depend_on_who_drives(name: str) -> None:
    if not (SHARED / name).is_dir():
        pytest.skip("the recorded jobs are not there")
    recording = read_recording(SHARED / name)
    expected_log, log, wide = written_log(recording), written_log(recording), written_log(recording, 5)
    run(expected_log)
    run(log, choose=any_of(7, most=100))
    run(wide, choose=last_ready)
    assert said(log, RESULTS) == said(expected_log, RESULTS)
    assert said(wide, JUDGED) == said(expected_log, JUDGED)
