"""When the job stage says where everybody stands: as a standstill is seen, and again when that changes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streams_support import LOADING, WAITING, Script, at, hanging, pid_of, records, run, steady, worker, written_log

from schemas.events import Stack
from schemas.results import MergedStacks


def standing(job: str = "hang") -> Script:
    """Eight ranks that do nothing any more after iteration 30, of which there are no stacks yet."""
    script = Script(job)
    script.start(8)
    script.train(8, 1, 30)
    script.alive(8, 0, 90)
    return script


def said(script: Script) -> list[MergedStacks]:
    log = written_log(script.recording)
    run(log)
    assert records(log, "dead-letters") == []
    found: list[MergedStacks] = records(log, "merged.stacks")
    return found


def seen(found: list[MergedStacks]) -> list[tuple[float, list[str]]]:
    """The end of each window in seconds, with the ranks of each place of the main threads."""
    return [((one.end - at(0)) / 1e9, [group.ranks for group in one.classes[0].groups]) for one in found]


def sampled(script: Script, seconds: range, outside: int) -> None:
    script.stacks(8, seconds, outside)


def resumed(script: Script) -> None:
    script.stacks(8, range(35, 48, 4), 5)
    script.train(8, 31, 40, zero=20)
    script.stacks(8, range(65, 90, 4), 5)


def unreadable(script: Script) -> None:
    script.stacks(8, range(35, 40, 4), 5)
    # The others were last seen before it, this one never.
    broken = Stack(
        time=at(36), process_type="trainer", pid=pid_of(8), thread="", frames=[], failure="Permission denied"
    )
    script.send(worker(script.job, 8), broken)


@pytest.mark.parametrize(
    ("happens", "expected"),
    [
        (lambda script: None, []),
        (lambda script: sampled(script, range(5, 30, 4), 5), []),
        (lambda script: sampled(script, range(35, 90, 4), 5), [(40, ["0-4,6-7", "5"])]),
        (
            lambda script: (sampled(script, range(35, 50, 4), 5), sampled(script, range(50, 90, 4), 2)),
            [(40, ["0-4,6-7", "5"]), (60, ["0-1,3-7", "2"])],
        ),
        (resumed, [(40, ["0-4,6-7", "5"]), (70, ["0-4,6-7", "5"])]),
    ],
    ids=["no stacks", "before it", "once", "others", "again"],
)
def test_it_is_said_once_and_when_ranks_stand_elsewhere(
    happens: Callable[[Script], object], expected: list[tuple[float, list[str]]]
) -> None:
    script = standing()
    happens(script)
    assert seen(said(script)) == expected


def test_a_rank_that_could_not_be_sampled_is_unobserved_with_its_reason() -> None:
    script = standing()
    unreadable(script)
    (one,) = said(script)
    assert [(why.ranks, why.reason) for why in one.classes[0].unobserved] == [("8", "Permission denied")]


def test_healthy_jobs_say_nothing_of_it() -> None:
    script = steady()
    for second in range(5, 40, 5):
        for rank, frames in ((0, WAITING), (1, LOADING)):
            script.send(
                worker(script.job, rank),
                Stack(time=at(second), process_type="trainer", pid=pid_of(rank), thread="MainThread", frames=frames),
            )
    assert said(script) == []


def test_the_incident_of_a_hang_carries_it() -> None:
    log = written_log(hanging().recording)
    run(log)
    (told,) = records(log, "merged.stacks")
    revisions = records(log, "incidents")
    assert revisions[-1].stacks[0].text == told.classes[0].text
    assert told.classes[0].text == (
        "ranks 0-4,6-7 in all_reduce (distributed_c10d.py:2799) under train (train.py:94); "
        "rank 5 in _next_data (dataloader.py:1400) under train (train.py:90)"
    )
