"""Other stages of a rank's replica: asked of many ranks at once as of each by itself."""

from __future__ import annotations

import pytest
from detection_support import identity, new_view

from streams.member import Member
from streams.places import each_by_position, replica_elsewhere, replicas_elsewhere


@pytest.mark.parametrize("known", [("dp", "pp"), ("dp",), ("pp",), ()])
def test_of_many_ranks_at_once_it_is_as_of_each(known: tuple[str, ...]) -> None:
    view = new_view()
    for rank in range(12):
        at = {"dp": rank % 4, "pp": rank // 4}
        told = identity(rank, coordinates={axis: at[axis] for axis in known})
        view.members[rank] = Member(identity=told, first_seen=0, last_life=0)
    found = replicas_elsewhere(view, [1, 6, 11], view.members)
    assert found == {rank: replica_elsewhere(view, [rank], view.members) for rank in (1, 6, 11)}
    assert found[6] == ({2, 10} if len(known) == 2 else set())
    assert each_by_position(view, view.members) >= {0, 11}
