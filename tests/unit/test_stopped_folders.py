"""Recorded folders of jobs that were ended from outside, as schedulers and launchers leave them behind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from rankwatch import diagnose
from schemas.results import Incident
from streams.incidents.decision import Reason
from streams.report import moment

RANKS, STEPS = 8, 60
AT = "2026-11-29T12:01:05"
AGENT = "W1129 12:01:05.332000 23464 torch/distributed/elastic/"
SIGTERM = f"{AGENT}agent/server/api.py:719] Received Signals.SIGTERM death signal, shutting down workers"
SIGINT = SIGTERM.replace("SIGTERM", "SIGINT")
ERROR = ["Traceback (most recent call last):", '  File "train.py", line 9, in <module>', "    main()"]
WATCHDOG = (
    "[rank{0}]:[E1129 12:01:06.000000000 ProcessGroupNCCL.cpp:1316] [PG 0 Rank {0}] Process group watchdog thread "
    "terminated with exception: NCCL error: remote process exited or there was a network error"
)
LOST = "[rank{0}]: torch.distributed.DistBackendError: NCCL error: remote process exited or there was a network error"
ENDED = ["srun: error: n0: tasks 0-3: Terminated", "srun: error: n1: tasks 4-7: Terminated"]


def step(number: int, who: str = "") -> str:
    minute, second = divmod(number, 60)
    return f"2026-11-29 12:{minute:02d}:{second:02d},000 INFO {who}step {number} loss {3 - number / 100:.3f}"


def slurm(folder: Path, *tail: str) -> Path:
    """What ``srun --label`` writes, and behind it what Slurm says in the end."""
    lines = [f"{rank}: 2026-11-29 12:00:00,100 INFO rank {rank}/{RANKS} host n{rank // 4}" for rank in range(RANKS)]
    lines += [f"{rank}: {step(number)}" for number in range(1, STEPS + 1) for rank in range(RANKS)]
    (folder / "slurm-77.out").write_text("\n".join([*lines, *tail]) + "\n")
    return folder


def torchrun(folder: Path, said: str, rank_says: Callable[[int], Sequence[str]] = lambda rank: ()) -> Path:
    """Logs of ranks, and those of the agents of two nodes."""
    for rank in range(RANKS):
        place = folder / "logs" / f"node0{rank // 4}" / "none_abc" / "attempt_0" / str(rank % 4)
        place.mkdir(parents=True)
        lines = [f"2026-11-29 12:00:00,100 INFO [rank {rank}] starting, world size: {RANKS}"]
        lines += [step(number, f"[rank {rank}] ") for number in range(1, STEPS + 1)]
        (place / "stdout.log").write_text("\n".join(lines) + "\n")
        (place / "stderr.log").write_text("\n".join([*rank_says(rank), ""]))
    for node in range(2):
        lines = ["W1129 12:00:00.100000 23464 torch/distributed/run.py:774] Setting OMP_NUM_THREADS", said]
        closing = f"{AGENT}multiprocessing/api.py:1028] Sending process {{}} closing signal SIGTERM"
        lines += [closing.format(1000 + 10 * node + local) for local in range(4)] if said else []
        (folder / f"agent_node0{node}.log").write_text("\n".join(lines) + "\n")
    return folder


def plain(folder: Path, *tail: str) -> Path:
    (folder / "train.log").write_text("\n".join([*(step(number) for number in range(1, STEPS + 1)), *tail]) + "\n")
    return folder


def cancelled(what: str, reason: str = "", at: str = AT) -> str:
    return f"slurmstepd: error: *** {what} ON n0 CANCELLED AT {at}{reason} ***"


NODE_FAILURE = " DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS"


INTERRUPTED = [*ERROR, "KeyboardInterrupt"]
STOPPED: dict[str, Callable[[Path], Path]] = {
    "scancel": lambda place: slurm(place, cancelled("JOB 77"), cancelled("STEP 77.0"), *ENDED),
    "scancel of a step": lambda place: slurm(place, cancelled("STEP 77.0"), *ENDED),
    "scancel, and those that lived on are killed": lambda place: slurm(
        place, cancelled("JOB 77"), cancelled("STEP 77.0"), ENDED[0], "srun: error: n1: tasks 4-7: Killed"
    ),
    "time limit": lambda place: slurm(place, cancelled("STEP 77.0", " DUE TO TIME LIMIT"), *ENDED),
    "preempted": lambda place: slurm(place, cancelled("JOB 77", " DUE TO PREEMPTION"), *ENDED),
    "torchrun": lambda place: torchrun(place, SIGTERM),
    "torchrun, torn down": lambda place: torchrun(
        place, SIGTERM, lambda rank: [WATCHDOG.format(rank), "Fatal Python error: Aborted"]
    ),
    "ranks alone": lambda place: torchrun(place, "", lambda rank: INTERRUPTED),
    "by hand": lambda place: plain(place, SIGINT, *INTERRUPTED),
    "by hand, no launcher": lambda place: plain(place, *INTERRUPTED),
}


def paging(folder: Path) -> list[Incident]:
    return [one for one in diagnose.diagnose(folder).incidents if one.severity != "info"]


@pytest.mark.parametrize("make", STOPPED.values(), ids=STOPPED)
def test_a_recorded_job_that_was_ended_from_outside_is_no_incident(
    make: Callable[[Path], Path], tmp_path: Path
) -> None:
    assert [(one.symptom, one.summary) for one in paging(make(tmp_path))] == []


def test_a_task_that_failed_before_its_step_was_cancelled_is_one(tmp_path: Path) -> None:
    lines = [f"3: {line}" for line in (*ERROR, "ValueError: bad shard")]
    lines += ["srun: error: n0: task 3: Exited with exit code 1", cancelled("STEP 77.0"), *ENDED]
    assert [one.symptom for one in paging(slurm(tmp_path, *lines))] == ["crash"]


def test_a_task_that_its_node_killed_before_its_step_was_cancelled_is_one(tmp_path: Path) -> None:
    killed = "Out of memory: Killed process 4142 (python3) total-vm:9000kB, anon-rss:8000kB, file-rss:10kB"
    (tmp_path / "syslog-n0").write_text(f"Nov 29 12:01:02 n0 kernel: {killed}\n")
    lines = ["srun: error: n0: task 3: Killed", cancelled("STEP 77.0"), *ENDED]
    (found,) = paging(slurm(tmp_path, *lines))
    assert (found.symptom, [one.rank for one in found.suspects]) == ("memory", [])


def test_a_node_that_failed_is_one_of_that_node(tmp_path: Path) -> None:
    (found,) = paging(slurm(tmp_path, "srun: error: Node failure on n1", cancelled("STEP 77.0", NODE_FAILURE)))
    assert (found.symptom, found.scope.nodes) == ("crash", ["n1"])


def test_a_node_that_slurm_gives_up_minutes_later_failed_at_the_time_in_its_words(tmp_path: Path) -> None:
    (found,) = paging(slurm(tmp_path, cancelled("STEP 77.0", NODE_FAILURE, "2026-11-29T12:06:05")))
    assert (found.symptom, found.reason) == ("crash", Reason.NODE_FAULT.value)
    assert moment(found.onset) == "2026-11-29T12:06:05.000Z"


def test_an_error_before_the_time_in_slurms_words_is_no_part_of_the_end(tmp_path: Path) -> None:
    """Slurm's own file holds no other time, and the job stood for minutes before somebody gave it up."""
    folder = torchrun(tmp_path, "", lambda rank: [*ERROR, "ValueError: bad shard"] if rank == 3 else ())
    (folder / "slurm-77.out").write_text(cancelled("JOB 77", at="2026-11-29T12:06:05") + "\n")
    (found,) = paging(folder)
    assert (found.symptom, [suspect.rank for suspect in found.suspects]) == ("crash", [3])


