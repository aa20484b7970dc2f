"""Whom sends and receives wait for."""

from __future__ import annotations

import msgspec
import pytest
from detection_support import at, reached

from schemas.events import Collective
from schemas.results import CollectiveState
from streams.collectives import States
from streams.sends import awaited_peers, silent_peers
from streams.stages.columns import reached_of

STAGES = [1, 3, 5, 7]


def waiting(group: str, ranks: list[int], *pairs: tuple[int, int]) -> CollectiveState:
    return msgspec.structs.replace(reached(group, 4), ranks=ranks, awaits=list(pairs), outstanding=bool(pairs))


def pipeline(**stages: tuple[int, int]) -> States:
    """Each stage's rank with the pair that it waits in, if any."""
    waits = {int(name.removeprefix("rank")): pair for name, pair in stages.items()}
    return {rank: {"pp": waiting("pp", STAGES, *([waits[rank]] if rank in waits else []))} for rank in STAGES}


def test_numbers_are_places_in_the_group() -> None:
    states = pipeline(rank1=(0, 1), rank5=(2, 1), rank7=(3, 2))

    assert {rank: sorted(peers) for rank, peers in awaited_peers(states).items()} == {1: [3], 5: [3], 7: [5]}


def test_who_is_waited_for_and_waits_for_nobody_stands_at_the_end_of_the_chain() -> None:
    states = pipeline(rank1=(0, 1), rank5=(2, 1), rank7=(3, 2))

    assert {rank: sorted(waiting) for rank, waiting in silent_peers(states).items()} == {3: [1, 5]}


def test_a_circle_has_no_end() -> None:
    assert silent_peers(pipeline(rank1=(0, 1), rank3=(1, 0))) == {}


def test_who_waits_in_another_group_is_no_end() -> None:
    states = pipeline(rank1=(0, 1))
    states[3]["dp"] = waiting("dp", [2, 3], (1, 0))

    assert silent_peers(states) == {}


def test_of_whom_nothing_was_observed_nothing_is_said() -> None:
    states = pipeline(rank1=(0, 1))
    del states[3]

    assert silent_peers(states) == {}


@pytest.mark.parametrize(
    ("ranks", "pair", "peer"),
    [
        ([0, 2, 4], (1, 2), [4]),
        ([0, 2, 4], (2, 4), [4]),
        ([0, 2, 4], (2, 3), []),
        ([0, 2, 4], (0, 1), []),
        ([0, 2, 4], (1, 7), []),
        ([], (2, 4), []),
    ],
)
def test_numbers_are_ranks_where_the_ranks_own_shows_it(
    ranks: list[int], pair: tuple[int, int], peer: list[int]
) -> None:
    assert sorted(awaited_peers({2: {"pp": waiting("pp", ranks, pair)}}).get(2, {})) == peer


def operation(name: str, state: str, sequence: int) -> Collective:
    return msgspec.convert(
        {
            "time": at(9),
            "group": "pp",
            "ranks": STAGES,
            "sequence": sequence,
            "operation": name,
            "state": state,
            "created": at(sequence),
            "point_to_point": name != "all_reduce",
        },
        Collective,
    )


def test_a_window_tells_the_pairs_that_are_not_completed() -> None:
    found = [
        operation("send 1->2", "completed", 1),
        operation("recv 1<-0", "started", 3),
        operation("send 1->2", "enqueued", 2),
        operation("send 1->2", "enqueued", 4),
        operation("coalesced", "enqueued", 5),
        operation("all_reduce", "enqueued", 6),
    ]

    assert reached_of(found).awaits == [(1, 0), (1, 2)]
