"""The fleet stage over Kafka: it says what a run in memory says, also where it is killed between any two steps."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from kafka_pipeline import folded, pipeline
from streams_support import JOBS, JUDGED, said

from rankwatch import diagnose
from schemas.identity import NO_JOB

pytestmark = pytest.mark.xdist_group("kafka")
DYING = Path(__file__).parents[1] / "kafka_dying.py"
STEPS = ("snapshot:1", "commit:2", "append:1")
"""The first commit of a process only says where it begins; only the last slice has anything to append."""


def test_a_fleet_stage_that_is_killed_says_what_a_run_in_memory_says(
    kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = JOBS["one node"]()
    found = diagnose.run(recording)
    assert NO_JOB in {one.job for one in found.incidents}
    expected = folded(said(found.log, JUDGED))
    with pipeline(kafka, tmp_path, partitions=2) as live:
        for stage in ("rank", "job"):
            live.start("worker", "--stage", stage)
        for step, _ in zip(STEPS, live.publish_in(len(STEPS), recording), strict=True):
            monkeypatch.setenv("DIE_AT", step)
            process = live.start("worker", "--stage", "fleet", program=(str(DYING),))
            assert process.wait(60) == -signal.SIGKILL, live.said_by(process)
        live.start("worker", "--stage", "fleet")
        assert live.until_said(expected) == expected
        assert said(live.log, ("late", "dead-letters")) == {"late": [], "dead-letters": []}
