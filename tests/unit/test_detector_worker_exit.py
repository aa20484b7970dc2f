"""Workers' ends as launchers report them."""

from __future__ import annotations

from typing import Any

import pytest
from detection_support import (
    ALL_REDUCE,
    at,
    closed,
    ended,
    healthy,
    known_fatal,
    named,
    new_view,
    run,
    stack,
    stepping,
    summary,
    traceback,
)

from schemas.results import Anomaly, Exit, Stop
from streams.attempt_window import AttemptWindow
from streams.detectors.worker_exit import WorkerExit

RANKS = 8
REQUEST = {"signal": "SIGTERM", "requested": True}


def window(*exits: tuple[int, Exit], start: float = 10, **fields: Any) -> AttemptWindow:
    return closed((summary(rank, start) for rank in range(RANKS)), start, exits=list(exits), **fields)


def found(*windows: AttemptWindow) -> list[Anomaly]:
    return [one for each in run(WorkerExit(), new_view(), [healthy(RANKS), *windows]) for one in each]


@pytest.mark.parametrize("signal", ["SIGKILL", "SIGSEGV", "SIGBUS", "SIGABRT"])
def test_a_death_by_a_signal_that_nobody_sent_is_a_ranks_own(signal: str) -> None:
    (one,) = found(window((4, ended(12, -9, signal))))
    assert (named([one]), one.grounds, one.symptom, one.onset) == ([[4]], "own_death", "crash", at(12))


@pytest.mark.parametrize(
    "exits",
    [
        [(4, ended(12, 0))],
        [(4, ended(12, 143))],
        [(4, ended(11, **REQUEST)), (4, ended(12, 1))],
        [(4, ended(11, **REQUEST))],
        [],
    ],
)
def test_success_and_requests_say_nothing_of_their_own(exits: list[tuple[int, Exit]]) -> None:
    assert found(window(*exits)) == []


def test_an_exit_code_that_nothing_explains_is_told_and_blames_nobody() -> None:
    one, told = sorted(found(window((4, ended(12, 1)), (3, ended(14, -15, "SIGTERM")))), key=lambda one: one.grounds)
    assert (named([one]), one.grounds, one.symptom, one.severity) == ([[]], "exit_code", "crash", "critical")
    assert (one.onset, one.victims, told.victims) == (at(12), [], [3])
    assert one.text == "rank 4 ended with exit code 1 first, as far as launchers tell; why was not seen in any log"


def test_exit_codes_of_soon_after_stand_with_the_first() -> None:
    first, then = found(window((4, ended(18, 1))), window((3, ended(21, 1)), (5, ended(22, 7)), start=20))
    assert (first.onset, then.onset) == (at(18), at(18))
    assert then.text.startswith("rank 4 ended with exit code 1 first") and then.text.endswith(
        "; 2 more ended with an exit code later"
    )
    (last,) = found(window((4, ended(18, 1))), window((3, ended(200, 1)), start=200))[1:]
    assert last.onset == at(200)


def test_exit_codes_after_a_fatal_line_or_a_stop_or_the_end_of_training_say_nothing() -> None:
    words = known_fatal(traceback("ValueError: bad shard"))
    spoke = closed((summary(r, 10, fatals=[words] if r == 4 else []) for r in range(RANKS)), 10)
    ends = [(rank, ended(22, 1)) for rank in range(RANKS)]
    assert found(spoke, window(*ends, start=20)) == []
    assert found(window(*ends, start=20, stopped=at(21))) == []
    done = closed((summary(r, 10, finished=at(15)) for r in range(RANKS)), 10)
    assert found(done, window(*ends, start=20)) == []
    # What was caught long before explains nothing.
    late = [(rank, ended(912, 1)) for rank in range(RANKS)]
    assert [one.grounds for one in found(spoke, window(*late, start=910))] == ["exit_code"]


@pytest.mark.parametrize("signal", ["SIGTERM", "SIGKILL"])
def test_who_was_told_to_end_is_a_victim(signal: str) -> None:
    exits = [(4, ended(11, **REQUEST)), (4, ended(12, -15, signal))]
    assert named(found(window(*exits))) in ([[]], [])


def test_who_ends_by_sigterm_is_a_victim_and_that_is_information() -> None:
    (one,) = found(window((4, ended(12, -15, "SIGTERM"))))
    assert (named([one]), one.grounds, one.victims, one.severity) == ([[]], "told_to_end", [4], "info")


