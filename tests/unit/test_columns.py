"""How far a rank has come in its groups, as its summary says it."""

from __future__ import annotations

import pytest
from detection_support import at

from schemas.codec import encode
from schemas.events import Collective
from schemas.results import CollectiveState
from streams.stages.columns import MOST_RANKS, reached_of


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
        (list(range(MOST_RANKS)), False),
        (list(range(MOST_RANKS + 1)), True),
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
