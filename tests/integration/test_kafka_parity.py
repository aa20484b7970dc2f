"""Workers over Kafka say the same as a run in memory, byte for byte, however partitions are shared out."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
from kafka_pipeline import Pipeline, folded, free_address, metrics_at, pipeline, side_by_side, until
from streams_support import JOBS, JUDGED, SHARED, said

from producers.recording import Recording, merged, read_recording
from rankwatch import diagnose
from rankwatch.demo import bundled_recording
from streams.live import INPUTS

pytestmark = pytest.mark.xdist_group("kafka")
TOPICS = ("windows", *JUDGED)
RECORDED = ("dataloader-hang", "exception", "straggler")


def expected_of(recording: Recording) -> dict[str, list[bytes]]:
    """What ``diagnose`` says of the recording."""
    found = folded(said(diagnose.run(recording).log, TOPICS))
    assert found["anomalies"] and found["incidents"]
    return found


def check(live: Pipeline, recording: Recording) -> None:
    expected = expected_of(recording)
    found = live.until_said(expected)
    assert found == expected, "something was said that a run in memory does not say"
    assert said(live.log, ("late", "dead-letters")) == {"late": [], "dead-letters": []}


def recordings() -> list[Recording]:
    """Three recorded jobs; where they are not there, the bundled one and two that are made up."""
    if SHARED.is_dir():
        return [read_recording(SHARED / name) for name in RECORDED]
    with bundled_recording() as folder:
        return [read_recording(folder), JOBS["restart"](), JOBS["slow"]()]


def test_two_workers_say_of_three_jobs_at_once_what_diagnose_says(kafka: str, tmp_path: Path) -> None:
    recording = merged(side_by_side(recordings()))
    with pipeline(kafka, tmp_path, partitions=4) as live:
        addresses = [free_address(), free_address()]
        for address in addresses:
            live.start("worker", "--listen", address)
        time.sleep(5)
        live.publish(recording)
        check(live, recording)
        shares = [owned(metrics_at(address)) for address in addresses]
        for stage in INPUTS:
            assert all(share[stage] for share in shares), f"both workers have work: {shares}"
            assert sorted(shares[0][stage] + shares[1][stage]) == ["0", "1", "2", "3"], shares


def owned(samples: dict[str, float]) -> dict[str, list[str]]:
    """Partition numbers by stage."""
    names = [name for name in samples if name.startswith("rankwatch_open_windows{")]
    return {stage: [name.split('"')[1] for name in names if f'stage="{stage}"' in name] for stage in INPUTS}


def test_one_worker_drains_a_backlog_partition_after_partition(kafka: str, tmp_path: Path) -> None:
    recording = merged(side_by_side(recordings()))
    with pipeline(kafka, tmp_path, partitions=3) as live:
        live.publish(recording)
        live.start("worker")
        check(live, recording)


def test_workers_that_join_and_leave_in_the_middle_change_nothing(kafka: str, tmp_path: Path) -> None:
    recording = merged(side_by_side(recordings()[:2]))
    with pipeline(kafka, tmp_path, partitions=4) as live:
        first = live.start("worker")
        live.start("worker", "--stage", "job")
        live.publish(recording)
        live.start("worker")
        # Whoever has closed a window can be asked to stop; before, while it starts, it would only be killed.
        until(lambda: live.log.end("windows", 0) > 0, live.printed)
        time.sleep(2)
        first.terminate()
        check(live, recording)
        # Asked to stop before it was up, it ends by the signal.
        assert first.wait(30) in (0, -signal.SIGTERM)
