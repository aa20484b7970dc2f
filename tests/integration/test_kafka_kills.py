"""Workers and the sink are killed between any two steps: nothing is lost, nothing is seen twice, no result changes."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from kafka_pipeline import SESSION_S, Pipeline, folded, pipeline
from kafka_rows import Rows, differences, expected_rows, produced, shown_at
from streams_support import JOBS, JUDGED, said

from producers.recording import Recording
from rankwatch import diagnose

pytestmark = pytest.mark.xdist_group("kafka")
DYING = Path(__file__).parents[1] / "kafka_dying.py"
TOPICS = ("windows", *JUDGED)

# The first commit of a process only says where it begins.
WORKER_STEPS = ("append:1", "append:5", "flush:1", "snapshot:1", "flush:2", "commit:2", "committed:2")
SINK_STEPS = ("insert:1", "inserted:1", "commit:1", "committed:1")


def dies(live: Pipeline, monkeypatch: pytest.MonkeyPatch, step: str, *arguments: str) -> None:
    """Start a process that kills itself at a step, and wait until it has."""
    monkeypatch.setenv("DIE_AT", step)
    process = live.start(*arguments, program=(str(DYING),))
    try:
        code = process.wait(60)
    except subprocess.TimeoutExpired:
        code = 0
    assert code == -signal.SIGKILL, f"{step} was not reached: {live.said_by(process)}"


def until_rows(live: Pipeline, sink: subprocess.Popen[str], dsn: str, expected: Rows) -> None:
    """Stop the sink when it has read everything, and compare what the database shows."""
    until = time.monotonic() + 90
    found = ["not looked at"]
    while found and time.monotonic() < until:
        time.sleep(2)
        sink.terminate()
        assert sink.wait(60) == 0, live.printed()
        found = differences(expected, shown_at(dsn))
        if found:
            sink = live.start("sink", "--clickhouse", dsn)
            time.sleep(3)
    assert found == []


@pytest.mark.parametrize("stage", ["rank", "job"])
def test_a_worker_killed_at_each_step_changes_no_result(
    stage: str, kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = JOBS["two at once"]()
    expected = folded(said(diagnose.run(recording).log, TOPICS))
    with pipeline(kafka, tmp_path, partitions=2) as live:
        if stage == "job":
            live.start("worker", "--stage", "rank")
        for step, _ in zip(WORKER_STEPS, live.publish_in(len(WORKER_STEPS), recording), strict=True):
            dies(live, monkeypatch, step, "worker", "--stage", stage)
        live.start("worker")
        assert live.until_said(expected) == expected
        assert said(live.log, ("late", "dead-letters")) == {"late": [], "dead-letters": []}


def test_workers_that_were_taken_for_dead_and_come_back_change_nothing(kafka: str, tmp_path: Path) -> None:
    """Stopped for longer than a session, a worker goes on with partitions that others own by then."""
    recording = JOBS["two at once"]()
    expected = folded(said(diagnose.run(recording).log, TOPICS))
    with pipeline(kafka, tmp_path, partitions=2) as live:
        workers = [live.start("worker") for _ in range(2)]
        for stopped, _ in zip(workers * 2, live.publish_in(4, recording), strict=True):
            time.sleep(2)
            os.kill(stopped.pid, signal.SIGSTOP)
            time.sleep(2 * float(SESSION_S))
            os.kill(stopped.pid, signal.SIGCONT)
        assert live.until_said(expected) == expected
        assert said(live.log, ("late", "dead-letters")) == {"late": [], "dead-letters": []}


def test_a_sink_killed_at_each_step_shows_every_event_once(
    kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = JOBS["restart"]()
    expected = expected_rows(recording, tmp_path / "expected")
    dsn = f"chdb://{tmp_path / 'live'}"
    with pipeline(kafka, tmp_path, partitions=2) as live:
        live.start("worker")
        for step, _ in zip(SINK_STEPS, live.publish_in(len(SINK_STEPS), recording), strict=True):
            dies(live, monkeypatch, step, "sink", "--clickhouse", dsn)
        live.until_said(folded(said(diagnose.run(recording).log, TOPICS)))
        until_rows(live, live.start("sink", "--clickhouse", dsn), dsn, expected)
        shown = shown_at(dsn)
        assert {table: len(shown[table]) for table in produced(recording)} == produced(recording)


@pytest.mark.parametrize("seed", [1, 2])
def test_kills_at_random_moments_change_nothing(seed: int, kafka: str, tmp_path: Path) -> None:
    chance = random.Random(seed)
    recording: Recording = JOBS["restart"]()
    expected = expected_rows(recording, tmp_path / "expected")
    dsn = f"chdb://{tmp_path / 'live'}"
    commands = {
        "rank": ("worker", "--stage", "rank"),
        "job": ("worker", "--stage", "job"),
        "fleet": ("worker", "--stage", "fleet"),
        "sink": ("sink", "--clickhouse", dsn),
    }
    with pipeline(kafka, tmp_path, partitions=2) as live:
        running = {name: live.start(*command) for name, command in commands.items()}
        live.publish(recording)
        for _ in range(6):
            time.sleep(chance.uniform(0.5, 4.0))
            name = chance.choice(sorted(running))
            os.kill(running[name].pid, signal.SIGKILL)
            running[name].wait(30)
            running[name] = live.start(*commands[name])
        live.until_said(folded(said(diagnose.run(recording).log, TOPICS)))
        until_rows(live, running["sink"], dsn, expected)
