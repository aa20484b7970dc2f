"""A window of a job closes once all partitions have reported it, or once going on without one was decided."""

from __future__ import annotations

import msgspec
import pytest
from detection_support import gauge
from streams_support import (
    JOBS,
    JUDGED,
    SECOND,
    at,
    is_tick,
    log_of,
    raw_of,
    records,
    run,
    said,
    worker,
    written_log,
)

from schemas.codec import encode, headers, kind_of
from schemas.ports import Entry
from schemas.results import Anomaly, DeadLetter, Late, Progress, Snapshot, Window
from streams.config import StreamConfig
from streams.log.memory import MemoryLog
from streams.log.partition import partition_of
from streams.stages.job import JobStage
from streams.stages.outputs import Output

PARTITIONS = 3
RANKS = 4


class Feed:
    """A job stage and the windows topic's partition that it reads."""

    def __init__(self, at_once: int = 1) -> None:
        self.stage = JobStage(0, PARTITIONS, StreamConfig())
        self.at_once = at_once
        self.held: list[Window | Progress] = []
        self.offset = 0
        self.outputs: list[Output] = []

    def add(self, *found: Window | Progress) -> None:
        for one in found:
            self.held.append(one)
            if len(self.held) >= self.at_once:
                self.flush()

    def flush(self) -> None:
        """Read what is there, then close what can be closed, as the driver does."""
        for one in self.held:
            entry = Entry(self.offset, b"job", encode(one), headers(kind_of(one)), 0)
            self.offset += 1
            self.outputs += self.stage.on_entry("windows", 0, entry)
        self.held = []
        while (closed := self.stage.close()) is not None:
            self.outputs += closed

    @property
    def closed(self) -> int | None:
        return self.stage._closed

    @property
    def findings(self) -> list[Anomaly]:
        return [one.record for one in self.outputs if isinstance(one.record, Anomaly)]


def summary(rank: int, number: int) -> Window:
    """A living rank in window ``number``, which its node samples."""
    start = at(10 * number)
    end = start + 10 * SECOND
    return Window(
        id=f"{rank}|{number}",
        identity=worker("job", rank),
        start=start,
        end=end,
        log_records=1,
        last_log=end - 1,
        pids=[1000 + rank],
        phase="train",
        gauges=[gauge("cpu_percent", 90.0)],
    )


def progress(partition: int, number: int, *, skipped: bool = False) -> Progress:
    return Progress(partition=partition, end=at(10 * number + 10), skipped=skipped)


def partition_of_rank(rank: int) -> int:
    return 1 if rank == RANKS - 1 else 0


def play(silent: dict[int, Progress | None], windows: int = 9, at_once: int = 1) -> Feed:
    """All ranks report in all windows; in the silent ones partition 1 sends no summary, and this as its progress."""
    feed = Feed(at_once)
    for number in range(windows):
        for rank in range(RANKS):
            if number not in silent or partition_of_rank(rank) != 1:
                feed.add(summary(rank, number))
        for partition in (0, 2):
            feed.add(progress(partition, number))
        said = silent.get(number, progress(1, number))
        if said is not None:
            feed.add(said)
    feed.flush()
    return feed


def test_a_window_closes_only_once_all_partitions_have_reported_it() -> None:
    feed = Feed()
    feed.add(summary(0, 0), progress(0, 0), progress(2, 0))
    assert feed.closed is None
    feed.add(progress(0, 1), progress(2, 1))
    assert feed.closed is None
    feed.add(progress(1, 0))
    assert feed.closed == at(10)
    feed.add(progress(1, 1))
    assert feed.closed == at(20)


def test_progress_of_one_partition_sent_again_closes_nothing() -> None:
    feed = Feed()
    feed.add(*[progress(0, 0)] * 5, *[progress(1, 0)] * 5)
    assert feed.closed is None


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_partitions_that_are_drained_one_after_another_give_the_same(order: tuple[int, ...]) -> None:
    together = play({4: progress(1, 4), 5: progress(1, 5), 6: progress(1, 6)})
    feed = Feed()
    for partition in order:
        for number in range(9):
            gone = partition == 1 and number in (4, 5, 6)
            here = [] if gone else [rank for rank in range(RANKS) if partition_of_rank(rank) == partition]
            feed.add(*(summary(rank, number) for rank in here), progress(partition, number))
    assert together.findings
    assert feed.findings == together.findings
    assert feed.closed == together.closed


def test_a_whole_job_drained_partition_after_partition_gives_the_same() -> None:
    expected = written_log(JOBS["two at once"](), 3)
    run(expected)
    raw = raw_of(written_log(JOBS["two at once"](), 3))
    log = MemoryLog(3)
    for number in (2, 0, 1):
        for (topic, partition), entries in raw.items():
            for entry in entries if partition == number else ():
                log.append(topic, entry.key, entry.value, entry.headers, entry.time, partition)
        run(log) if number == 1 else None
    assert said(log) == said(expected)


