"""Login over TLS from a client.properties file, for every command."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka_login import properties, written
from kafka_pipeline import folded, free_address, pipeline, run_all, stored_everything, until
from kafka_rows import differences, expected_rows, shown_at
from kafka_support import Broker
from streams_support import JUDGED, said

from producers.recording import read_recording
from rankwatch import diagnose
from rankwatch.demo import bundled_recording

pytestmark = pytest.mark.xdist_group("kafka")
TOPICS = ("windows", *JUDGED)


def test_the_whole_pipeline_runs_over_tls_with_a_login(broker: Broker, tmp_path: Path) -> None:
    file = written(tmp_path / "client.properties", properties(broker))
    dsn, address = f"chdb://{tmp_path / 'db'}", free_address()
    with bundled_recording() as folder, pipeline("", tmp_path, partitions=2, config=file) as live:
        # What the pipeline has made is there already: both say the same to the cluster.
        create = ["topics", "create", "--partitions", "2", "--ticks", "publisher"]
        assert run_all({"create": create}, *live.where)["create"] == (0, "nothing to do\n")
        recording = read_recording(folder)
        expected = folded(said(diagnose.run(recording).log, TOPICS))
        rows = expected_rows(recording, tmp_path / "expected")
        running = [live.start("worker"), live.start("sink", "--clickhouse", dsn, "--listen", address)]
        assert run_all({"publish": ["publish", str(folder)]}, *live.where)["publish"][0] == 0
        assert live.until_said(expected) == expected
        until(lambda: stored_everything(address, sum(map(len, rows.values()))), live.printed)
        for process in running:
            process.terminate()
        assert [process.wait(30) for process in running] == [0, 0], live.printed()
        assert differences(rows, shown_at(dsn)) == []
