"""Late is an output: decided by the ticks of an event's own partition, counted, and without effect on the window."""

from __future__ import annotations

from typing import Any

import pytest
from streams_support import SECOND, any_of, at, lines, put, records, run, tick, worker

from schemas.events import Batch
from schemas.results import Late, Window
from schemas.topics import RAW_TOPICS
from streams.config import StreamConfig
from streams.driver import Driver
from streams.log.memory import MemoryLog
from streams.stages.rank import RankStage

END = 60


def finish(log: MemoryLog, first: int, config: StreamConfig = StreamConfig()) -> Driver:  # noqa: B008
    for second in range(first, END):
        tick(log, second)
    return run(log, config)


def window_of(log: MemoryLog, second: int, rank: int = 0) -> Window:
    """The summary of a rank in the window that ends at ``second``."""
    (found,) = [one for one in records(log, "windows") if one.end == at(second) and one.identity.worker == str(rank)]
    assert isinstance(found, Window)
    return found


def ticked(*upto: float) -> MemoryLog:
    log = MemoryLog(1)
    for second in upto:
        tick(log, second)
    return log


def test_a_late_event_is_an_output_with_the_name_of_its_batch() -> None:
    log = MemoryLog(1)
    put(log, lines([1, 2]))
    for second in (5, 12):
        tick(log, second)
    put(log, lines([5, 6, 7], seq=8, producer="slow"))
    finish(log, 13)
    (late,) = records(log, "late")
    assert isinstance(late, Late)
    assert (late.topic, late.partition, late.producer, late.boot, late.seq) == ("logs", 0, "slow", "b", 8)
    assert (late.identity, late.window_end, late.events) == (worker("job", 0), at(10), 3)


def test_a_late_event_does_not_touch_the_window() -> None:
    log, without = MemoryLog(1), MemoryLog(1)
    for one in (log, without):
        put(one, lines([1, 2]))
        tick(one, 12)
    put(log, lines([5], seq=1, text="Traceback (most recent call last):\nValueError: late"))
    finish(log, 13)
    finish(without, 13)
    assert records(log, "late")
    assert records(log, "windows") == records(without, "windows")
    assert not records(log, "notices")


@pytest.mark.parametrize(("lateness_s", "closing"), [(0.0, 10.0), (2.0, 12.0), (0.5, 10.5)])
def test_lateness_is_exact_to_the_nanosecond(lateness_s: float, closing: float) -> None:
    config = StreamConfig(lateness_s=lateness_s)
    for gap_ns, is_late in ((-1, False), (0, True), (1, True)):
        log = MemoryLog(1)
        put(log, lines([1]))
        tick(log, closing + gap_ns / SECOND)
        put(log, lines([9.9], seq=1))
        finish(log, 20, config)
        assert bool(records(log, "late")) is is_late, gap_ns
        assert window_of(log, 10).log_records == (1 if is_late else 2)


def test_an_event_at_the_end_of_a_window_belongs_to_the_next() -> None:
    log = MemoryLog(1)
    put(log, lines([9.999999999]))
    put(log, lines([10], seq=1))
    finish(log, 11)
    assert [window_of(log, second).log_records for second in (10, 20)] == [1, 1]


def test_of_a_batch_over_two_windows_only_the_closed_part_is_late() -> None:
    log = ticked(1, 12)
    put(log, lines([9.5, 9.7, 10.5, 13], seq=3))
    finish(log, 13)
    (late,) = records(log, "late")
    assert (late.window_end, late.events) == (at(10), 2)
    assert window_of(log, 20).log_records == 2


def test_a_batch_late_in_two_windows_gives_a_record_for_each() -> None:
    log = ticked(1, 35)
    put(log, lines([5, 15, 16, 34], seq=3))
    finish(log, 36)
    assert {(late.window_end, late.events) for late in records(log, "late")} == {(at(10), 1), (at(20), 2)}
    assert len({late.id for late in records(log, "late")}) == 2
    assert window_of(log, 40).log_records == 1


def test_a_processed_batch_that_is_sent_again_is_not_late() -> None:
    log = MemoryLog(1)
    put(log, lines([1, 2]))
    tick(log, 5)
    put(log, lines([1, 2]))
    tick(log, 12)
    put(log, lines([1, 2]))
    tick(log, 25)
    put(log, lines([1, 2]))
    driver = finish(log, 26)
    assert not records(log, "late")
    assert window_of(log, 10).log_records == 2
    stage = driver.stages[0]
    assert isinstance(stage, RankStage)
    assert stage.duplicates == 3


