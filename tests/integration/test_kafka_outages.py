"""The cluster goes away and comes back: publisher, worker and sink wait for it, and nothing is lost."""

from __future__ import annotations

import threading
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
        running = [live.start("worker"), live.start(*sink)]
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
