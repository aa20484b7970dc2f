"""What is fatal about lines of no rank: a scheduler speaks for itself, a launcher passes on what others said."""

from __future__ import annotations

import pytest
from detection_support import identity, log, traceback

from streams.stages import node
from streams.stages.fatals import Fatals

CRASHED = "srun: error: node01: task 2: Segmentation fault (core dumped)"
LOST = "[pair.cc:553] Connection closed by peer [127.0.0.1]:11662"


@pytest.mark.parametrize(
    ("process_type", "text", "ended", "templates"),
    [
        ("launcher", CRASHED, False, ["slurm.task_crashed"]),
        ("launcher", "slurmstepd: error: Detected 1 oom_kill event in StepId=77.0.", False, ["slurm.out_of_memory"]),
        ("launcher", "srun: error: node01: tasks 0-1: Exited with exit code 1", False, []),
        ("launcher", traceback("ValueError: bad shard"), False, []),
        ("launcher", LOST, False, []),
        ("trainer", LOST, False, ["gloo.connection_closed"]),
        ("trainer", LOST, True, []),
        ("trainer", CRASHED, True, ["slurm.task_crashed"]),
        ("sampler", traceback("ValueError: bad shard"), False, []),
    ],
)
def test_who_of_no_rank_is_believed(process_type: str, text: str, ended: bool, templates: list[str]) -> None:
    fatals = Fatals()
    node.take(fatals, identity(None, process_type=process_type), log(text), ended=ended)
    assert [one.template for one in fatals.kept] == templates
