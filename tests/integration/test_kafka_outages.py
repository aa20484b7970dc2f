"""The cluster goes away and comes back: whoever runs waits for it, and nothing is lost, whoever starts says so."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from kafka_pipeline import folded, free_address, metrics_at, pipeline, run_all, stored_everything, until
from kafka_rows import differences, expected_rows, shown_at
from kafka_support import Broker
from streams_support import JOBS, JUDGED, said

import rankwatch.publish
from producers.publish import publish
from producers.recording import Recording
from rankwatch import diagnose
from rankwatch.cli import run
from streams.log.memory import MemoryLog

pytestmark = pytest.mark.xdist_group("kafka")
TOPICS = ("windows", *JUDGED)
DOWN_S = 3.0


def test_whoever_starts_while_nobody_answers_says_so_in_one_line(tmp_path: Path) -> None:
    address = free_address()
    commands = {
        "topics": ["topics", "create"],
        "check": ["topics", "check"],
        "publish": ["publish", str(tmp_path)],
        "worker": ["worker"],
        "sink": ["sink", "--clickhouse", f"chdb://{tmp_path / 'db'}"],
    }
    began = time.monotonic()
    for code, printed in run_all(commands, "--kafka", address).values():
        assert (code, printed.count("\n")) == (2, 1), printed
        assert printed.startswith(f"rankwatch: cannot reach Kafka at {address}: "), printed
    assert time.monotonic() - began < 20


def outage(broker: Broker, kill: bool) -> None:
    broker.stop(kill=kill)
    time.sleep(DOWN_S)
    broker.start()


def test_worker_and_sink_wait_through_outages_and_change_no_result(broker: Broker, tmp_path: Path) -> None:
    recording = JOBS["restart"]()
    expected = folded(said(diagnose.run(recording).log, TOPICS))
    rows = expected_rows(recording, tmp_path / "expected")
    dsn = f"chdb://{tmp_path / 'live'}"
    with pipeline(broker.address, tmp_path, partitions=2) as live:
        address = free_address()
        settings = tmp_path / "client.properties"
        settings.write_text("session.timeout.ms=2000\n")
        sink = ("sink", "--clickhouse", dsn, "--listen", address, "--kafka-config", str(settings))
        running = [live.start("worker"), live.start(*sink)]
        for number, _ in enumerate(live.publish_in(4, recording)):
            if number in (1, 2):
                until(lambda: live.log.end("windows", 0) > 0)
                outage(broker, kill=number == 1)
        assert live.until_said(expected) == expected
        assert said(live.log, ("late", "dead-letters")) == {"late": [], "dead-letters": []}
        until(lambda: stored_everything(address, sum(map(len, rows.values()))), lambda: str(metrics_at(address)))
        assert [process.poll() for process in running] == [None, None], live.printed()
        # Whoever is asked to stop in an outage stops.
        broker.stop(kill=True)
        try:
            for process in running:
                process.terminate()
            assert [process.wait(30) for process in running] == [0, 0], live.printed()
        finally:
            broker.start()
        assert differences(rows, shown_at(dsn)) == [], live.printed()


def test_publishing_waits_through_an_outage(broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording = JOBS["killed"]()

    def read(folder: Path) -> Recording:
        broker.stop(kill=True)
        threading.Timer(DOWN_S, broker.start).start()
        return recording

    monkeypatch.setattr(rankwatch.publish, "read_recording", read)
    memory = MemoryLog(2)
    publish(recording, memory, until=None, closing_ns=12_000_000_000)
    with pipeline(broker.address, tmp_path, partitions=2) as live:
        where = ["--kafka", broker.address, "--topic-prefix", live.settings.prefix]
        assert run(["publish", str(tmp_path), *where]) == 0
        for topic in ("logs", "metrics"):
            for number in range(2):
                wanted = [(e.key, e.value, e.time) for e in memory.read(topic, number, 0, 100_000)]
                found = live.log.read(topic, number, 0, 100_000)
                assert [(e.key, e.value, e.time) for e in found] == wanted
