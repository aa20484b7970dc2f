"""Who stands apart among the ranks of process groups."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from detection_support import at, reached

from schemas.results import CollectiveState
from streams.collectives import States, laggards, mismatched, of_one_time, stopped


def held(
    group: str, enqueued: int, completed: int, *, operation: str = "all_reduce", second: float = 5
) -> CollectiveState:
    """A rank that has enqueued more than it has completed; the oldest of these is next to the completed one."""
    state = reached(group, enqueued, completed, operation=operation)
    return msgspec.structs.replace(
        state, oldest=completed + 1, oldest_operation=operation, oldest_at=at(second), ranks=[0, 1, 2, 3]
    )


def world(*states: CollectiveState | None) -> States:
    return {rank: {} if state is None else {state.group: state} for rank, state in enumerate(states)}


@pytest.mark.parametrize(
    ("states", "apart"),
    [
        ([held("a", 48, 40), held("a", 60, 48), held("a", 60, 48), held("a", 60, 48)], [0]),
        ([held("a", 48, 40), reached("a", 48), reached("a", 48), held("a", 60, 48)], [0]),
        ([held("a", 48, 40), held("a", 48, 40), reached("a", 48), reached("a", 48)], []),
        ([held("a", 48, 40), None, reached("a", 48), reached("a", 48)], [0]),
        ([held("a", 48, 40), None, None, reached("a", 48)], []),
        ([held("a", 48, 40), reached("a", 48), reached("a", 40), reached("a", 48)], []),
        ([held("a", 48, 40)] * 4, []),
        *(
            ([held("a", 48, 40, operation=name), reached("a", 48), reached("a", 48)], [0])
            for name in (
                "AllReduce",
                "ALLGATHER",
                "_allgather_base",
                "ReduceScatter",
                "_reduce_scatter_base",
                "all_to_all",
            )
        ),
        ([held("a", 48, 40, operation="broadcast"), reached("a", 48), reached("a", 48), reached("a", 48)], []),
        ([held("a", 48, 40, operation="send 0->1"), reached("a", 48), reached("a", 48), reached("a", 48)], []),
        ([held("a", 48, 40, operation="_all_gather_base"), reached("a", 48), reached("a", 48), reached("a", 48)], [0]),
        ([held("a", 48, 40), reached("b", 48), reached("b", 48), reached("b", 48)], []),
    ],
)
def test_a_rank_whose_device_has_stopped_has_not_completed_what_all_others_have(
    states: Sequence[CollectiveState | None], apart: list[int]
) -> None:
    assert sorted(stopped(world(*states))) == apart


@pytest.mark.parametrize(
    ("kinds", "apart"),
    [
        (["all_reduce F [8]", "all_reduce F [8]", "all_gather F [8]", "all_reduce F [8]"], [2]),
        (["all_reduce F [8]", "all_reduce F [9]", "all_reduce F [8]"], [1]),
        (["all_reduce F [8]", "all_reduce H [8]", "all_reduce F [8]"], [1]),
        (["all_to_all F [8]", "all_to_all F [9]", "all_to_all F [8]"], []),
        (["all_reduce F [8]", "all_gather F [8]"], []),
        (["all_reduce F [8]", "all_reduce F [8]", "barrier", "barrier"], []),
        (["all_reduce F [8]"] * 4, []),
        ([], []),
    ],
)
def test_most_that_wait_at_a_place_agree_on_what_it_is(kinds: list[str], apart: list[int]) -> None:
    states: States = {}
    for rank, kind in enumerate(kinds):
        operation, _, shape = kind.partition(" ")
        one = held("a", 41, 40, operation=operation)
        states[rank] = {"a": msgspec.structs.replace(one, oldest_shape=shape)}
    assert sorted(mismatched(states)) == apart


def test_operations_at_different_places_are_not_compared() -> None:
    states = world(held("a", 41, 40), held("a", 42, 41, operation="barrier"), held("a", 41, 40))
    assert mismatched(states) == {}


def test_counts_of_sends_are_not_compared() -> None:
    mine = msgspec.structs.replace(held("a", 48, 40), only_sends=True)
    assert stopped(world(mine, reached("a", 48), reached("a", 48))) == {}


def test_a_laggard_is_told_by_the_operation_that_has_waited_longest() -> None:
    states = world(held("a", 9, 8, second=7), held("a", 9, 8, second=6), reached("a", 8))
    for rank, second in ((0, 3), (1, 4)):
        states[rank]["b"] = held("b", 30, 20, second=second)
    states[2]["b"] = reached("b", 20)
    assert {rank: (one.group, one.oldest_at) for rank, one in laggards(states).items()} == {2: ("b", at(3))}


def test_a_dump_from_before_what_others_have_completed_tells_nothing_of_now() -> None:
    def at_most(enqueued: int, completed: int, operation: str = "all_reduce") -> CollectiveState:
        return msgspec.structs.replace(reached("w", enqueued, completed), completed_operation=operation)

    later = [at_most(60, 59), at_most(60, 59)]
    assert sorted(of_one_time(world(at_most(58, 58), *later))) == [1, 2]
    assert sorted(of_one_time(world(at_most(59, 58), *later))) == [0, 1, 2]
    # The root of a broadcast completes it before the others have come.
    assert sorted(of_one_time(world(at_most(58, 58), *[at_most(60, 59, "broadcast")] * 2))) == [0, 1, 2]