@pytest.mark.parametrize("clock", ["04:06:05", "20:06:05"])
def test_a_clock_of_another_zone_in_slurms_words_makes_no_standstill(clock: str, tmp_path: Path) -> None:
    found = diagnose.diagnose(slurm(tmp_path, cancelled("JOB 77", at=f"2026-11-29T{clock}")))
    assert found.incidents == []


def test_a_rank_that_is_terminated_alone_is_one(tmp_path: Path) -> None:
    lost = "[rank{0}]: RuntimeError: Connection closed by peer [10.0.0.{0}]:4711"
    killed = [*ERROR, "torch.distributed.elastic.multiprocessing.api.SignalException: Process 7 got signal: 15"]
    folder = torchrun(tmp_path, "", lambda rank: killed if rank == 3 else [*ERROR, lost.format(rank)])
    assert [one.symptom for one in paging(folder)] == ["crash"]


FAILED = f"{AGENT}multiprocessing/api.py:1002] failed (exitcode: {{}}) local_rank: {{}} (pid: {{}}) of binary: python"
CLOSING = f"{AGENT}multiprocessing/api.py:1028] Sending process {{}} closing signal SIGTERM"


def failed(node: int, *local: int, code: int = 1, reports: bool = True) -> list[str]:
    """The agent's line of each end, and its report, which knows ranks, where it writes one."""
    lines = [FAILED.format(code, one, 1000 + 10 * node + one) for one in local]
    report = ["=" * 60, "train.py FAILED", "-" * 60, "Root Cause (first observed failure):"]
    for one in local if reports else ():
        report += [f"[{one}]:", "  time      : 2026-11-29_12:01:05", f"  host      : node0{node}"]
        report += [f"  rank      : {4 * node + one} (local_rank: {one})"]
        report += [f"  exitcode  : {code} (pid: {1000 + 10 * node + one})", "  error_file: <N/A>"]
        report += ["  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"]
    return [*lines, *report, "=" * 60] if reports else lines