def test_who_ends_by_sigterm_that_its_launcher_sent_to_its_mate_only_has_died_of_its_own() -> None:
    ends = [(5, ended(12, -15, "SIGTERM")), (4, ended(12, **REQUEST)), (4, ended(13, -15, "SIGTERM"))]
    killed, told = found(window(*ends))
    assert (named([killed]), killed.grounds, told.victims) == ([[5]], "own_death", [4])
    # A mate on another node, or one that was asked before, shows nothing.
    for other in ((3, ended(12, **REQUEST)), (4, ended(11, **REQUEST))):
        (one,) = found(window(ends[0], other))
        assert (one.grounds, one.victims) == ("told_to_end", [5])
    # Nor where anybody else was told to end.
    for node, word in (("node02", "agent"), ("", "step")):
        assert [5] not in named(found(window(*ends, stops=[(node, Stop(time=at(11), word=word))])))
    (one,) = found(window(*ends, (2, ended(13, -15, "SIGTERM"))))
    assert (one.grounds, one.victims) == ("told_to_end", [2, 4, 5])


def test_a_watchdogs_abort_after_the_ranks_own_words_is_no_death_of_its_own() -> None:
    words = known_fatal("[E ProcessGroupNCCL.cpp:458] [Rank 4] Watchdog caught collective operation timeout: WorkNCCL(")
    spoke = closed((summary(r, 10, fatals=[words] if r == 4 else []) for r in range(RANKS)), 10)
    assert found(spoke, window((4, ended(22, -6, "SIGABRT")), start=20)) == []


def test_each_end_is_reported_once() -> None:
    killed = (4, ended(12, -9, "SIGKILL"))
    assert len(found(window(killed), window(killed, start=20), window(start=30))) == 1


def test_ends_around_the_owners_stop_belong_to_it() -> None:
    deaths = [(rank, ended(18, -9, "SIGKILL")) for rank in range(RANKS)]
    assert found(window(*deaths, stopped=at(17))) == []
    assert named(found(window((4, ended(11, -9, "SIGKILL")), stopped=at(17)))) == [[4]]


def test_several_deaths_of_a_window_stand_together() -> None:
    assert named(found(window((4, ended(12, -9, "SIGKILL")), (5, ended(13, -9, "SIGKILL"))))) == [[4, 5]]


def test_a_traceback_of_its_own_explains_an_abort() -> None:
    own = known_fatal(traceback("ValueError: bad shard"))
    spoke = closed(
        (summary(r, 10, fatals=[own] if r == 4 else []) for r in range(RANKS)),
        10,
        exits=[(4, ended(12, -6, "SIGABRT"))],
    )
    assert found(spoke) == []


def quiet(start: float, *exits: tuple[int, Exit], gone: int = 5, **fields: Any) -> AttemptWindow:
    """Nobody iterates; all but one live."""
    living = (summary(rank, start, **fields) for rank in range(RANKS) if rank != gone)
    return closed(living, start, exits=list(exits))


@pytest.mark.parametrize(
    ("second", "code", "said", "suspects"),
    [
        (9.5, 0, {}, [[5]]),
        (10.9, 0, {}, [[5]]),
        # The others had waited for something else by then.
        (18, 0, {}, []),
        # It said that it was through, or why it could not go on.
        (9.5, 0, {"finished": at(9.4)}, []),
        (9.5, 0, {"fatals": [known_fatal(traceback("ValueError: bad shard"))]}, []),
    ],
)
def test_who_ends_with_success_while_the_others_stand_still_has_left_early(
    second: float, code: int, said: dict[str, Any], suspects: list[list[int | None]]
) -> None:
    first = closed(stepping(rank, 0, first=1, **(said if rank == 5 else {})) for rank in range(RANKS))
    windows = [first, quiet(10, (5, ended(second, code))), quiet(20), quiet(30)]
    found = [one for each in run(WorkerExit(), new_view(), windows) for one in each]
    assert named(found) == suspects
    for one in found:
        assert (one.grounds, one.symptom, one.suspects[0].kind) == ("left_early", "hang", "early_exit")


def test_who_ends_with_a_failure_has_not_left_early() -> None:
    first = closed(stepping(rank, 0, first=1) for rank in range(RANKS))
    windows = [first, quiet(10, (5, ended(9.5, 1))), quiet(20), quiet(30)]
    assert [one.grounds for each in run(WorkerExit(), new_view(), windows) for one in each] == ["exit_code"]


def test_where_iterations_go_on_or_most_have_ended_nobody_has_left_early() -> None:
    ends = [(rank, ended(9.5, 0)) for rank in range(4)]
    assert found(quiet(10, *ends), quiet(20)) == []
    assert found(healthy(RANKS, 10, 11), closed([], 20, exits=[(5, ended(9.5, 0))])) == []


def watched(start: float, ranks: range | list[int] = range(RANKS), *, sees: Any = None, **fields: Any) -> AttemptWindow:
    """These ranks live, and their nodes see the processes of ``sees``."""
    sights = [(rank, at(start + 10)) for rank in (ranks if sees is None else sees)]
    nodes = [(f"node{rank // 2:02d}", time) for rank, time in sights]
    return closed((summary(rank, start, **fields) for rank in ranks), start, sightings=sights, node_life=nodes)


