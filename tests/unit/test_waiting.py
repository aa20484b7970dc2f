"""What ranks wait for, followed to where it begins."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from detection_support import at, reached

from schemas.events import Collective
from schemas.results import CollectiveState
from streams.apart import apart, said
from streams.collectives import States
from streams.stages.columns import reached_of
from streams.waiting import Place, head_of, waiting_of

STAGES = [1, 3, 5, 7]


def waits(group: str, ranks: list[int], sequence: int, *, second: float = 12, **fields: Any) -> CollectiveState:
    """A rank that has enqueued an operation of a group and not completed it."""
    known = {"oldest": sequence, "oldest_operation": "all_reduce", "oldest_at": at(second), **fields}
    return msgspec.structs.replace(reached(group, sequence, sequence - 1), ranks=ranks, **known)


def done(group: str, ranks: list[int], sequence: int) -> CollectiveState:
    return msgspec.structs.replace(reached(group, sequence), ranks=ranks)


def sends(*pairs: tuple[int, int, float], ranks: list[int] = STAGES) -> CollectiveState:
    awaits = [(sender, receiver, at(second)) for sender, receiver, second in pairs]
    state = done("pp", ranks, 4)
    return msgspec.structs.replace(state, awaits=awaits, outstanding=bool(pairs), only_sends=True, shows_sends=True)


def states(*found: CollectiveState | list[CollectiveState] | None) -> States:
    """Each rank's states; null where there is no dump."""
    lists = {rank: one if isinstance(one, list) else [one] for rank, one in enumerate(found) if one is not None}
    return {rank: {one.group: one for one in own} for rank, own in lists.items()}


WORLD = [0, 1, 2, 3]


def test_who_has_nothing_outstanding_is_where_it_begins() -> None:
    waiting = waiting_of(states(*[waits("w", WORLD, 9)] * 3, done("w", WORLD, 8)))

    assert waiting.idle == {3: Place("w", 9)}
    assert (waiting.joined, waiting.unobserved, waiting.circles) == ({}, {}, [])


def test_a_rank_that_waits_elsewhere_is_a_link() -> None:
    chain = states(
        [waits("w", WORLD, 9)],
        [waits("w", WORLD, 9)],
        [done("w", WORLD, 8), waits("pair", [2, 3], 5)],
        [done("w", WORLD, 8), done("pair", [2, 3], 4)],
    )

    assert waiting_of(chain).idle == {3: Place("pair", 5)}


def test_everybody_may_have_come_without_that_it_is_completed() -> None:
    (place,) = waiting_of(states(*[waits("w", WORLD, 9)] * 4)).joined

    assert place == Place("w", 9)


def test_a_rank_without_a_dump_may_be_what_all_wait_for() -> None:
    waiting = waiting_of(states(*[waits("w", WORLD, 9)] * 3))

    assert waiting.unobserved == {3: Place("w", 9)}
    assert waiting.joined == {}


def test_ranks_that_wait_for_each_other_are_a_circle() -> None:
    circle = states(
        [waits("a", [0, 1], 3), done("b", [0, 1], 6)],
        [done("a", [0, 1], 2), waits("b", [0, 1], 7)],
    )

    assert waiting_of(circle).circles == [Place("a", 3), Place("b", 7)]


def test_who_has_completed_it_is_not_waited_for() -> None:
    waiting = waiting_of(states(*[waits("w", WORLD, 9)] * 3, done("w", WORLD, 9)))

    assert waiting.idle == {}


def test_who_is_further_on_in_a_group_waits_for_its_first_place() -> None:
    waiting = waiting_of(states(waits("w", WORLD, 11), *[waits("w", WORLD, 9)] * 2, done("w", WORLD, 8)))

    assert waiting.places[Place("w", 11)].earlier == Place("w", 9)
    assert (waiting.idle, waiting.circles) == ({3: Place("w", 9)}, [])


def test_a_rank_is_at_what_it_enqueued_first() -> None:
    groups = states([waits("w", WORLD, 9, second=14), waits("tp", [0, 1], 5, second=13)])[0]

    assert head_of(0, groups) == Place("tp", 5)


def test_a_send_that_waits_is_a_place_too() -> None:
    pipeline = {1: sends((1, 0, 12)), 3: sends(), 5: sends((1, 2, 12)), 7: sends((2, 3, 12))}
    waiting = waiting_of({rank: {"pp": own} for rank, own in pipeline.items()})

    assert waiting.heads == {
        1: Place("pp", -1, (3, 1)),
        5: Place("pp", -1, (3, 5)),
        7: Place("pp", -1, (5, 7)),
    }
    assert list(waiting.idle) == [3]