def launched(folder: Path, *said: list[str]) -> Path:
    """Ranks that print nothing but steps, and what the agents of both nodes say."""
    torchrun(folder, "")
    for node, lines in enumerate(said):
        with (folder / f"agent_node0{node}.log").open("a") as log:
            log.write("".join(f"{line}\n" for line in lines))
    return folder


ALL_FAILED = [failed(node, *range(4)) for node in range(2)]
ONE_FAILED = [
    [*(CLOSING.format(1000 + local) for local in (0, 1, 2)), *failed(0, 3)],
    [CLOSING.format(1010 + local) for local in range(4)],
]


@pytest.mark.parametrize("said", [ALL_FAILED, ONE_FAILED], ids=["all", "one"])
def test_a_crash_of_which_only_exit_codes_tell_is_one_incident_and_names_nobody(
    said: list[list[str]], tmp_path: Path
) -> None:
    (found,) = diagnose.diagnose(launched(tmp_path, *said)).incidents
    assert (found.symptom, found.verdict, found.suspects) == ("crash", "ambiguous", [])
    assert (found.severity, found.reason) == ("critical", Reason.EXIT_CODE.value)
    (told,) = [one for one in found.evidence if "exit code" in one.text]
    assert ("rank 3 ended" in told.text) == (said is ONE_FAILED)


@pytest.mark.parametrize(
    "make",
    [
        lambda place: launched(place, *(failed(node, *range(4), reports=False) for node in range(2))),
        lambda place: slurm(place, "srun: error: n0: task 3: Exited with exit code 1"),
        lambda place: slurm(place, "srun: error: n0: task 3: Exited with exit code 1", cancelled("STEP 77.0"), *ENDED),
    ],
    ids=["agents without a report", "srun", "srun, and then it ends the step"],
)
def test_so_is_one_of_which_a_launcher_tells_without_ranks(make: Callable[[Path], Path], tmp_path: Path) -> None:
    (found,) = paging(make(tmp_path))
    assert (found.symptom, found.suspects, found.reason) == ("crash", [], Reason.EXIT_CODE.value)


