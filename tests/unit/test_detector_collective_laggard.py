"""Collectives during a stall: who never enqueued what its group waits for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from detection_support import at, closed, healthy, named, new_view, reached, run, stalled, stepping, still

from schemas.results import Anomaly, CollectiveState
from streams.detectors.collective_laggard import CollectiveLaggard

RANKS = 8


def finding(states: Mapping[int, Sequence[CollectiveState]], ranks: int = RANKS) -> list[Anomaly]:
    extra = {rank: {"collectives": list(found)} for rank, found in states.items()}
    return run(CollectiveLaggard(), new_view(), stalled(ranks, extra))[-1]


def waiting(*apart: int, ranks: int = RANKS) -> dict[int, list[CollectiveState]]:
    return {rank: [reached("world", 41, 40)] for rank in range(ranks) if rank not in apart}


def test_the_one_that_never_enqueued_it_is_named() -> None:
    (found,) = finding(waiting(5) | {5: [reached("world", 40)]})
    assert (named([found]), found.grounds, found.victims) == ([[5]], "never_enqueued", [0, 1, 2, 3, 4, 6, 7])
    assert "all_reduce 41 of group world" in found.text


def test_a_laggard_that_waits_in_another_group_is_a_link_of_the_chain() -> None:
    chain = waiting(4, 5) | {
        4: [reached("world", 40), reached("pair", 9, 8)],
        5: [reached("world", 40), reached("pair", 8)],
    }
    (found,) = finding(chain)
    assert named([found]) == [[5]]


def test_a_laggard_that_waits_for_a_send_is_a_link_too() -> None:
    (found,) = finding(waiting(4, 5) | {4: [reached("world", 40, 39)], 5: [reached("world", 40)]})
    assert named([found]) == [[5]]


def test_where_every_laggard_waits_somewhere_nobody_is_named() -> None:
    loop = {0: [reached("a", 2, 1), reached("b", 1)], 1: [reached("a", 1), reached("b", 2, 1)]}
    assert named(finding(loop, ranks=2)) in ([], [[]])


def test_two_that_are_one_ahead_of_thirty_are_innocent_and_so_are_the_thirty() -> None:
    ahead = {rank: [reached("world", 41, 40)] for rank in (0, 1)}
    assert finding(ahead | {rank: [reached("world", 40)] for rank in range(2, 32)}, ranks=32) == []


def test_all_alike_or_all_done_say_nothing() -> None:
    assert finding(waiting()) == []
    assert finding({rank: [reached("world", 40)] for rank in range(RANKS)}) == []
    assert finding({}) == []


def test_a_rank_without_a_dump_is_unobserved_not_behind() -> None:
    (found,) = finding(waiting(5, 6) | {5: [reached("world", 40)]})
    assert (named([found]), found.unobserved) == ([[5]], [6])
    assert finding(waiting(5)) == []


def test_a_rank_of_another_group_is_not_behind() -> None:
    assert finding(waiting(5) | {5: [reached("other", 3)]}) == []


def test_dumps_from_before_the_stall_are_ignored() -> None:
    assert finding(waiting(5) | {5: [reached("world", 40, second=8)]}) == []


def test_dumps_of_a_job_that_iterates_say_nothing() -> None:
    moving = closed(
        (
            stepping(rank, 10, first=11, collectives=[reached("world", 41, 41 if rank == 5 else 40, second=15)])
            for rank in range(RANKS)
        ),
        10,
    )
    assert run(CollectiveLaggard(), new_view(), [healthy(RANKS), moving]) == [[], []]


def test_what_a_dump_said_is_remembered_through_a_restore() -> None:
    extra = {rank: {"collectives": found} for rank, found in (waiting(5) | {5: [reached("world", 40)]}).items()}
    windows = stalled(RANKS, extra)
    view, first = new_view(), CollectiveLaggard()
    run(first, view, windows)
    again = CollectiveLaggard()
    again.restore(first.snapshot())
    assert named(run(again, view, [still(RANKS, 40)])[0]) == [[5]]


def two_groups(passed: set[int], held: set[int]) -> dict[int, list[CollectiveState]]:
    """Ranks 0-3 belong to the world and to a stage; who ``held`` waits in the stage, who ``passed`` in the world."""
    states = {rank: [reached("world", 41, 40)] for rank in range(4, RANKS)}
    for rank in held:
        states[rank] = [reached("world", 40), reached("stage", 9, 8)]
    for rank in passed:
        states[rank] = [reached("world", 41, 40), reached("stage", 8)]
    return states


def test_the_one_that_left_out_a_collective_and_went_on_is_named() -> None:
    (found,) = finding(two_groups({1}, {0, 2, 3}))
    assert (named([found]), found.grounds, found.area) == ([[1]], "out_of_order", "code")
    assert "of group stage" in found.text and 1 not in found.victims


def test_two_against_two_name_nobody() -> None:
    assert finding(two_groups({1, 2}, {0, 3})) == []


def test_laggards_of_a_job_whose_sends_are_not_shown_are_only_perhaps_to_blame() -> None:
    stages = {rank: [reached(f"stage{rank // 4}", 9, 8, shows_sends=False)] for rank in range(RANKS)}
    behind = {rank: [reached(f"stage{rank // 4}", 8, shows_sends=False)] for rank in (2, 6)}
    (found,) = finding(stages | behind)
    assert (named([found]), found.grounds) == ([[2, 6]], "perhaps_waiting")
    shown = {
        rank: [msgspec.structs.replace(one, shows_sends=True) for one in states] for rank, states in stages.items()
    }
    (found,) = finding(shown | behind)
    assert found.grounds == "never_enqueued"


def test_a_new_dump_shows_all_that_there_is() -> None:
    older = {rank: {"collectives": [reached("x", 5, 4, second=25, ranks=range(8))]} for rank in range(RANKS)}
    newer = {rank: {"collectives": [reached("w", 41, 40, ranks=range(8))]} for rank in range(RANKS)}
    for rank in range(RANKS - 1):
        newer[rank]["collectives"].append(reached("x", 5, 5, ranks=range(8)))
    windows = stalled(RANKS)
    windows[2:] = [still(RANKS, 20, older), still(RANKS, 30, newer)]
    (found,) = run(CollectiveLaggard(), new_view(), windows)[-1]
    assert (named([found]), found.grounds) == ([[]], "none_completed")
    assert "41 of group w" in found.text


def test_where_no_iterations_are_known_a_dump_of_another_time_is_not_held_against_others() -> None:
    def held(sequence: int, since: float, second: float) -> list[CollectiveState]:
        state = reached("w", sequence, sequence - 1, second=second, ranks=range(8))
        return [
            msgspec.structs.replace(state, oldest=sequence, oldest_operation="all_reduce", oldest_at=at(since)),
        ]

    early = {3: {"collectives": held(50, 1, 35)}}
    late = {rank: {"collectives": held(900, 50, 95)} for rank in range(RANKS) if rank != 3}
    windows = [still(RANKS, start) for start in range(0, 120, 10)]
    windows[3], windows[9] = still(RANKS, 30, early), still(RANKS, 90, late)
    found = [one for window in run(CollectiveLaggard(), new_view(), windows) for one in window]
    assert found
    assert not any(one.suspects for one in found)
    assert found[-1].unobserved == [3]
