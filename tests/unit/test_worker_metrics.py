"""What a worker says of itself to Prometheus: complete, right, and readable."""

from __future__ import annotations

import pytest
from exposition_support import declared, exposed, samples, value
from streams_support import CONFIG, at, hanging, lines, put, run, tick, written_log

from schemas.codec import headers
from schemas.topics import RAW_TOPICS
from streams.live import INPUTS, LiveStages, StageName
from streams.log.memory import MemoryLog
from streams.metrics import BATCH_BYTES, DECLARED, WorkerMetrics
from streams.snapshots import MemorySnapshots
from streams.watchdog import Vitals


def worker(log: MemoryLog, stage: StageName, numbers: set[int], store: MemorySnapshots) -> LiveStages:
    """A worker that has taken in all that lies in the partitions of these numbers."""
    live = LiveStages(stage, log, store, CONFIG)
    live.own(numbers)
    live.take([(place, log.read(*place, 0, log.end(*place))) for place in live.next_offsets()])
    return live


def eventful() -> MemoryLog:
    """One partition with something to count of everything."""
    log = MemoryLog(1)
    tick(log, 1)
    put(log, lines([2, 3]))
    put(log, lines([2, 3]))
    log.append("logs", b"job|0", b"{", headers("log"), at(4), 0)
    put(log, lines([200], seq=1, text="x" * 2000))
    tick(log, 20)
    put(log, lines([4, 5, 6], seq=2))
    put(log, lines([24, 31], seq=3))
    log.append("logs", b"job|0", b'"\\ud800\n', headers("log"), at(4), 0)
    return log


def test_a_worker_of_all_stages_declares_every_metric_exactly_once_in_valid_text() -> None:
    log, store = written_log(hanging("hang", 4).recording, 2), MemorySnapshots()
    run(log)
    parts = [(worker(log, stage, {0, 1}, store), Vitals()) for stage in INPUTS]
    text = exposed(WorkerMetrics(parts))
    names = {one.name for one in DECLARED} | {BATCH_BYTES[0]}
    for word in ("HELP", "TYPE"):
        assert declared(text, word) == dict.fromkeys(names, 1)
    found = samples(text)
    assert {dict(labels)["stage"] for _, labels in found} == set(INPUTS)


@pytest.mark.parametrize("stages", [(), ("rank",), ("job",), ("fleet",), tuple(INPUTS)])
def test_every_metric_is_declared_also_where_nothing_is_owned(stages: tuple[StageName, ...]) -> None:
    log = MemoryLog(1)
    parts = [(LiveStages(stage, log, MemorySnapshots(), CONFIG), Vitals()) for stage in stages]
    text = exposed(WorkerMetrics(parts))
    assert declared(text, "TYPE") == dict.fromkeys([one.name for one in DECLARED] + [BATCH_BYTES[0]], 1)
    assert {name for name, _ in samples(text)} <= {"rankwatch_batch_bytes_bucket", "rankwatch_batch_bytes_count"} | {
        "rankwatch_batch_bytes_sum"
    }


def test_the_counts_of_a_worker_match_what_went_through_it() -> None:
    log = eventful()
    vitals = Vitals()
    vitals.lags = {("logs", 0): 7, ("metrics", 0): 0}
    found = samples(exposed(WorkerMetrics([(worker(log, "rank", {0}, MemorySnapshots()), vitals)])))
    at_0 = {"stage": "rank", "partition": "0"}
    expected = {
        "rankwatch_closed_window_seconds": at(10) / 1e9,
        "rankwatch_open_windows": 2,
        "rankwatch_skew_seconds": 180,
        "rankwatch_entries_total": 2 * len(RAW_TOPICS) + 7,
        "rankwatch_windows_total": 1,
        "rankwatch_late_events_total": 3,
        "rankwatch_duplicate_batches_total": 1,
        "rankwatch_dead_letters_total": 2,
        "rankwatch_gone_entries_total": 0,
    }
    assert {name: value(found, name, **at_0) for name in expected} == expected
    assert value(found, "rankwatch_held_bytes", **at_0) > 0
    assert value(found, "rankwatch_lag_entries", topic="logs", **at_0) == 7
    assert value(found, "rankwatch_lag_entries", topic="metrics", **at_0) == 0
    sizes = [len(entry.value) for topic in RAW_TOPICS for entry in log.read(topic, 0, 0, 100)]
    bounds = ("1000.0", "10000.0", "100000.0", "1000000.0", "+Inf")
    counted = [value(found, "rankwatch_batch_bytes_bucket", stage="rank", le=bound) for bound in bounds]
    assert counted == [sum(size <= float(bound) for size in sizes) for bound in bounds]
    assert counted[0] < counted[1] == value(found, "rankwatch_batch_bytes_count", stage="rank")
    assert value(found, "rankwatch_batch_bytes_sum", stage="rank") == sum(sizes)


def test_what_windows_left_out_is_counted_by_reason() -> None:
    log = MemoryLog(1)
    tick(log, 1)
    put(log, lines([2, 500, 600]))
    tick(log, 20)
    tick(log, 45)
    found = samples(exposed(WorkerMetrics([(worker(log, "rank", {0}, MemorySnapshots()), Vitals())])))
    assert value(found, "rankwatch_dropped_events_total", stage="rank", partition="0", reason="retimed") == 2


def test_the_skew_is_that_of_the_windows_that_are_open_now() -> None:
    log = MemoryLog(1)
    tick(log, 1)
    put(log, lines([9]))
    put(log, lines([14], seq=1))
    store, vitals = MemorySnapshots(), Vitals()
    live = worker(log, "rank", {0}, store)
    metrics = WorkerMetrics([(live, vitals)])
    place = {"stage": "rank", "partition": "0"}
    assert value(samples(exposed(metrics)), "rankwatch_skew_seconds", **place) == 13
    for second, skew in ((13, 13), (23, 0)):
        tick(log, second)
        live.take([(place, log.read(*place, at, 10)) for place, at in live.next_offsets().items()])
        assert value(samples(exposed(metrics)), "rankwatch_skew_seconds", **place) == skew
