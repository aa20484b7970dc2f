"""Whole jobs that begin another attempt: what was wrong with the one before is over, and the new one is judged anew."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streams_support import (
    RANKS_PER_NODE,
    Script,
    agent,
    at,
    dying,
    hanging,
    node_of,
    pid_of,
    recording_of,
    records,
    restarting,
    run,
    slowing,
    worker,
    written_log,
)

from rankwatch import diagnose
from schemas.events import Heartbeat, Log, Topology
from schemas.identity import Identity
from schemas.results import Incident

XID = "NVRM: Xid (PCI:0000:0f:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."


def again(script: Script, ranks: int, second: float, steps: int = 40, attempt: str = "1") -> Script:
    """Another attempt begins, and trains."""
    script.start(ranks, second, attempt)
    script.train(ranks, 1, steps, attempt=attempt, zero=second + 1)
    script.alive(ranks, int(second) + 1, int(second) + steps + 2, attempt=attempt)
    return script


def nan(ranks: int = 8) -> Script:
    script = Script("job")
    script.start(ranks)
    script.train(ranks, 1, 40)
    script.alive(ranks, 0, 60)
    for step in range(20, 60):
        line = f"iteration {step:8d}/ 500 | lm loss: nan | grad norm: nan |"
        script.log(worker("job", 0), step + 0.53, line, step)
    return script


def faulty_gpu(ranks: int = 8) -> Script:
    script = Script("job")
    script.start(ranks)
    script.train(ranks, 1, 40)
    script.alive(ranks, 0, 44)
    kernel = Identity(job="job", node=node_of(2), rank_reason="log of a node", process_type="kernel")
    script.send(kernel, Log(time=at(30), stream="kernel", text=XID, process_type="kernel"))
    return script


def late_words() -> Script:
    """The attempt before has hung; what its ranks lose is printed when the next one runs already."""
    script = again(hanging("job"), 8, 75.2)
    for rank in range(8):
        script.log(worker("job", rank), 90 + rank / 10, f"[rank{rank}]: RuntimeError: Connection closed by peer")
    return script


JOBS: dict[str, tuple[Callable[[], Script], str]] = {
    "hang": (lambda: again(hanging("job"), 8, 75.2), "hang"),
    "crash": (lambda: again(dying("job"), 4, 40.2), "crash"),
    "error": (lambda: restarting("job"), "crash"),
    "slowdown": (lambda: again(slowing("job"), 8, 75.2), "slowdown"),
    "numerics": (lambda: again(nan(), 8, 75.2), "numerics"),
    "node fault": (lambda: again(faulty_gpu(), 8, 50.2), "hang"),
    "late words": (late_words, "hang"),
}


def incidents(script: Script) -> list[Incident]:
    return diagnose.run(script.recording).incidents


@pytest.mark.parametrize(("make", "symptom"), JOBS.values(), ids=JOBS)
def test_a_new_attempt_resolves_what_was_wrong_with_the_one_before(make: Callable[[], Script], symptom: str) -> None:
    (found,) = incidents(make())
    assert (found.attempt, found.symptom, found.status) == ("0", symptom, "resolved")


def test_a_job_that_restarts_every_minute_has_one_incident_for_each_failure() -> None:
    script = Script("job")
    for attempt in range(6):
        again(script, 4, 60.0 * attempt + 0.2, 40, str(attempt))
        script.log(worker("job", 2, str(attempt)), 60.0 * attempt + 42, "ValueError: bad shard")
        for rank in range(4):
            text = f'Traceback (most recent call last):\n  File "t.py", line 1, in f\n    f()\nValueError: {attempt}'
            lost = f"[rank{rank}]: RuntimeError: Connection closed by peer"
            script.log(worker("job", rank, str(attempt)), 60.0 * attempt + 43 + rank, text if rank == 2 else lost)
    found = diagnose.run(recording_of(script)).incidents
    assert sorted((one.attempt, one.status) for one in found) == [
        *((str(attempt), "resolved") for attempt in range(5)),
        ("5", "open"),
    ]
    assert {one.severity for one in found} == {"critical"}


ERROR = (
    'Traceback (most recent call last):\n  File "/job/train.py", line 10, in <module>\n    main()\n'
    '  File "/job/train.py", line 90, in train\n    loss = model(batch)\nValueError: negative length in shard'
)
CAUGHT = (
    'Traceback (most recent call last):\n  File "/job/train.py", line 90, in train\n    upload(batch)\n'
    "OSError: bucket not reachable"
)
LOST = (
    "[Rank {0}] Process group watchdog thread terminated with exception: NCCL error: remote process exited or there "
    "was a network error, NCCL version 2.21.5"
)
ANEW, GOES_ON = "the job has begun anew, from an earlier iteration", "iterations go on"


def fails(script: Script, second: float, error: str = ERROR, rank: int = 2, ranks: int = 4) -> None:
    """A rank fails by an error of its own, the others by its loss."""
    script.log(worker("job", rank), second, error)
    for other in set(range(ranks)) - {rank}:
        script.log(worker("job", other), second + 0.9 + other / 10, LOST.format(other))


def ended(script: Script, second: float, ranks: int = 4) -> None:
    for rank in range(ranks):
        local = rank % RANKS_PER_NODE
        text = f"failed (exitcode: 1) local_rank: {local} (pid: {pid_of(rank)}) of binary: python"
        script.log(agent("job", node_of(rank)), second + rank / 10, text)


def in_place(first: int = 11, load: float = 20, error: str = ERROR, *, says_so: bool = True) -> Script:
    """Rank 2 fails at iteration 24; the job begins again at ``first``, after ``load`` seconds, in the same attempt."""
    script = Script("job")
    script.start(4)
    script.train(4, 1, 24)
    script.alive(4, 0, 25)
    fails(script, 25.1, error)
    if says_so:
        script.start(4, 27.2)
    zero = 27 + load
    script.train(4, first, first + 59, zero=zero - first)
    script.alive(4, 28, int(zero) + 60)
    return script


def hung_before() -> Script:
    script = hanging("job")
    script.start(8, 80.2)
    script.train(8, 21, 60, zero=70)
    script.alive(8, 84, 130)
    return script


IN_PLACE: dict[str, tuple[Callable[[], Script], list[int]]] = {
    "from a checkpoint": (in_place, [2]),
    "after minutes": (lambda: in_place(load=90), [2]),
    "within the window": (lambda: in_place(load=1), [2]),
    "two iterations before": (lambda: in_place(22, 1), [2]),
    "nobody says that it starts": (lambda: in_place(says_so=False), [2]),
    "from the beginning": (lambda: in_place(1), [2]),
    "from the beginning, and nobody says so": (lambda: in_place(1, says_so=False), [2]),
    "from the beginning within the window, and nobody says so": (lambda: in_place(1, 1, says_so=False), [2]),
    "after an error that may have been caught": (lambda: in_place(error=CAUGHT), [2]),
    "after a hang": (hung_before, [5]),
}


@pytest.mark.parametrize(("make", "ranks"), IN_PLACE.values(), ids=IN_PLACE)
def test_iterations_that_come_again_from_a_lower_number_take_no_name_back(
    make: Callable[[], Script], ranks: list[int]
) -> None:
    (found,) = incidents(make())
    assert (found.status, found.severity, found.resolution) == ("resolved", "critical", ANEW)
    assert [one.rank for one in found.suspects] == ranks


@pytest.mark.parametrize("first", [11, 1])
def test_each_failure_of_a_job_that_begins_anew_in_place_is_an_incident(first: int) -> None:
    script = Script("job")
    script.start(4)
    for round_ in range(5):
        begin, zero = (first, 60.0 * round_) if round_ else (1, 0.0)
        script.train(4, begin, 24, zero=zero)
        script.alive(4, int(zero), int(zero) + 25)
        fails(script, zero + 25.1)
    found = incidents(script)
    assert [[one.rank for one in incident.suspects] for incident in found] == [[2]] * 5
    assert sorted(one.resolution for one in found) == ["", *[ANEW] * 4]


def epochs(error: tuple[int, int], length: int = 24, gap: int = 0, text: str = CAUGHT) -> Script:
    """Four epochs whose batches are counted anew; rank 2 prints an error at the place (epoch, batch), and trains on.

    Between two of them lie ``gap`` seconds, with a bar of a validation.
    """
    script = Script("job")
    script.start(4)
    second = 0.0
    for epoch in range(4):
        for batch in range(1, length + 1):
            second += 1
            part = f"{100 * batch // length:3d}%|##   | {batch}/{length} [00:10<00:30,  1.00it/s, loss=2.{batch:02d}]"
            script.log(worker("job", 0), second + 0.52, f"Epoch {epoch}: {part}")
            for rank in range(4):
                timers = f"step {batch} timers (ms): forward_compute 300.{rank} data_load 20.1 allreduce_wait 90.5"
                script.log(worker("job", rank), second + 0.5 + rank / 1000, timers, batch)
            if error == (epoch, batch):
                script.log(worker("job", 2), second + 0.7, text)
        for done in range(1, gap):
            line = f"Validation DataLoader 0: {100 * done // gap:3d}%|#  | {done}/{gap} [00:10<00:30,  1.00it/s]"
            script.log(worker("job", 0), second + done, line)
        second += gap
    script.alive(4, 0, int(second) + 1)
    return script


EPOCHS: dict[str, Callable[[], Script]] = {
    "within the first": lambda: epochs((0, 12)),
    "in the last step of the first": lambda: epochs((0, 24)),
    "in the last step of the first, before a validation": lambda: epochs((0, 24), gap=30),
    "in the last step of the second": lambda: epochs((1, 24)),
    "in the last step of the third, before a validation": lambda: epochs((2, 24), gap=30),
    "in the last step but one of the third": lambda: epochs((2, 23), gap=5),
    "that nothing shows to be caught, in the last step": lambda: epochs((1, 24), gap=5, text=ERROR),
    "in short epochs": lambda: epochs((1, 7), length=7),
}


@pytest.mark.parametrize("make", EPOCHS.values(), ids=EPOCHS)
def test_a_job_that_counts_each_epoch_anew_has_lived_through_a_caught_error(make: Callable[[], Script]) -> None:
    (found,) = incidents(make())
    assert (found.severity, found.suspects, found.resolution) == ("info", [], GOES_ON)


def test_a_job_that_begins_anew_in_place_although_its_ranks_have_ended_is_watched_on() -> None:
    script = in_place()
    ended(script, 26.5)
    script.stacks(4, range(112, 180, 5), 1)
    script.alive(4, 108, 180)
    later, first = incidents(script)
    assert ([one.rank for one in first.suspects], first.resolution) == ([2], "the attempt has ended")
    assert ([one.rank for one in later.suspects], later.symptom, later.status) == ([1], "hang", "open")


def test_the_end_of_the_only_rank_known_of_many_is_not_that_of_the_attempt() -> None:
    script = Script("job")
    script.send(worker("job", 0), Topology(time=at(0.2), pid=pid_of(0)))
    script.log(worker("job", 0), 0.3, "[rank 0] starting, world size: 8")
    script.train(1, 1, 24)
    script.alive(1, 0, 25)
    script.log(worker("job", 0), 25.2, ERROR)
    ended(script, 26, 1)
    for second in range(28, 100, 4):
        script.send(agent("job", node_of(0)), Heartbeat(time=at(second + 0.4), pids=[]))
    for rank in range(1, 8):
        script.log(worker("job", rank), 52.5 + rank / 10, LOST.format(rank))
    log = written_log(recording_of(script))
    run(log)
    said = records(log, "incidents")
    assert len({one.id for one in said}) == 1
    assert [one.rank for one in said[-1].suspects] == [0]
