"""Which samples a picture is made of: those of a standstill before ranks fail, of those who live, none twice."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from streams_support import (
    LOADING,
    SECOND,
    WAITING,
    Script,
    agent,
    at,
    hanging,
    pid_of,
    recording_of,
    restarting,
    worker,
)

from producers.recording import Recording
from producers.times import EARLIEST
from rankwatch.diagnose import run
from rankwatch.stackviews.attempts import Attempt, anomalies_of, attempts_of, jobs_of, newest, strangers
from rankwatch.stackviews.chosen import Chosen, at_time, chosen
from schemas.events import Frame, Stack
from schemas.identity import Identity
from schemas.results import Anomaly, Exit, Incident, Scope, Window

WAIT, LOAD, WORK = WAITING[-1], LOADING[-1], Frame("work", "/job/train.py", 7)


def stack(second: float, frame: Frame | None, *, kind: str = "trainer", pid: int = 0, **more: Any) -> Stack:
    frames = [] if frame is None else [frame]
    return Stack(time=at(second), process_type=kind, pid=pid, frames=frames, **({"thread": "MainThread"} | more))


def attempt(
    *stacks: tuple[int, Stack], ends: dict[int, float] | None = None, windows: tuple[Window, ...] = ()
) -> Attempt:
    found = Attempt(name="0", first=at(0))
    for rank, one in stacks:
        found.sample(worker("a", rank), one if one.pid else msgspec.structs.replace(one, pid=pid_of(rank)))
    for rank, second in (ends or {}).items():
        found.ends[rank] = Exit(time=at(second), pid=pid_of(rank), code=1)
    for window in windows:
        found.learn(window)
    return found


def hang(second: float) -> Incident:
    return Incident(
        id="i",
        revision=1,
        published=at(second),
        job="a",
        attempt="0",
        symptom="hang",
        area="unknown",
        severity="critical",
        verdict="supported",
        reason="",
        status="open",
        onset=at(second),
        summary="",
        next_step="",
        scope=Scope(kind="job", name="a"),
    )


def failure(second: float, grounds: str = "cascade") -> Anomaly:
    return Anomaly(
        id=grounds,
        detector="d",
        version=1,
        config="",
        job="a",
        attempt="0",
        start=0,
        end=0,
        onset=at(second),
        axis="space",
        layer="log",
        symptom="crash",
        area="unknown",
        grounds=grounds,
        text="",
        severity="info",
    )


def iteration(second: float, number: int) -> Window:
    start = at(second // 10 * 10)
    return Window(
        id=f"w{number}",
        identity=worker("a", 0),
        start=start,
        end=start + 10 * SECOND,
        iteration=number,
        iteration_time=at(second),
    )


def places(taken: Chosen) -> dict[int, str]:
    """Where each rank is, or why it is not known."""
    return {one.rank: one.frames[-1].function if one.frames else one.failure for one in taken.samples}


def test_of_a_standstill_the_last_samples_before_the_first_failure_are_taken() -> None:
    stacks = [(rank, stack(second, WAIT)) for rank in (0, 1) for second in (20, 50, 60)]
    late = [(rank, stack(71, WORK)) for rank in (0, 1)]
    taken = chosen(attempt(*stacks, *late), [hang(30)], [failure(70), failure(10), failure(40, "perhaps_outside")])
    assert (taken.why, taken.first, taken.last, taken.until) == ("standstill", at(60), at(60), at(70))
    assert places(taken) == {0: "all_reduce", 1: "all_reduce"}


@pytest.mark.parametrize(
    ("more", "bound"),
    [
        ({"ends": {1: 65.0}}, "the first end of a rank"),
        ({"windows": (iteration(29, 8), iteration(66, 9))}, "iterations went on"),
    ],
)
def test_a_standstill_ends_when_a_rank_does_or_iterations_go_on(more: Any, bound: str) -> None:
    stacks = [(rank, stack(second, frame)) for rank in (0, 1) for second, frame in ((50, WAIT), (72, WORK))]
    taken = chosen(attempt(*stacks, **more), [hang(30)], [])
    assert taken.bound == bound
    assert places(taken) == {0: "all_reduce", 1: "all_reduce"}


def test_samples_of_the_work_before_it_do_not_show_a_standstill() -> None:
    steps = tuple(iteration(second, number) for number, second in enumerate(range(4, 30, 5)))
    stacks = [(0, stack(55, WAIT)), (1, stack(33, WORK))]
    taken = chosen(attempt(*stacks, windows=steps), [hang(29)], [])
    assert places(taken) == {0: "all_reduce", 1: "only sampled at other times"}


def test_without_a_sample_of_the_standstill_the_newest_are_taken_and_it_is_said() -> None:
    taken = chosen(attempt((0, stack(20, WORK)), (1, stack(22, WORK))), [hang(30)], [])
    assert (taken.why, taken.since, taken.last) == ("newest", at(30), at(22))


def test_the_newest_samples_are_at_most_a_minute_apart() -> None:
    taken = chosen(attempt((0, stack(10, WORK)), (1, stack(75, WORK)), (2, stack(20, WAIT))), [], [])
    assert places(taken) == {0: "only sampled at other times", 1: "work", 2: "all_reduce"}


def test_who_has_ended_is_not_shown_but_told() -> None:
    taken = chosen(attempt((0, stack(50, WORK)), (1, stack(40, WORK)), ends={1: 45.0}), [], [])
    assert places(taken) == {0: "work", 1: "ended with code 1 at 2026-11-29T18:11:15.000Z"}


def test_a_time_shows_what_was_last_seen_by_then() -> None:
    found = attempt(
        *((0, stack(second, frame)) for second, frame in ((10, WORK), (20, WAIT), (30, LOAD))), ends={0: 29}
    )
    assert places(at_time(found, at(25))) == {0: "all_reduce"}
    assert places(at_time(found, at(9))) == {0: "only sampled at other times"}


def test_a_failed_sample_is_a_reason_and_never_a_place() -> None:
    failed = stack(50, None, thread="", failure="Permission denied")
    taken = chosen(attempt((0, failed), (1, stack(40, WAIT)), (1, failed), (2, stack(50, None))), [], [])
    assert places(taken) == {0: "Permission denied", 1: "all_reduce", 2: "its sample shows no frames"}
    assert taken.outdated == {1: "Permission denied"}


def test_a_process_that_was_passed_over_twice_has_ended() -> None:
    trainer = [(0, stack(second, WORK)) for second in (10, 20, 30)]
    loaders = [
        (0, stack(second, LOAD, kind="dataloader", pid=pid)) for second, pid in ((10.5, 7), (20.5, 8), (30.5, 8))
    ]
    taken = chosen(attempt(*trainer, *loaders), [], [])
    assert sorted(one.process_type for one in taken.samples) == ["dataloader", "trainer"]


def test_threads_that_the_last_sample_of_a_process_does_not_show_have_ended() -> None:
    stacks = [(0, stack(10, WORK)), (0, stack(10, WORK, thread="saver")), (0, stack(20, WORK))]
    assert [one.thread for one in chosen(attempt(*stacks), [], []).samples] == ["MainThread"]


def test_samples_without_a_time_show_nothing_of_others_that_have_one() -> None:
    unknown = stack(1, WORK, time_source="inferred", precision_ns=40 * SECOND)
    taken = chosen(attempt((0, stack(30, WAIT)), (1, unknown)), [], [])
    assert places(taken) == {0: "all_reduce", 1: "nothing tells when it was sampled"}


@pytest.mark.parametrize("precision_s", [0, 40])
def test_samples_of_which_none_has_a_time_are_shown_without(precision_s: int) -> None:
    unknown = stack(1, WORK, time_source="inferred", precision_ns=precision_s * SECOND)
    if not precision_s:
        unknown = msgspec.structs.replace(unknown, time=EARLIEST)
    taken = chosen(attempt((0, unknown), (1, unknown)), [hang(30)], [])
    assert (taken.why, taken.first, places(taken)) == ("newest", None, {0: "work", 1: "work"})
    assert not any(one.frames for one in at_time(attempt((0, unknown)), at(10)).samples)


def attempts(recording: Recording, job: str = "job") -> list[Attempt]:
    return attempts_of(recording, run(recording).log, job)


def test_the_pipelines_standstill_is_found_with_whole_stacks() -> None:
    recording = hanging("hang").recording
    found = run(recording)
    (one,) = attempts_of(recording, found.log, "hang")
    taken = chosen(one, found.incidents, anomalies_of(found.log, "hang", "0"))
    assert (taken.why, taken.since) == ("standstill", at(30.52))
    assert places(taken) == {rank: "_next_data" if rank == 5 else "all_reduce" for rank in range(8)}
    assert one.roles == dict.fromkeys(range(8), "")


def test_attempts_are_apart_and_ends_are_those_of_their_own_processes() -> None:
    script = restarting("job")
    script.stacks(4, [20], 9)
    script.stacks(4, [45], 9, attempt="1")
    first, second = attempts(script.recording)
    assert [first.name, second.name] == ["0", "1"]
    assert newest([first, second]) == [second]
    assert (sorted(first.ends), sorted(second.ends)) == ([0, 1, 2, 3], [])


def test_ranks_of_the_announced_world_that_nothing_was_heard_of_are_expected() -> None:
    script = Script("job")
    script.log(worker("job", 0), 1, "[rank 0] starting, world size: 4")
    script.stacks(2, [5], 9)
    (one,) = attempts(script.recording)
    assert one.roles == dict.fromkeys(range(4), "")


def test_where_roles_differ_those_of_ranks_never_heard_of_are_not_guessed() -> None:
    script = Script("job")
    for rank, role in ((0, "actor"), (1, "critic")):
        script.log(worker("job", rank, role=role), 1, "starting, world size: 3")
        script.send(worker("job", rank, role=role), stack(5, WORK, pid=pid_of(rank)))
    (one,) = attempts(script.recording)
    assert (one.roles, one.of_unknown_role) == ({0: "actor", 1: "critic"}, [2])


def test_worker_groups_that_number_ranks_anew_are_attempts_of_their_own() -> None:
    script = Script("job")
    for group in ("actor", "rollout"):
        script.send(worker("job", 0, group=group), stack(5, WORK, pid=1))
    found = attempts(script.recording)
    assert [one.name for one in newest(found)] == ["actor/0", "rollout/0"]


def test_stacks_of_nobody_known_are_counted_by_reason_and_jobs_are_apart() -> None:
    script, other = Script("job"), Script("other")
    script.send(agent("job", "node00"), stack(5, WORK, pid=9))
    other.send(Identity(job="other", node="n", rank=0), stack(5, WORK, pid=9))
    recording = recording_of(script, other)
    assert jobs_of(recording) == ["job", "other"]
    assert strangers(recording, "job") == {"launcher of a node": 1}
    assert attempts(recording) == []
