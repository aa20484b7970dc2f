"""When a job stands still, and when it only seems to."""

from __future__ import annotations

from typing import Any

import pytest
from detection_support import (
    ALL_REDUCE,
    OWN,
    S,
    at,
    closed,
    ended,
    gauge,
    healthy,
    new_view,
    stack,
    stepping,
    still,
    summary,
)

from streams.attempt_window import AttemptWindow
from streams.stall import Stall, StallRule, frozen, stall_of

RANKS = 4
FROZEN: dict[str, Any] = {"gauges": [gauge("cpu_percent", 0.1), gauge("ctx_switches", 7, first=5, last=8)]}
BUSY: dict[str, Any] = {"gauges": [gauge("cpu_percent", 99.0), gauge("ctx_switches", 7, first=5, last=8)]}
SWITCHING: dict[str, Any] = {"gauges": [gauge("cpu_percent", 0.1), gauge("ctx_switches", 70, first=5, last=800)]}
SILENT: dict[str, Any] = {"last_log": None}
CHECKPOINT: dict[str, Any] = {"phase": "checkpoint"}


def stall(windows: list[AttemptWindow], **changes: Any) -> Stall | None:
    view = new_view()
    for window in windows:
        view.update(window)
    for name, value in changes.items():
        setattr(view, name, value)
    return stall_of(view, windows[-1], StallRule())


def ten_steps(**fields: Any) -> AttemptWindow:
    return healthy(RANKS, **fields)


def test_a_job_that_lives_without_iterating_stands_still() -> None:
    found = stall([ten_steps(), still(RANKS, 10)])
    assert found is not None
    assert (found.since, found.silence, found.step, found.iteration, found.phase) == (at(9), 11 * S, S, 10, "train")
    assert not found.critical


def test_a_long_stall_is_critical() -> None:
    found = stall([ten_steps(), *(still(RANKS, start) for start in (10, 20, 30))])
    assert found is not None
    assert found.critical


def test_ranks_that_are_at_work_do_not_stand_still() -> None:
    assert stall([ten_steps(), still(RANKS, 10, stacks=[stack(OWN, 15)])]) is None


def test_who_stands_at_one_line_for_long_does_not_work_there() -> None:
    samples = [stack(OWN, *range(12, 50, 5))]
    windows = [ten_steps(), *(still(RANKS, start) for start in (10, 20, 30)), still(RANKS, 40, stacks=samples)]
    assert stall(windows) is not None
    assert stall([*windows[:-1], still(RANKS, 40, stacks=[stack(OWN, 32, 41, 49)])]) is None


def test_lines_that_tell_of_many_iterations_may_take_as_long_as_the_last_one() -> None:
    windows = [ten_steps(), still(RANKS, 10), still(RANKS, 20)]
    rare = closed((stepping(rank, 30, first=60, steps=1) for rank in range(RANKS)), 30)
    assert stall([*windows, rare, *(still(RANKS, start) for start in range(40, 100, 10))]) is None
    assert stall([*windows, rare, *(still(RANKS, start) for start in range(40, 200, 10))]) is not None


def test_samples_that_failed_are_no_work() -> None:
    assert stall([ten_steps(), still(RANKS, 10, stacks=[stack([], 15, failure="permission denied")])]) is not None


def test_before_the_first_iteration_only_silence_with_all_frozen_is_a_stall() -> None:
    start = [still(RANKS, 0, phase="start-up")]
    quiet = [still(RANKS, second, last_log=None, phase="start-up", **FROZEN) for second in (10, 20, 30)]
    assert stall([*start, *quiet]) is not None
    assert stall([*start, *quiet[:2]]) is None
    assert stall([*start, *quiet[:2], still(RANKS, 30, last_log=None, phase="start-up", **BUSY)]) is None


def test_the_first_iterations_may_take_long_unless_all_are_frozen() -> None:
    first = closed((stepping(rank, 0, first=1, steps=3) for rank in range(RANKS)), 0)
    quiet = [still(RANKS, start) for start in range(10, 220, 10)]
    assert stall([first, *quiet[:10]]) is None
    assert stall([first, *quiet]) is not None
    assert stall([first, *quiet[:2], still(RANKS, 30, **FROZEN)]) is not None


