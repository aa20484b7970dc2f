"""Whole jobs that are cancelled, preempted or ended: no incident; and faults that stand though the job is ended."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from lifecycle_jobs import (
    FAULTS,
    JOB,
    LIMIT,
    LOST,
    NODES,
    PREEMPTED,
    REQUEUED,
    SLURM,
    STOPPED,
    hung_then,
    node_failed,
    training,
)
from streams_support import TRACEBACK, Script, worker

from rankwatch import diagnose
from schemas.results import Incident


def incidents(script: Script) -> list[Incident]:
    return diagnose.run(script.recording).incidents


@pytest.mark.parametrize("make", STOPPED.values(), ids=STOPPED)
def test_a_job_that_is_ended_from_outside_is_no_incident(make: Callable[[], Script]) -> None:
    assert [(one.symptom, one.severity, one.summary) for one in incidents(make()) if one.severity != "info"] == []


@pytest.mark.parametrize(("make", "symptom", "named"), FAULTS.values(), ids=FAULTS)
def test_a_fault_that_stood_before_stays(make: Callable[[], Script], symptom: str, named: list[int]) -> None:
    (found,) = incidents(make())
    assert (found.severity, found.symptom) == ("critical", symptom)
    assert [suspect.rank for suspect in found.suspects] == named


@pytest.mark.parametrize(
    ("lost", "named"), [([1], []), ([0, 1, 3, 6], [4])], ids=["one peer loses somebody", "most peers lose somebody"]
)
def test_an_error_of_who_lives_on_is_not_named_for_what_one_peer_prints(lost: list[int], named: list[int]) -> None:
    script = training(alive=56)
    script.log(worker(script.job, 4), 30.8, TRACEBACK.replace("in train", "in <module>"))
    for rank in lost:
        script.log(worker(script.job, rank), 31.5 + rank / 10, LOST.format(rank))
    (found,) = incidents(script)
    assert [suspect.rank for suspect in found.suspects] == named


@pytest.mark.parametrize(
    ("words", "resolution"),
    [
        ("", "the job was stopped by its owner"),
        (LIMIT, "the job ran out of time"),
        (PREEMPTED, "the job was preempted"),
        (REQUEUED, "the job was preempted"),
    ],
)
def test_what_a_fault_was_ended_for_is_said(words: str, resolution: str) -> None:
    (found,) = incidents(hung_then(SLURM.format(JOB, NODES[0], words)))
    assert (found.symptom, found.status, found.resolution) == ("hang", "resolved", resolution)


def test_a_node_that_its_scheduler_says_has_failed_is_the_place() -> None:
    (found,) = incidents(node_failed("srun: error: Node failure on node02"))
    assert found.scope.nodes == ["node02"]