OTHERS = [rank for rank in range(RANKS) if rank != 5]


def seen_training(windows: int = 3, **fields: Any) -> list[AttemptWindow]:
    """Everybody iterates till the last second before 0, seen by its node in each window."""
    starts = [10.0 * n for n in range(-windows, 0)]
    sights = {start: [(rank, at(start + 10)) for rank in range(RANKS)] for start in starts}
    return [
        closed(
            (stepping(rank, start, first=int(start) + 100, **fields) for rank in range(RANKS)),
            start,
            sightings=sights[start],
        )
        for start in starts
    ]


def gone(*windows: AttemptWindow, before: int = 3) -> list[Anomaly]:
    training = seen_training(before)
    return [one for each in run(WorkerExit(), new_view(), [*training, *windows]) for one in each]


@pytest.mark.parametrize(
    ("sees", "windows", "suspects"),
    [
        (OTHERS, 3, [[5]]),
        # Not for long, and not of a node that sees nobody any more.
        (OTHERS, 1, []),
        ([rank for rank in range(RANKS) if rank not in (4, 5)], 3, []),
        # It is still seen, though it says nothing.
        (list(range(RANKS)), 3, []),
    ],
)
def test_who_is_gone_from_a_node_that_sees_others_has_left_early(
    sees: list[int], windows: int, suspects: list[list[int | None]]
) -> None:
    assert named(gone(*(watched(10.0 * n, OTHERS, sees=sees) for n in range(windows)))) == suspects


def test_where_it_is_not_known_how_often_its_node_sees_a_rank_it_is_not_gone() -> None:
    assert gone(*(watched(10.0 * n, OTHERS) for n in range(3)), before=2) == []


def test_whom_anything_shows_alive_later_is_not_gone() -> None:
    line = closed([summary(5, 10)], 10, sightings=watched(10, OTHERS).sightings)
    sample = closed([summary(5, 0, last_log=None, stacks=[stack(ALL_REDUCE, 7)])], 0, sightings=watched(0).sightings)
    assert gone(watched(0, sees=OTHERS), watched(10, sees=OTHERS), watched(20, sees=OTHERS)) == []
    assert gone(watched(0, OTHERS), line, *(watched(10.0 * n, OTHERS) for n in (2, 3))) == []
    assert gone(sample, *(watched(10.0 * n, OTHERS) for n in (1, 2, 3))) == []


def test_who_may_have_ended_long_after_the_job_stood_still_has_not_left_early() -> None:
    unseen = [watched(10.0 * n, OTHERS, sees=[]) for n in range(3)]
    assert gone(*unseen, *(watched(10.0 * n, OTHERS) for n in (3, 4, 5))) == []


def test_who_is_seen_again_is_taken_back() -> None:
    missed = [watched(10.0 * n, OTHERS) for n in range(3)]
    (first, then) = gone(*missed, watched(30), watched(40))
    assert (named([first]), named([then])) == ([[5]], [[]])
    assert (then.grounds, then.severity) == ("left_early", "info")
    assert then.text == "rank 5 no longer thought to have ended early"


def test_that_a_node_falls_silent_takes_nothing_back() -> None:
    missed = [watched(10.0 * n, OTHERS) for n in range(3)]
    assert named(gone(*missed, *(watched(10.0 * n, OTHERS, sees=[]) for n in (3, 4)))) == [[5]]


def test_each_standstill_is_told_who_has_left() -> None:
    early = (5, ended(-0.5, 0))
    windows = [quiet(0, early), quiet(10), healthy(RANKS, 20, 200), quiet(30), quiet(40)]
    assert named(gone(*windows)) == [[5], [5]]


class Unsearched(list[int]):
    """Looking for each of ten thousand ranks in a list of as many takes minutes."""

    def __contains__(self, _: object) -> bool:
        raise AssertionError("a list is searched")


def test_what_is_known_of_ranks_is_not_searched_for_each() -> None:
    view = new_view()
    view.update(healthy(RANKS))
    detector = WorkerExit()
    detector.state.reported, detector.state.printed, detector.state.left = (
        Unsearched([1]),
        Unsearched([2]),
        Unsearched(),
    )
    own = known_fatal(traceback("ValueError: bad shard"))
    crash = [(rank, ended(12, -9, "SIGKILL")) for rank in range(RANKS)]
    spoke = closed((summary(rank, 10, fatals=[own] if rank == 3 else []) for rank in range(RANKS)), 10, exits=crash)
    (one,) = run(detector, view, [spoke])[-1]
    assert named([one]) == [[0, 4, 5, 6, 7]]
    assert (detector.state.reported, detector.state.printed) == (list(range(RANKS)), [2, 3])