@pytest.mark.parametrize(
    ("name", "windows", "changes"),
    [
        ("nothing at all was printed", [still(RANKS, 0), still(RANKS, 10)], {}),
        ("only one iteration is known", [healthy(RANKS, steps=1), still(RANKS, 10), still(RANKS, 20)], {}),
        ("it iterates", [ten_steps(), healthy(RANKS, 10, 11)], {}),
        ("too short by seconds", [healthy(RANKS, steps=20), closed([summary(0, 10, last_log=at(11))], 7)], {}),
        ("too short by steps", [healthy(RANKS, steps=2), still(RANKS, 10)], {}),
        ("all sources are silent", [ten_steps(), still(RANKS, 10, **SILENT), still(RANKS, 20, **SILENT)], {}),
        ("nobody is there any more", [ten_steps(), closed([], 10), closed([], 20)], {}),
        ("most ranks are silent", [ten_steps(), closed([summary(0, 10)], 10), closed([summary(0, 20)], 20)], {}),
        ("it saves a checkpoint", [ten_steps(), still(RANKS, 10, **CHECKPOINT), still(RANKS, 20, **CHECKPOINT)], {}),
        ("a checkpoint at work", [ten_steps(), still(RANKS, 10, **CHECKPOINT | BUSY)], {}),
        ("a checkpoint that waits for a disk", [ten_steps(), still(RANKS, 10, **CHECKPOINT | SWITCHING)], {}),
        ("it evaluates", [ten_steps(), still(RANKS, 10, phase="evaluation"), still(RANKS, 20, phase="evaluation")], {}),
        ("it is done", [ten_steps(total_iterations=10), still(RANKS, 10), still(RANKS, 20)], {}),
        ("it says so", [ten_steps(finished=at(9)), still(RANKS, 10), still(RANKS, 20)], {}),
        ("its owner stopped it", [ten_steps(), still(RANKS, 10), still(RANKS, 20)], {"stopped": at(12)}),
        ("the next attempt runs", [ten_steps(), still(RANKS, 10), still(RANKS, 20)], {"superseded": at(10)}),
        (
            "all have ended",
            [ten_steps(), still(RANKS, 10), closed((), 20, exits=[(rank, ended(21, 1)) for rank in range(RANKS)])],
            {},
        ),
    ],
)
def test_no_stall_where(name: str, windows: list[AttemptWindow], changes: dict[str, int]) -> None:
    assert stall(windows, **changes) is None, name


@pytest.mark.parametrize(
    ("name", "windows"),
    [
        ("one is enough for a long one", [ten_steps(), still(RANKS, 10), still(RANKS, 20), still(RANKS, 30)]),
        ("a checkpoint in which all are frozen", [ten_steps(), still(RANKS, 10, **CHECKPOINT | FROZEN)]),
        ("half of the ranks are enough", [ten_steps(), closed([summary(0, 10), summary(1, 10)], 10)]),
        (
            "a checkpoint that takes too long",
            [ten_steps(), *(still(RANKS, start, **CHECKPOINT | BUSY) for start in range(10, 630, 10))],
        ),
    ],
)
def test_a_stall_where(name: str, windows: list[AttemptWindow]) -> None:
    assert stall(windows) is not None, name


SAVING = [still(RANKS, 10, **CHECKPOINT, phase_time=at(11)), still(RANKS, 20, **CHECKPOINT)]
SAVED = [still(RANKS, 30, phase_time=at(38)), still(RANKS, 40)]


@pytest.mark.parametrize(
    ("name", "windows", "since"),
    [
        ("they have said that it is over", [ten_steps(), *SAVING, *SAVED], 38),
        (
            "told again and again in a window, it may have begun with the first line",
            [ten_steps(), still(RANKS, 10, **CHECKPOINT, phase_time=at(19)), SAVING[1], *SAVED],
            38,
        ),
        (
            "an evaluation follows a checkpoint",
            [
                ten_steps(),
                SAVING[0],
                still(RANKS, 20, phase_time=at(28)),
                still(RANKS, 30, phase="evaluation", phase_time=at(31)),
                still(RANKS, 40, phase_time=at(48)),
                still(RANKS, 50),
            ],
            48,
        ),
        ("who says so was in none", [ten_steps(), still(RANKS, 10), still(RANKS, 20), *SAVED], 9),
        (
            "one was in none, the others say nothing",
            [ten_steps(), still(RANKS, 10), still(RANKS, 20), still(RANKS, 30, {2: {"phase_time": at(38)}}), SAVED[1]],
            9,
        ),
        (
            "they went into it when none had come for long",
            [ten_steps(), still(RANKS, 10), still(RANKS, 20, **CHECKPOINT, phase_time=at(25)), *SAVED],
            9,
        ),
        (
            "iterations came meanwhile",
            [
                ten_steps(),
                healthy(RANKS, 10, 11, **CHECKPOINT, phase_time=at(11)),
                still(RANKS, 20, **CHECKPOINT),
                *SAVED,
            ],
            19,
        ),
    ],
)
def test_behind_a_checkpoint_an_iteration_is_awaited_once_it_is_over(
    name: str, windows: list[AttemptWindow], since: int
) -> None:
    found = stall(windows)
    assert found is not None, name
    assert (found.since, found.silence) == (at(since), windows[-1].end - at(since)), name


