"""Topics that are not as they should be, or lose and refuse what others would keep."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from pathlib import Path

import msgspec
import pytest
import sink_support as support
from clickhouse_front import PASSWORD, Front
from kafka_admin import altered, deleted, emptied
from kafka_inside import drain, in_memory, processed, stages
from kafka_pipeline import free_address, metrics_at, moved, pipeline, stored_everything, until
from streams_support import JOBS, SECOND, at, said, tick

from schemas import codec
from schemas.deployment import Deployment
from schemas.ports import LogError
from schemas.topics import RAW_TOPICS
from sinks.clickhouse import open_client
from streams.log.kafka_topics import create_topics
from streams.metrics import WorkerMetrics
from streams.snapshots import SnapshotError
from streams.watchdog import Vitals

pytestmark = pytest.mark.xdist_group("kafka")
YEAR = 365 * 86_400 * SECOND


def test_a_recording_of_last_year_is_right_on_topics_that_refuse_old_and_new_times(kafka: str, tmp_path: Path) -> None:
    recording = moved(JOBS["killed"](), (time.time_ns() - YEAR) // SECOND * SECOND - at(0))
    strict = {"message.timestamp.before.max.ms": "600000", "message.timestamp.after.max.ms": "600000"}
    with pipeline(kafka, tmp_path, partitions=2) as live:
        for topic in ("logs", "metrics", "windows", "snapshots", "incidents"):
            altered(live, topic, strict)
        for topic in ("heartbeats", "anomalies"):
            altered(live, topic, {"message.timestamp.type": "LogAppendTime"})
        live.publish(recording)
        processed(live)
        expected = said(in_memory(live))
        assert said(live.log) == expected and expected["incidents"] and not expected["late"]
        # Nobody believes the broker's clock.
        ends = {window // (10 * SECOND) for window in range(recording.span[0], recording.span[1] + 60 * SECOND, SECOND)}
        assert {entry.time // (10 * SECOND) for entry in live.log.read("anomalies", 0, 0, 99)} <= ends


@pytest.mark.parametrize("topics", [("metrics",), RAW_TOPICS])
def test_ticks_from_the_far_future_in_one_partition_do_what_they_do_in_memory(
    topics: tuple[str, ...], kafka: str, tmp_path: Path
) -> None:
    with pipeline(kafka, tmp_path, partitions=2) as live:
        slices = live.publish_in(2, JOBS["restart"]())
        next(slices)
        tick(live.log, 10 * YEAR // SECOND, topics, [1])
        assert sum(1 for _ in slices) == 1
        began = time.monotonic()
        processed(live)
        assert time.monotonic() - began < 20
        expected = said(in_memory(live))
        assert said(live.log) == expected and expected["late"]


def test_what_the_cluster_did_not_keep_is_counted_and_the_rest_goes_on(kafka: str, tmp_path: Path) -> None:
    with pipeline(kafka, tmp_path, partitions=1) as live:
        slices = live.publish_in(3, JOBS["killed"]())
        next(slices)
        drain(live, before := stages(live, "rank"))
        went_on = dict(before.next_offsets())
        next(slices)
        emptied(live, "logs", keep=5)
        emptied(live, "metrics")
        again = stages(live, "rank")
        wanted = again.next_offsets()
        gone = {topic: live.log.begin(topic, 0) - wanted[topic, 0] for topic in ("logs", "metrics")}
        assert wanted["logs", 0] <= went_on["logs", 0] and all(count > 5 for count in gone.values())
        assert sum(1 for _ in slices) == 1
        address = free_address()
        live.start("worker", "--listen", address)
        name = 'rankwatch_gone_entries_total{partition="0",stage="rank"}'
        until(lambda: bool(live.said_by(live.processes[0])))
        until(lambda: metrics_at(address).get(name) == sum(gone.values()), live.printed)
        until(lambda: metrics_at(address)['rankwatch_windows_total{partition="0",stage="job"}'] >= 3)
        assert live.processes[0].poll() is None
        drain(live, again)
        (counted,) = [m for m in WorkerMetrics([(again, Vitals())]).collect() if m.name == "rankwatch_gone_entries"]
        assert sum(sample.value for sample in counted.samples) == sum(gone.values())


def test_a_sink_says_what_was_removed_before_it_was_read_and_whose_rows_it_stores_where(
    kafka: str, tmp_path: Path, front: Front, database: str
) -> None:
    dsn, address = front.dsn(database), free_address()
    sink = ("sink", "--clickhouse", dsn, "--listen", address)
    late = support.late()
    with pipeline(kafka, tmp_path, partitions=1) as live:

        def put(*ids: str) -> None:
            for one in ids:
                value = codec.encode(msgspec.structs.replace(late, id=one))
                live.log.append("late", b"k", value, codec.headers("late"), 1)
            live.log.flush()

        put("a", "b")
        first = live.start(*sink)
        until(lambda: bool(live.said_by(first)))
        until(lambda: stored_everything(address, 2), live.printed)
        first.terminate()
        assert first.wait(60) == 0, live.printed()
        put("c", "d", "e", "f")
        emptied(live, "late", keep=1)
        again = live.start(*sink)
        until(lambda: bool(live.said_by(again)))
        until(lambda: stored_everything(address, 1), live.printed)
        assert metrics_at(address)["rankwatch_gone_entries_total"] == 3
        again.terminate()
        assert again.wait(60) == 0, live.printed()
        assert "rankwatch: 3 entries were removed from Kafka before they were read" in live.said_by(again)
        assert f", ClickHouse at http://writer:***@127.0.0.1:{front.port}/{database}; http" in live.said_by(again)
        assert PASSWORD not in live.printed()
        with open_client(dsn, read_only=True) as client:
            rows = client.query("SELECT run_id, id FROM late ORDER BY id").result_rows
        assert rows == [(live.settings.prefix, one) for one in "abf"]


def test_a_topic_that_was_made_anew_under_old_snapshots_is_refused(kafka: str, tmp_path: Path) -> None:
    deployment = Deployment(partitions=1, ticks="publisher")
    with pipeline(kafka, tmp_path, partitions=1) as live:
        live.publish(JOBS["killed"]())
        processed(live)
        deleted(live, "logs")
        until(lambda: bool(made_again(live.settings, deployment)))
        with pytest.raises(SnapshotError, match=r"up to offset \d+, but it ends at 0: it was made anew"):
            stages(live, "rank")
        deleted(live, "snapshots")
        until(lambda: bool(made_again(live.settings, deployment)))
        stages(live, "rank")


def made_again(settings: object, deployment: Deployment) -> list[str]:
    """A topic is not gone the moment that it is deleted."""
    try:
        return create_topics(settings, deployment)  # type: ignore[arg-type]
    except LogError:
        return []


def test_a_sink_that_never_reached_its_database_says_so_wherever_it_is_asked(kafka: str, tmp_path: Path) -> None:
    address, nobody = free_address(), free_address()
    with pipeline(kafka, tmp_path) as live:
        sink = live.start("sink", "--clickhouse", f"http://writer:secret@{nobody}/db", "--listen", address)
        until(lambda: "waiting" in live.said_by(sink), live.printed)
        why = f"cannot reach ClickHouse at {nobody}: connection refused"
        assert live.said_by(sink) == f"rankwatch: waiting: {why}; nothing is stored until it answers\n"
        assert metrics_at(address) == {"rankwatch_sink_waits": 1}
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"http://{address}/healthz", timeout=10)
        assert (refused.value.code, refused.value.read().decode()) == (503, f"{why}\n")
        sink.terminate()
        assert sink.wait(60) == 0, live.printed()
