# ruff: noqa: E501 (real lines stand here as they are printed)
"""By which words jobs, agents and ranks are told to end, and which only look like it."""

from __future__ import annotations

import pytest

from streams.lines.launcher import tells_ends
from streams.lines.stops import stop_of

SAID = [
    ("job", "slurmstepd: error: *** JOB 77 ON node01 CANCELLED AT 2026-11-29T18:10:59 ***"),
    ("job", "slurmstepd: error: *** STEP 77.0 ON node01 CANCELLED AT 2026-11-29T18:10:59 DUE TO TIME LIMIT ***"),
    ("job", "slurmstepd: error: *** JOB 77 ON node01 CANCELLED AT 2026-11-29T18:10:59 DUE TO PREEMPTION ***"),
    ("job", "slurmstepd: error: *** JOB 77 ON node01 CANCELLED AT 2026-11-29T18:10:59 DUE TO JOB REQUEUE ***"),
    (
        "job",
        "slurmstepd: error: *** JOB 14309850 CANCELLED AT 2015-06-30T04:08:07 DUE TO TIME LIMIT on compute-b1-051 ***",
    ),
    ("job", "salloc: Job 1962228 has exceeded its time limit and its allocation has been revoked."),
    ("job", "salloc: Job allocation 1962275 has been revoked."),
    ("job", "srun: sending Ctrl-C to StepId=77.0"),
    ("job", "[exiting program after receiving SIGTERM.] datetime: 2026-09-06 17:57:10 "),
    ("job", "9m  Warning  DeadlineExceeded  job/train  Job was active longer than specified deadline"),
    ("job", "2m  Normal  Preempted  pod/train-worker-3  Preempted by prod/serve-0 on node gpu-7"),
    ("step", "slurmstepd: error: *** STEP 77.0 ON node01 CANCELLED AT 2026-11-29T18:10:59 ***"),
    ("step", "srun: Force Terminated job 32779"),
    ("step", "srun: Force Terminated StepId=77.0"),
    ("step", "srun: forcing job termination"),
    (
        "agent",
        "W1129 19:40:01.332000 23463 torch/distributed/elastic/agent/server/api.py:753] Received 15 death signal, shutting down workers",
    ),
    (
        "agent",
        "W0616 00:37:22.830000 4015698 torch/distributed/elastic/agent/server/api.py:719] Received Signals.SIGTERM death signal, shutting down workers",
    ),
    ("agent", "Received Signals.SIGHUP death signal, shutting down workers"),
    ("agent", "Received 2 death signal, shutting down workers"),
    ("agent", "torch.distributed.elastic.multiprocessing.api.SignalException: Process 23463 got signal: 15"),
    (
        "agent",
        "[2026-11-29 12:00:00,000] [INFO] [launch.py:319:sigkill_handler] Main process received SIGTERM, exiting",
    ),
    ("rank", "[rank: 3] Received SIGTERM: 15"),
    ("save", "Handling auto-requeue signal: 10"),
    ("rank", "WARNING: rank 3 received signal 15, will save and exit"),
    ("save", "Caught SIGUSR1, saving a checkpoint"),
    ("save", "rank 3 received signal 10, will save"),
    ("task", "srun: error: node02: task 4: Exited with exit code 1"),
    ("task", "srun: error: node02: tasks 0,2-3: Out Of Memory"),
    ("task", "srun: error: node02: task 3: Killed"),
    ("task", "failed (exitcode: 1) local_rank: 3 (pid: 1003) of binary: python"),
    ("node", "srun: error: Node failure on jean-zay-iam49"),
    (
        "node",
        "slurmstepd: error: *** JOB 77 ON node01 CANCELLED AT 2026-11-29T18:10:59 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***",
    ),
]


@pytest.mark.parametrize(("word", "line"), SAID)
def test_a_word_is_read_and_looked_for(word: str, line: str) -> None:
    assert stop_of(line) == word
    assert tells_ends(line)


@pytest.mark.parametrize(
    "line",
    [
        *("", "Received 11 death signal, shutting down workers", "got signal: 11", "got signal: 150"),
        "srun: error: node02: task 4: Exited with exit code 143",
        "srun: error: node02: task 4: Terminated",
        *(f"failed (exitcode: {code}) local_rank: 3 (pid: 1003) of binary: python" for code in (0, -15, -9, 143)),
        "srun: job 77 queued and waiting for resources",
        "registered a handler for SIGTERM and SIGUSR1",
        "--signal=SIGUSR1@300",
        "received signal 11",
        "job was not CANCELLED AT all",
    ],
)
def test_what_only_looks_like_a_word_is_none(line: str) -> None:
    assert stop_of(line) == ""


def test_what_an_agent_raises_is_a_ranks_own_word_where_a_rank_raises_it() -> None:
    assert stop_of("SignalException: Process 23463 got signal: 15", trains=True) == "rank"
    assert stop_of("Received 15 death signal, shutting down workers", trains=True) == "agent"


OF_THE_SCHEDULER = [
    (word, line) for word, line in SAID if word in ("job", "step", "task", "node") and " pod/" not in line
]


@pytest.mark.parametrize(("word", "line"), OF_THE_SCHEDULER)
def test_a_schedulers_word_counts_in_a_ranks_file_where_a_record_begins_with_it(word: str, line: str) -> None:
    if "DeadlineExceeded" not in line:
        assert stop_of(line, trains=True) == stop_of(f"3: {line}", trains=True) == word
    assert stop_of(f"sample 7: {line} what happened to my job?", trains=True) == ""
    assert stop_of(f"sample 7:\n{line}", trains=True) == ""