def test_the_end_of_a_checkpoint_moves_no_standstill_that_was_there_and_none_in_which_somebody_still_is() -> None:
    windows = [ten_steps(), *SAVING, *SAVED]
    found = stall(windows, stood=at(9))
    assert found is not None and found.since == at(9)
    found = stall(windows, stood=at(4))
    assert found is not None and found.since == at(38)
    left = still(RANKS, 30, {0: CHECKPOINT}, phase_time=at(38))
    found = stall([*windows[:3], left, still(RANKS, 40, {0: CHECKPOINT}, **FROZEN)])
    assert found is not None and found.since == at(9)


def test_a_job_whose_steps_are_counted_anew_each_epoch_does_not_stand_still() -> None:
    assert stall([ten_steps(), healthy(RANKS, 10, 1), healthy(RANKS, 20, 1)]) is None


def test_frozen_needs_every_sampled_rank_frozen_and_one_sampled() -> None:
    assert frozen(still(2, 0, **FROZEN).summaries, StallRule())
    assert frozen(closed([summary(0, **FROZEN), summary(1)]).summaries, StallRule())
    assert not frozen(closed([summary(0, **FROZEN), summary(1, **BUSY)]).summaries, StallRule())
    assert not frozen(still(2, 0).summaries, StallRule())


@pytest.mark.parametrize(
    ("within_s", "others", "stands"),
    [
        (0, False, True),
        (3, False, True),
        (60, False, False),
        (3600, True, True),
    ],
)
def test_iterations_without_a_time_prove_no_stall_unless_others_would_have_gone_on_by_then(
    within_s: int, others: bool, stands: bool
) -> None:
    view = new_view()
    windows = [
        closed(
            [
                stepping(0, start, first=start + 1, iteration_within_ns=within_s * S),
                stepping(1, start, first=start + 1) if others else summary(1, start),
            ],
            start,
        )
        for start in (0, 10)
    ]
    for window in [*windows, still(2, 20), still(2, 30), still(2, 40)]:
        view.update(window)
        last = window
    assert (stall_of(view, last, StallRule()) is not None) == stands
    assert (view.iterated is not None) == stands


def _behind_the_end(seconds: int, apart: int = 1, last: float | None = None, **fields: Any) -> list[AttemptWindow]:
    """Ten steps, the word that training is done, and so many seconds of which stacks show some in own code."""
    times = range(20, int(seconds if last is None else last), 10)
    extra = {rank: {"stacks": [stack(OWN if rank < apart else ALL_REDUCE, *times)]} for rank in range(RANKS)}
    quiet = (still(RANKS, start, **fields) for start in range(10, seconds - 10, 10))
    return [ten_steps(finished=at(9)), *quiet, still(RANKS, seconds - 10, extra, **fields)]


@pytest.mark.parametrize(
    ("name", "windows", "stands"),
    [
        ("one stands for which all wait", _behind_the_end(620), True),
        ("not for long enough", _behind_the_end(600), False),
        ("nobody is waited for", _behind_the_end(620, apart=0), False),
        ("most have work of their own", _behind_the_end(620, apart=3), False),
        ("it was seen long ago", _behind_the_end(620, last=480), False),
        ("no stacks", [*_behind_the_end(620)[:-1], still(RANKS, 610)], False),
    ],
)
def test_a_job_that_is_done_stands_still_only_where_most_wait_for_one(
    name: str, windows: list[AttemptWindow], stands: bool
) -> None:
    found = stall(windows)
    assert (found is not None) is stands, name
    assert found is None or (found.phase, found.iteration, found.critical) == ("shutdown", 10, True)
    assert stall(windows, stopped=at(12)) is None, name


@pytest.mark.parametrize(
    ("name", "seconds", "apart", "load", "stands"),
    [
        ("one stands, its load is not known", 200, 1, {}, True),
        ("one stands and does nothing", 200, 1, FROZEN, True),
        ("not for long enough", 170, 1, {}, False),
        ("one computes at one line", 200, 1, BUSY, False),
        ("nobody is waited for", 200, 0, {}, False),
        ("most have work of their own", 200, 3, {}, False),
    ],
)
def test_a_start_up_stands_still_by_stacks_alone_where_all_wait_for_one(
    name: str, seconds: int, apart: int, load: dict[str, Any], stands: bool
) -> None:
    times = range(20, seconds, 10)
    extra = {rank: {"stacks": [stack(OWN if rank < apart else ALL_REDUCE, *times)]} for rank in range(RANKS)}
    quiet = (still(RANKS, start, phase="start-up", **SILENT) for start in range(10, seconds - 10, 10))
    last = still(RANKS, seconds - 10, extra, phase="start-up", **SILENT, **load)
    found = stall([still(RANKS, 0, phase="start-up"), *quiet, last])
    assert (found is not None) is stands, name
