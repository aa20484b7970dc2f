"""The cluster goes away and comes back: publisher, worker and sink wait for it, and nothing is lost."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path

import pytest
from kafka_pipeline import folded, free_address, metrics_at, pipeline, stored_everything, until
from kafka_rows import differences, expected_rows, shown_at
from kafka_support import Broker
from streams_support import JOBS, JUDGED, said

from rankwatch import diagnose

pytestmark = [pytest.mark.xdist_group("kafka"), pytest.mark.slow]
TOPICS = ("windows", *JUDGED)
DOWN_S = 2.0
TOLD_S = 8.0
"""How long to wait for what should not be said."""


def outage(broker: Broker, kill: bool) -> threading.Timer:
    """Takes the broker away; it comes back by itself."""
    broker.stop(kill=kill)
    back = threading.Timer(DOWN_S, broker.start)
    back.start()
    return back


def test_publisher_worker_and_sink_wait_through_outages_and_change_no_result(broker: Broker, tmp_path: Path) -> None:
    recording = JOBS["restart"]()
    expected = folded(said(diagnose.run(recording).log, TOPICS))
    rows = expected_rows(recording, tmp_path / "expected")
    dsn = f"chdb://{tmp_path / 'live'}"
    with pipeline(broker.address, tmp_path, partitions=2) as live:
        address = free_address()
        settings = tmp_path / "client.properties"
        settings.write_text("session.timeout.ms=2000\n")
        sink = ("sink", "--clickhouse", dsn, "--listen", address, "--kafka-config", str(settings))
        running = [live.start("worker"), live.start(*sink), live.start("feed")]
        outages: list[threading.Timer] = []
        for number, _ in enumerate(live.publish_in(4, recording)):
            if number in (1, 2):
                until(lambda: live.log.end("windows", 0) > 0, live.printed)
                for one in outages:
                    one.join()
                outages.append(outage(broker, kill=number == 1))
            # The next slice is published while the broker is away, and waits for it.
        assert len(outages) == 2
        for one in outages:
            one.join()
        assert live.until_said(expected) == expected
        assert said(live.log, ("late", "dead-letters")) == {"late": [], "dead-letters": []}
        until(lambda: stored_everything(address, sum(map(len, rows.values()))), lambda: str(metrics_at(address)))
        assert [process.poll() for process in running] == [None, None, None], live.printed()
        # Each says in a line that the cluster is gone and in another that it is back, and libraries say nothing.
        gone, back = f"rankwatch: Kafka at {broker.address} is away since ", "rankwatch: Kafka is back after "
        before = [live.said_by(process) for process in running]

        def news(number: int) -> list[str]:
            return live.said_by(running[number])[len(before[number]) :].splitlines()

        broker.stop(kill=True)
        try:
            until(lambda: all(news(number) for number in range(3)), live.printed)
            time.sleep(TOLD_S)
        finally:
            broker.start()
        until(lambda: all(len(news(number)) > 1 for number in range(3)), live.printed)
        time.sleep(TOLD_S)
        for number in range(3):
            assert [line[: len(one)] for line, one in zip(news(number), (gone, back), strict=True)] == [gone, back]
        # Whoever is asked to stop in an outage stops.
        broker.stop(kill=True)
        try:
            until(lambda: all(len(news(number)) > 2 for number in range(3)), live.printed)
            for process, number in zip(running, (signal.SIGTERM, signal.SIGTERM, signal.SIGINT), strict=True):
                process.send_signal(number)
            assert [process.wait(10) for process in running] == [0, 0, 0], live.printed()
        finally:
            broker.start()
        assert [len(news(number)) for number in range(3)] == [4, 4, 3], live.printed()
        assert news(0)[-1] == "rankwatch: stopped while Kafka is away; what is in the log is safe"
        assert "Traceback" not in live.printed()
        assert differences(rows, shown_at(dsn)) == [], live.printed()
