"""Workers' ends as launchers report them."""

from __future__ import annotations

from typing import Any

import pytest
from detection_support import (
    at,
    closed,
    ended,
    healthy,
    known_fatal,
    named,
    new_view,
    run,
    stepping,
    summary,
    traceback,
)

from schemas.results import Anomaly, Exit
from streams.detectors.worker_exit import WorkerExit
from streams.view import AttemptWindow

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
        [(4, ended(12, 1))],
        [(4, ended(12, 0))],
        [(4, ended(11, **REQUEST))],
        [],
    ],
)
def test_ends_with_a_code_and_requests_say_nothing_of_their_own(exits: list[tuple[int, Exit]]) -> None:
    assert found(window(*exits)) == []


@pytest.mark.parametrize("signal", ["SIGTERM", "SIGKILL"])
def test_who_was_told_to_end_is_a_victim(signal: str) -> None:
    exits = [(4, ended(11, **REQUEST)), (4, ended(12, -15, signal))]
    assert named(found(window(*exits))) in ([[]], [])


def test_who_ends_by_sigterm_is_a_victim_and_that_is_information() -> None:
    (one,) = found(window((4, ended(12, -15, "SIGTERM"))))
    assert (named([one]), one.grounds, one.victims, one.severity) == ([[]], "told_to_end", [4], "info")


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
        (9.5, 1, {}, []),
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


def test_where_iterations_go_on_or_most_have_ended_nobody_has_left_early() -> None:
    ends = [(rank, ended(9.5, 0)) for rank in range(4)]
    assert found(quiet(10, *ends), quiet(20)) == []
    assert found(healthy(RANKS, 10, 11), closed([], 20, exits=[(5, ended(9.5, 0))])) == []


def watched(start: float, ranks: range | list[int] = range(RANKS), *, sees: Any = None, **fields: Any) -> AttemptWindow:
    """These ranks live, and their nodes see the processes of ``sees``."""
    sights = [(rank, at(start + 10)) for rank in (ranks if sees is None else sees)]
    nodes = [(f"node{rank // 2:02d}", time) for rank, time in sights]
    return closed((summary(rank, start, **fields) for rank in ranks), start, sightings=sights, node_life=nodes)


@pytest.mark.parametrize(
    ("sees", "windows", "suspects"),
    [
        ([rank for rank in range(RANKS) if rank != 5], 3, [[5]]),
        # Not for long, and not of a node that sees nobody any more.
        ([rank for rank in range(RANKS) if rank != 5], 1, []),
        ([rank for rank in range(RANKS) if rank not in (4, 5)], 3, []),
        # It is still seen, though it says nothing.
        (list(range(RANKS)), 3, []),
    ],
)
def test_who_is_gone_from_a_node_that_sees_others_has_left_early(
    sees: list[int], windows: int, suspects: list[list[int | None]]
) -> None:
    first = closed(
        (stepping(rank, 0, first=1) for rank in range(RANKS)), 0, sightings=[(rank, at(10)) for rank in range(RANKS)]
    )
    others = [rank for rank in range(RANKS) if rank != 5]
    later = [watched(10.0 * n, others, sees=sees) for n in range(1, windows + 1)]
    found = [one for each in run(WorkerExit(), new_view(), [first, *later]) for one in each]
    assert named(found) == suspects


def test_who_shows_life_after_its_node_last_saw_it_is_not_gone() -> None:
    first = closed(
        (stepping(rank, 0, first=1) for rank in range(RANKS)), 0, sightings=[(rank, at(10)) for rank in range(RANKS)]
    )
    others = [rank for rank in range(RANKS) if rank != 5]
    later = [watched(10.0 * n, sees=others) for n in (1, 2, 3)]
    assert [one for each in run(WorkerExit(), new_view(), [first, *later]) for one in each] == []