@pytest.mark.parametrize(
    ("ranks", "pair", "place"),
    [
        ([0, 2, 4], (1, 2), (2, 4)),
        ([0, 2, 4], (2, 1), (4, 2)),
        ([0, 2, 4], (2, 4), (2, 4)),
        ([0, 2, 4], (0, 2), (0, 2)),
        ([0, 2, 4], (2, 3), None),
        ([0, 2, 4], (1, 7), None),
        ([], (2, 4), None),
    ],
)
def test_numbers_of_a_send_are_places_in_the_group_or_ranks(
    ranks: list[int], pair: tuple[int, int], place: tuple[int, int] | None
) -> None:
    head = head_of(2, {"pp": sends((*pair, 12), ranks=ranks)})

    assert head == (None if place is None else Place("pp", -1, place))


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


def test_a_window_tells_who_sends_to_whom_and_since_when() -> None:
    found = [
        operation("send 1->2", "completed", 1),
        operation("recv 1<-0", "started", 3),
        operation("send 1->2", "enqueued", 2),
        operation("send 1->2", "enqueued", 4),
        operation("coalesced", "enqueued", 5),
        operation("all_reduce", "started", 6),
        operation("all_reduce", "enqueued", 7),
    ]

    state = reached_of(found)

    assert state.awaits == [(1, 2, at(2)), (0, 1, at(3))]
    assert (state.oldest, state.oldest_started) == (6, True)


@pytest.mark.parametrize(
    ("found", "grounds", "apart_ranks"),
    [
        (states(*[waits("w", WORLD, 9)] * 3, done("w", WORLD, 8)), "never_enqueued", [3]),
        (states(*[waits("w", WORLD, 9)] * 4), "none_completed", []),
        (states(*[waits("w", WORLD, 9)] * 3), "one_unobserved", []),
        (states(*[waits("w", WORLD, 9)] * 3, waits("w", WORLD, 9, oldest_operation="broadcast")), "mismatched", [3]),
        (
            states(
                *[waits("w", WORLD, 9, oldest_shape="F [9]")] * 2, *[waits("w", WORLD, 9, oldest_shape="F [8]")] * 2
            ),
            "unmatched",
            [],
        ),
        # What a dump does not tell is held against nobody: neither a name nor sizes.
        (states(*[waits("w", WORLD, 9)] * 3, waits("w", WORLD, 9, oldest_operation="")), "none_completed", []),
        (states(*[waits("w", WORLD, 9, oldest_shape="F [8]")] * 3, waits("w", WORLD, 9)), "none_completed", []),
        # One ahead of two in its group, while another group hangs: neither it nor the two are named.
        (
            states(waits("a", [0, 1, 2], 9), *[done("a", [0, 1, 2], 8)] * 2, *[waits("b", [3, 4, 5, 6], 5)] * 4),
            "few_ahead",
            [],
        ),
        # Of a member whose dump does not show the group nothing is known.
        (states(*[waits("w", WORLD, 9)] * 3, done("x", WORLD, 9)), "one_unobserved", []),
        # A device may not have begun because it waits for one that is not seen.
        (
            states(*[waits("w", list(range(5)), 9, oldest_started=True)] * 3, waits("w", list(range(5)), 9)),
            "one_unobserved",
            [],
        ),
        (states(*[waits("w", WORLD, 9, oldest_started=True)] * 3, waits("w", WORLD, 9)), "never_started", [3]),
        (
            states(*[waits("w", WORLD, 9, oldest_started=True)] * 2, *[waits("w", WORLD, 9)] * 2),
            "none_completed",
            [],
        ),
    ],
)
def test_who_stands_apart_where_the_chains_begin(found: States, grounds: str, apart_ranks: list[int]) -> None:
    judged = apart(found, stages=1)

    assert judged is not None
    assert (judged.grounds, list(judged.ranks)) == (grounds, apart_ranks)


@pytest.mark.parametrize("found", [{}, states(*[done("w", WORLD, 9)] * 4)])
def test_where_nobody_waits_nothing_is_said(found: States) -> None:
    assert apart(found, stages=1) is None


def test_several_places_to_which_all_have_come_are_all_told() -> None:
    pairs = states(waits("a", [0, 1], 3), waits("a", [0, 1], 3), waits("b", [2, 3], 5), waits("b", [2, 3], 5))

    judged = apart(pairs, stages=1)

    assert judged is not None
    assert judged.grounds == "none_completed"
    assert judged.places == [("all_reduce 3 of group a", [0, 1]), ("all_reduce 5 of group b", [2, 3])]


def test_a_send_is_said_with_its_two_ranks() -> None:
    pipeline = {3: {"pp": sends((1, 2, 12))}}
    assert said(Place("pp", -1, (3, 5)), waiting_of(pipeline), pipeline) == "what rank 3 sends to rank 5 in group pp"
