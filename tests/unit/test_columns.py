"""How far a rank has come in its groups, as its summary says it."""

from __future__ import annotations

import pytest
from detection_support import at

from schemas.events import Collective
from streams.stages.columns import MOST_RANKS, reached_of


@pytest.mark.parametrize(("size", "told"), [(8, 8), (MOST_RANKS, MOST_RANKS), (MOST_RANKS + 1, 0), (10_240, 0)])
def test_the_members_of_a_large_group_are_not_told_by_each_of_them(size: int, told: int) -> None:
    ranks = list(range(size))
    dump = [
        Collective(time=at(35), group="g", ranks=ranks, sequence=number, operation="all_reduce", state="completed")
        for number in (1, 2)
    ]
    state = reached_of(dump)
    assert (len(state.ranks), state.last_completed) == (told, 2)