@pytest.mark.parametrize("code", [0, 143])
def test_ends_that_were_asked_for_or_went_well_are_none_without_a_report(code: int, tmp_path: Path) -> None:
    assert paging(launched(tmp_path / "torchrun", failed(0, *range(4), code=code, reports=False))) == []
    other = tmp_path / "slurm"
    other.mkdir()
    assert paging(slurm(other, cancelled("JOB 77"), "srun: error: n0: task 3: Exited with exit code 1", *ENDED)) == []


def test_ends_with_success_are_no_incident(tmp_path: Path) -> None:
    ends = [failed(node, *range(4), code=0) for node in range(2)]
    assert paging(launched(tmp_path, *ends)) == []


def test_exit_codes_beside_an_error_change_nothing(tmp_path: Path) -> None:
    def said(rank: int) -> Sequence[str]:
        return [*ERROR, "ValueError: bad shard"] if rank == 5 else ()

    before = paging(torchrun(tmp_path / "before", "", said))
    folder = torchrun(tmp_path / "then", "", said)
    with (folder / "agent_node01.log").open("a") as log:
        log.write("\n".join([*failed(1, 1), ""]))
    (found,) = paging(folder)
    assert [(one.symptom, one.suspects, one.reason) for one in before] == [
        (found.symptom, found.suspects, found.reason)
    ]


@pytest.mark.parametrize("second", [3, 7, 8, 9])
def test_a_recording_that_ends_with_a_crash_names_who_failed_wherever_in_a_window_that_was(
    second: int, tmp_path: Path
) -> None:
    for rank in range(RANKS):
        lines = [f"2026-11-29 12:00:00,100 INFO [rank {rank}] starting, world size: {RANKS}"]
        lines += [step(number, f"[rank {rank}] ") for number in range(1, 51 + second)]
        at = f"2026-11-29 12:00:{50 + second},{200 if rank == 3 else 600} ERROR [rank {rank}] uncaught exception"
        lines += [at, *ERROR, "ValueError: bad shard" if rank == 3 else LOST.format(rank)]
        (tmp_path / f"rank_{rank}.log").write_text("\n".join(lines) + "\n")
    (found,) = paging(tmp_path)
    assert ([one.rank for one in found.suspects], found.verdict, found.onset % 10_000_000_000 // 1_000_000_000) == (
        [3],
        "supported",
        second,
    )


@pytest.mark.parametrize("pids", [range(4000, 4008), [4003] * 8], ids=["each its own", "one for all"])
def test_a_kernels_kill_is_of_the_rank_that_introduced_itself_by_that_process(
    pids: Sequence[int], tmp_path: Path
) -> None:
    for rank in range(RANKS):
        said = f"process group world_size={RANKS} rank={rank} local_rank={rank} host=n0 pid={pids[rank]}"
        lines = [f"2026-11-29 12:00:00,100 INFO {said}", *(step(number) for number in range(1, STEPS + 1))]
        if rank != 3:
            lines += ["2026-11-29 12:01:03,500 ERROR uncaught exception", *ERROR, LOST.format(rank)]
        (tmp_path / f"rank_{rank}.log").write_text("\n".join(lines) + "\n")
    kill = "kernel: Out of memory: Killed process 4003 (python) total-vm:1kB, anon-rss:1kB, file-rss:0kB"
    (tmp_path / "n0.messages").write_text(f"2026-11-29T12:01:02.100000+00:00 n0 {kill}\n")
    (found,) = paging(tmp_path)
    assert (found.symptom, [one.rank for one in found.suspects]) == ("memory", [] if pids[0] == pids[1] else [3])