def test_a_partition_without_ticks_holds_all_findings_back() -> None:
    raw = raw_of(written_log(JOBS["hang"](), 2))
    held = {part: [e for e in entries if part[1] == 0 or not is_tick(e)] for part, entries in raw.items()}
    log = log_of(held)
    run(log)
    assert all(not found for found in said(log, JUDGED).values())
    assert records(log, "windows")


def test_a_silent_rank_is_missing_where_its_partition_has_reported() -> None:
    (found,) = play({number: progress(1, number) for number in range(4, 9)}).findings
    assert found.detector == "missing_workers"
    assert [*found.unobserved, *(suspect.rank for suspect in found.suspects)] == [RANKS - 1]


def test_a_skipped_window_closes_and_calls_nobody_missing() -> None:
    feed = play({number: progress(1, number, skipped=True) for number in (4, 5, 6)})
    assert feed.closed == at(90)
    assert not feed.findings


def test_whose_summaries_the_log_did_not_keep_is_called_missing_by_nobody() -> None:
    feed = Feed()
    feed.stage = JobStage(0, PARTITIONS, StreamConfig(), read=lambda offset, limit: [])
    for number in range(12):
        feed.add(*(summary(rank, number) for rank in range(RANKS - (number > 3))))
        feed.add(progress(0, number), progress(2, number))
        feed.stage.bound(1)
    feed.add(*(progress(1, number) for number in range(12)))
    assert feed.closed == at(120)
    assert not feed.findings
    letters = [one.record for one in feed.outputs if isinstance(one.record, DeadLetter)]
    assert len(letters) == 11 and all("no longer in the topic" in letter.reason for letter in letters)


def test_one_decision_that_skips_several_windows_makes_all_of_them_unavailable() -> None:
    """Progress is through all windows that end at or before its end, so a skip to window 7 skips 4, 5 and 6 too."""
    feed = play({4: None, 5: None, 6: None, 7: progress(1, 7, skipped=True)})
    assert feed.closed == at(90)
    assert not feed.findings


@pytest.mark.parametrize("at_once", [2, 3, 7, 1000])
def test_what_comes_behind_a_skip_is_judged_alike_however_much_is_read_at_once(at_once: int) -> None:
    """The partition wakes up and sends its summary after all: whether it counts must follow from the log alone."""

    def ranks(at_once: int) -> bytes:
        feed = Feed(at_once)
        for number in range(6):
            feed.add(*(summary(rank, number) for rank in range(RANKS - 1)))
            feed.add(progress(0, number), progress(2, number), progress(1, number, skipped=number in (2, 3)))
            if number in (2, 3):
                feed.add(summary(RANKS - 1, number))
        feed.flush()
        view = feed.stage._jobs["job"]._attempts["0"].state.view
        return msgspec.json.encode(view)

    assert ranks(at_once) == ranks(1)


@pytest.mark.parametrize("restored", [False, True])
def test_what_comes_behind_a_skip_is_late_also_once_its_window_is_closed_until_its_partition_has_told(
    restored: bool,
) -> None:
    rank = 0
    origin = partition_of(worker("job", rank).key.encode(), PARTITIONS)
    others = [number for number in range(PARTITIONS) if number != origin]
    feed = Feed()
    for number in range(3):
        feed.add(*(progress(other, number) for other in others), progress(origin, number, skipped=number > 0))
    assert feed.closed == at(30)
    if restored:
        written = msgspec.json.decode(encode(feed.stage.written()), type=Snapshot)
        feed.stage = JobStage(0, PARTITIONS, StreamConfig())
        feed.stage.restore(written.state)
    feed.add(summary(rank, 0), summary(rank, 1), summary(rank, 2))
    late = [one.record for one in feed.outputs if isinstance(one.record, Late)]
    assert [one.window_end for one in late] == [at(20), at(30)]
    # Then it says itself that it is through, and what it sends again is known.
    feed.add(progress(origin, 2), summary(rank, 1), summary(rank, 2))
    assert len([one for one in feed.outputs if isinstance(one.record, Late)]) == 2
    assert feed.stage.held_events == 0


def test_a_summary_that_is_sent_again_counts_once() -> None:
    feed = Feed()
    feed.add(summary(0, 0), summary(0, 0), summary(1, 0), summary(0, 0))
    assert feed.stage.held_events == 2
    feed.add(*(progress(number, 0) for number in range(PARTITIONS)))
    feed.add(summary(0, 0))
    assert feed.stage.held_events == 0
