"""Recorded jobs beside each other: two that have nothing in common, and one fault copied into ten jobs of a cluster."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import msgspec
import pytest
from kafka_pipeline import moved
from streams_support import CONFIG, SHARED

from producers.recording import Recording, merged, read_recording
from rankwatch.diagnose import Diagnosis, as_json, diagnose, run
from schemas.identity import NO_JOB
from schemas.results import Incident

needs_recordings = pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded jobs are not there")
TOGETHER = ("kill", "dataloader-hang", "straggler", "oom")
"""The first of a pair stays where it is in time: the ends that its launcher prints do not move with its records."""
COPIES = 10
GUILTY = {"dataloader-hang": "node02", "kill": "node03"}


def fleet_of(found: Diagnosis) -> list[Incident]:
    return [one for one in found.incidents if one.job == NO_JOB]


def beside(recordings: list[Recording]) -> list[Recording]:
    """Moved by whole windows so that all begin in the same one."""
    window = CONFIG.window_ns
    first = recordings[0].span[0] // window
    return [moved(one, (first - one.span[0] // window) * window) for one in recordings]


def told(found: Diagnosis) -> dict[str, list[tuple[object, ...]]]:
    """What is said of each job."""
    by_job: dict[str, list[tuple[object, ...]]] = {}
    for one in found.incidents:
        who = [suspect.rank for suspect in one.suspects]
        by_job.setdefault(one.job, []).append((one.id, one.symptom, one.area, one.verdict, one.onset, who, one.scope))
    return by_job


@needs_recordings
@pytest.mark.parametrize("names", [*combinations(TOGETHER, 2)], ids="+".join)
def test_two_recorded_jobs_side_by_side_give_exactly_their_incidents(names: tuple[str, ...]) -> None:
    parts = beside([read_recording(SHARED / name) for name in names])
    alone: dict[str, list[tuple[object, ...]]] = {}
    for part in parts:
        alone |= told(run(part))
    assert len(alone) == len(names)
    assert told(run(merged(parts))) == alone


def as_job(recording: Recording, job: str) -> Recording:
    """The recording as if another job had lived through it."""
    arrivals = []
    for arrival in recording.arrivals:
        identity = msgspec.structs.replace(arrival.batch.identity, job=job)
        batch = msgspec.structs.replace(arrival.batch, identity=identity, boot=f"{arrival.batch.boot} of {job}")
        arrivals.append(msgspec.structs.replace(arrival, batch=batch))
    return msgspec.structs.replace(recording, job=job, arrivals=arrivals)


def assert_one_failure(found: Diagnosis, jobs: set[str], node: str) -> None:
    """One failure of all these jobs at the node, of which each job's one incident is part."""
    (whole,) = fleet_of(found)
    assert (whole.scope.kind, whole.scope.name, whole.verdict, whole.severity) == (
        "node",
        node,
        "supported",
        "critical",
    )
    assert {member.job for member in whole.members} == jobs
    told = {one["job"]: one for one in as_json(found)["incidents"] if one["job"] != NO_JOB}
    assert told.keys() == jobs
    assert len(found.incidents) == len(jobs) + 1
    assert {one["fleet"] for one in told.values()} == {whole.id}
    assert found.incidents[0] == whole
    assert whole.onset == min(one.onset for one in found.incidents)


@needs_recordings
@pytest.mark.parametrize("name", GUILTY)
def test_a_fault_copied_into_ten_jobs_of_a_folder_is_one_failure(name: str, tmp_path: Path) -> None:
    source = SHARED / name
    job = read_recording(source).job
    jobs = {f"run-{700 + number}" for number in range(COPIES)}
    for copy in sorted(jobs):
        for path in sorted(source.rglob("*")):
            if path.is_file() and path.name != "truth.json":
                target = tmp_path / f"of {copy}" / path.relative_to(source).as_posix().replace(job, copy)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(path.read_bytes().replace(job.encode(), copy.encode()))
    assert_one_failure(diagnose(tmp_path), jobs, GUILTY[name])


@needs_recordings
@pytest.mark.parametrize("name", GUILTY)
def test_a_fault_copied_into_ten_jobs_of_a_log_is_one_failure(name: str) -> None:
    recording = read_recording(SHARED / name)
    jobs = {f"job-{number}" for number in range(COPIES)}
    copies = merged([as_job(recording, job) for job in sorted(jobs)])
    assert_one_failure(run(copies, partitions=3), jobs, GUILTY[name])


@needs_recordings
def test_copies_on_nodes_of_their_own_have_nothing_in_common_but_the_time() -> None:
    """Most jobs at once are told as such, and no place is suspected; two jobs of many are not told at all."""

    def elsewhere(recording: Recording, number: int) -> Recording:
        arrivals = []
        for arrival in recording.arrivals:
            who = arrival.batch.identity
            identity = msgspec.structs.replace(who, node=f"{who.node}-{number}" if who.node else "")
            batch = msgspec.structs.replace(arrival.batch, identity=identity)
            arrivals.append(msgspec.structs.replace(arrival, batch=batch))
        return msgspec.structs.replace(recording, arrivals=arrivals)

    recording = read_recording(SHARED / "kill")
    copies = [elsewhere(as_job(recording, f"job-{number}"), number) for number in range(6)]
    (wide,) = fleet_of(run(merged(copies)))
    assert (wide.scope.kind, wide.scope.nodes, wide.severity, wide.verdict) == ("fleet", [], "warning", "ambiguous")
    assert fleet_of(run(merged(copies[:3]))) == []
