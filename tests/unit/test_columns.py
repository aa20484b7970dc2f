"""How far a rank has come in its groups, as its summary says it."""

from __future__ import annotations

import msgspec
import pytest
from detection_support import at, identity

from schemas.codec import encode
from schemas.events import Collective
from schemas.results import CollectiveState
from streams.config import StreamConfig
from streams.stages.columns import MOST_AWAITED, MOST_TOLD, reached_of
from streams.stages.worker import WorkerState, summarise
from streams.waiting import waiting_of


def state_of(ranks: list[int]) -> CollectiveState:
    return reached_of(
        [
            Collective(time=at(35), group="g", ranks=ranks, sequence=number, operation="all_reduce", state="completed")
            for number in (1, 2)
        ]
    )


@pytest.mark.parametrize(
    ("ranks", "compact"),
    [
        (list(range(8)), False),
        (list(range(MOST_TOLD)), False),
        (list(range(MOST_TOLD + 1)), True),
        (list(range(10_240)), True),
        (list(range(3, 10_240, 8)), True),
        ([*range(0, 5_000), *range(5_001, 10_240)], True),
        ([7 * number % 10_007 for number in range(500)], True),
        ([number * number % 10_007 for number in range(500)], False),
        ([5] * 200, True),
    ],
)
def test_members_of_a_large_group_are_told_in_few_numbers(ranks: list[int], compact: bool) -> None:
    state = state_of(ranks)
    assert list(state.members) == ranks
    assert (state.ranks == [], bool(state.runs)) == (compact, compact)
    assert not compact or len(encode(state)) < 600


def test_a_large_groups_members_are_asked_as_a_list_is() -> None:
    ranks = [*range(100, 300, 2), 7, *range(1000, 1100)]
    members = state_of(ranks).members
    assert (len(members), members[0], members[100], members[-1], members[99:102]) == (201, 100, 7, 1099, ranks[99:102])
    assert [rank in members for rank in (7, 100, 101, 298, 300, 1099)] == [True, True, False, True, False, True]
    with pytest.raises(IndexError):
        members[201]


@pytest.mark.parametrize("more", [0, 36])
def test_a_rank_with_more_sends_than_are_told_one_by_one_waits_and_they_are_counted(more: int) -> None:
    found = [
        Collective(
            time=at(35),
            group="g",
            ranks=[0, *range(1, 200)],
            sequence=peer,
            operation=f"send 0->{peer}",
            state="enqueued",
            point_to_point=True,
            created=at(peer / 100),
        )
        for peer in range(1, MOST_AWAITED + more + 1)
    ]
    summary, _ = summarise(identity(0), WorkerState(), [*found, *found], 0, StreamConfig())
    (state,) = summary.collectives
    assert (len(state.awaits), state.outstanding) == (MOST_AWAITED, True)
    assert summary.dropped == ({"awaited sends": more} if more else {})
    assert waiting_of({0: {"g": state}}).blocked == [0]
    assert waiting_of({0: {"g": msgspec.structs.replace(state, awaits=[])}}).blocked == [0]