def test_a_late_batch_that_is_sent_again_is_the_same_late_record() -> None:
    log = ticked(1, 12)
    for second in (13, 14, 40):
        put(log, lines([5], seq=4))
        tick(log, second)
    finish(log, 41)
    assert len({late.id for late in records(log, "late")}) == 1
    assert len({late.events for late in records(log, "late")}) == 1


def test_the_ticks_of_other_topics_and_partitions_make_nothing_late() -> None:
    log = MemoryLog(2)
    where = put(log, lines([1]))[0]
    tick(log, 30, topics=[topic for topic in RAW_TOPICS if topic != "logs"])
    tick(log, 30, topics=["logs"], partitions=[1 - where])
    put(log, lines([9], seq=1))
    finish(log, 31)
    assert not records(log, "late")
    assert window_of(log, 10).log_records == 2


def test_the_same_seq_after_another_boot_or_on_another_topic_is_another_batch() -> None:
    log = MemoryLog(1)
    first = lines([1])
    put(log, first)
    put(log, Batch(producer="p", boot="c", seq=0, identity=first.identity, events=first.events))
    finish(log, 2)
    assert window_of(log, 10).log_records == 2


def test_an_event_too_far_ahead_of_the_ticks_is_taken_at_their_time() -> None:
    log = ticked(1, 5)
    put(log, lines([6 + 60.5], seq=1))
    put(log, lines([5 + 10], seq=2))
    finish(log, 6)
    assert window_of(log, 10).log_records == 1
    assert window_of(log, 20).log_records == 1
    assert not records(log, "late")


def test_events_of_a_time_in_which_nobody_told_the_time_stay_where_they_are() -> None:
    """No worker owned the partition for ten minutes: what came meanwhile is ahead of the last tick, not of the next."""
    log = ticked(1, 5)
    for seq, second in enumerate((30, 61, 120, 300, 600)):
        put(log, lines([second], seq=seq))
    put(log, lines([600 + 70], seq=9))
    for second in (605, 606, 640):
        tick(log, second)
    run(log)
    for second in (30, 61, 120, 300, 600):
        assert window_of(log, second // 10 * 10 + 10).log_records == 1 + (second == 600)
    assert window_of(log, 610).dropped == {"retimed": 1}
    assert not records(log, "late")


def test_what_waits_for_a_tick_is_late_by_those_before_it_and_known_when_it_comes_twice() -> None:
    log = ticked(1, 40)
    for _ in range(2):
        put(log, lines([2, 140], seq=1))
    finish(log, 41)
    (late,) = records(log, "late")
    assert (late.window_end, late.events) == (at(10), 1)
    assert window_of(log, 50).log_records == 1


def test_late_records_do_not_depend_on_the_order_of_reading() -> None:
    def made() -> MemoryLog:
        log = MemoryLog(2)
        for second in range(1, 50):
            for rank in range(3):
                ago = (second * 7 + rank * 5) % 17
                put(log, lines([second - ago / 2, second], rank=rank, seq=second, producer=f"p{rank}"))
            tick(log, second)
        return log

    def late_of(choose: Any) -> list[Late]:
        log = made()
        run(log, choose=choose)
        return sorted(records(log, "late"), key=lambda one: one.id)

    expected = late_of(any_of(0, 1))
    assert len(expected) > 10
    assert all(late_of(any_of(seed, 40)) == expected for seed in range(1, 5))


@pytest.mark.parametrize("second", [-1_795_975_830, -86_400 * 3], ids=["1970", "three days ago"])
def test_an_event_far_behind_before_the_first_tick_does_not_open_every_window_since(second: int) -> None:
    """A clock that is not set yet: closing a window for each ten seconds since 1970 would never end."""
    log = MemoryLog(1)
    put(log, lines([1]))
    put(log, lines([second], seq=1))
    for later in range(1, 30):
        tick(log, later)
    driver = Driver(log, StreamConfig())
    stage = driver.stages[0]
    for topic in RAW_TOPICS:
        for entry in log.read(topic, 0, 0, 100):
            stage.on_entry(topic, 0, entry)
    closed = 0
    while closed < 500 and stage.close() is not None:
        closed += 1
    assert closed < 500


def test_an_event_far_ahead_before_the_first_tick_does_not_hold_back_progress() -> None:
    """One node with a wrong clock, first in its partition, must not stop every job."""
    log = MemoryLog(1)
    put(log, lines([10**7]))
    finish(log, 1)
    entries = log.read("windows", 0, 0, 100)
    assert any(entry.headers["schema"] == "progress" for entry in entries)
