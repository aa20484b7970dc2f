"""Who stands apart where the waits of a job begin, and what is said where nobody does."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

import msgspec
import pytest
from detection_support import at, closed, named, new_view, reached, run, stalled, still

from schemas.events import Collective
from schemas.results import Anomaly, CollectiveState
from streams.apart import apart
from streams.collectives import States
from streams.detectors.collective_laggard import CollectiveLaggard
from streams.outrun import never_completed, outrun
from streams.stages.columns import reached_of
from streams.waiting import waiting_of

ALL = "dp:0-7"


def one(group: str, enqueued: int, completed: int, operation: str = "all_reduce", second: float = 5) -> CollectiveState:
    """A state in a group that its name tells the ranks of (``dp:0-3``); what waits longest is next to the completed."""
    first, _, last = group.rpartition(":")[2].partition("-")
    state = reached(group, enqueued, completed, operation=operation, ranks=range(int(first), int(last) + 1))
    if enqueued == completed:
        return state
    return msgspec.structs.replace(state, oldest=completed + 1, oldest_operation=operation, oldest_at=at(second))


def sends(group: str, operation: str, count: int = 8) -> CollectiveState:
    """A rank that waits in a send or receive of a group that has nothing else."""
    here, there = map(int, re.findall(r"\d+", operation))
    pair = (there, here, at(5)) if operation.startswith("recv") else (here, there, at(5))
    state = one(group, count, count - 1, operation)
    return msgspec.structs.replace(state, only_sends=True, shows_sends=True, awaits=[pair])


def states(*ranks: Sequence[CollectiveState]) -> States:
    return {rank: {state.group: state for state in found} for rank, found in enumerate(ranks)}


def finding(reached_by: States, ranks: int) -> Anomaly:
    extra = {rank: {"collectives": list(groups.values())} for rank, groups in reached_by.items()}
    (found,) = run(CollectiveLaggard(), new_view(), stalled(ranks, extra))[-1]
    return found


DONE = one("dp:0-3", 40, 40)
WAIT = one("dp:0-3", 41, 40)


@pytest.mark.parametrize(
    ("reached_by", "grounds", "text"),
    [
        (
            states(*[[one(ALL, 41, 40)]] * 8),
            "none_completed",
            "hang: all ranks of the group have joined all_reduce 41 of group dp:0-7, none has completed it",
        ),
        (
            states(*[[one(ALL, 41, 40)]] * 6, *[[one(ALL, 42, 41)]] * 2),
            "none_completed",
            "joined all_reduce 41 of group dp:0-7, which ranks 6-7 completed",
        ),
        (
            states(*[[one(ALL, 41, 40)]] * 7),
            "one_unobserved",
            "ranks 0-6 wait in all_reduce 41 of group dp:0-7; no dump shows whether rank 7 came",
        ),
        (states(*[[one(ALL, 41, 40)]] * 6), "some_unobserved", "no dump shows whether ranks 6-7 came"),
        (
            states(*[[one(ALL, 41, 40)]] * 3, *[[one(ALL, 40, 40)]] * 5),
            "few_ahead",
            "ranks 0-2 wait in all_reduce 41 of group dp:0-7, and ranks 3-7 did not come to it",
        ),
        (
            states(*[[one("dp:0-31", 41, 40)]] * 2, *[[one("dp:0-31", 40, 40)]] * 30),
            "few_ahead",
            "ranks 2-31 did not come to it",
        ),
        (
            states(*[[one(ALL, 41, 40), one("tp:0-3", 8, 8)]] * 2, *[[one(ALL, 40, 40), one("tp:0-3", 9, 8)]] * 2),
            "perhaps_unobserved",
            "no dump shows whether ranks 4-7 came",
        ),
        (
            states(*[[WAIT, one("tp:0-3", 8, 8)]] * 2, *[[DONE, one("tp:0-3", 9, 8, second=4)]] * 2),
            "different_collectives",
            "ranks 2-3 wait in all_reduce 9 of group tp:0-3; ranks 0-1 wait in all_reduce 41 of group dp:0-3",
        ),
        (
            # Ranks 0 and 1 wait for 2 and 3, which have joined the earlier operation that nobody completes.
            states(*[[WAIT]] * 2, *[[DONE, one("tp:2-3", 9, 8, "all_gather", 4)]] * 2),
            "none_completed",
            "joined all_gather 9 of group tp:2-3",
        ),
    ],
    ids=[
        "all joined", "some completed it", "a dump is missing", "two are missing", "five lag of eight", "two are ahead",
        "a chain, not all seen", "each other's", "a chain",
    ],
)  # fmt: skip
def test_where_nothing_tells_the_ranks_apart_the_group_is_told_and_nobody_named(
    reached_by: States, grounds: str, text: str
) -> None:
    found = finding(reached_by, len(reached_by))
    assert (named([found]), found.grounds) == ([[]], grounds)
    assert text in found.text
    assert found.area == ("network" if grounds == "none_completed" else "unknown")
    assert found.victims == waiting_of(reached_by).blocked


def test_a_pair_whose_operations_do_not_match_is_told_and_neither_named() -> None:
    found = finding(states([one("dp:0-1", 41, 40)], [one("dp:0-1", 41, 40, "broadcast")]), 2)
    assert (named([found]), found.grounds, found.area, found.victims) == ([[]], "unmatched", "code", [0, 1])
    assert found.text == (
        "rank 0 in all_reduce 41 of group dp:0-1; rank 1 in broadcast 41 of group dp:0-1: "
        "these do not match, and no majority tells who is wrong"
    )


def test_who_left_no_dump_is_unobserved_also_where_somebody_is_named() -> None:
    found = finding(states(*[[one(ALL, 41, 40)]] * 5, [one(ALL, 40, 40)]), 6)
    assert (named([found]), found.unobserved) == ([[5]], [6, 7])


def test_a_rank_of_a_blocked_group_that_nobody_ever_saw_is_unobserved() -> None:
    found = finding(states(*[[one(ALL, 41, 40)]] * 6), 6)
    assert found.unobserved == [6, 7]


@pytest.mark.parametrize(
    ("reached_by", "ranks"),
    [
        # Nothing outstanding, and behind.
        (states([WAIT], [WAIT], [DONE], [WAIT]), [2]),
        # It waits for what holds none of its peers, who went on to what it never came to.
        (states(*[[WAIT, one("ep:0-7", 9, 8)]] * 3, [DONE, one("ep:0-7", 9, 8)]), [3]),
        # Its peers completed what it waits for: it is a link of a chain.
        (states(*[[WAIT, one("ep:0-7", 9, 9)]] * 3, [DONE, one("ep:0-7", 10, 9)]), []),
        # Two of them wait for the same, but two never came.
        (states(*[[WAIT, one("ep:0-7", 9, 8)]] * 2, *[[DONE, one("ep:0-7", 9, 8)]] * 2), []),
        # Each pair has a count of its own: 12 sends are not behind 14.
        (states([sends("pp:0-3", "recv 0<-1", 14)], [sends("pp:0-3", "send 1->0", 12)]), []),
        (states([sends("pp:0-3", "recv 0<-1", 14)], [msgspec.structs.replace(DONE, only_sends=True)]), [1]),
        # A receive that waits for a partner that waits for nobody.
        (states([sends("pp:0-1", "recv 0<-1")], [one("dp:1-2", 8, 8)], [one("dp:1-2", 8, 8)]), [1]),
        (states([sends("pp:0-1", "recv 0<-1")], [one("dp:1-2", 9, 8)], [one("dp:1-2", 8, 8)]), [2]),
        # The recorder counts places in the group: 1 of ranks 4-5 is rank 5, of which there is no dump.
        (states([sends("pp:4-5", "recv 0<-1")], [DONE]), []),
        (states([sends("pp:0-1", "recv 0<-9")], [DONE]), []),
        # The like wait in another group of the kind: both stages' pairs wait, and only rank 2 stopped short.
        (
            states(
                [WAIT, one(ALL, 5, 5), sends("pp:0-4", "recv 0<-1")],
                [WAIT, one(ALL, 5, 5), sends("pp:1-5", "recv 0<-1")],
                [DONE, one(ALL, 5, 5), sends("pp:2-6", "recv 0<-1")],
                [WAIT, one(ALL, 5, 5), sends("pp:3-7", "recv 0<-1")],
            ),
            [2],
        ),
        # All have joined what they wait for, and all but one went on to enqueue the same number more.
        (states(*[[one(ALL, 48, 40)]] * 7, [one(ALL, 43, 40)]), [7]),
        (states(*[[one(ALL, 48, 40)]] * 4, *[[one(ALL, 47, 40)]] * 4), []),
        (states(*[[one(ALL, 48, 40)]] * 5, *[[one(ALL, 47, 40)]] * 3), []),
        # One that is behind in one group and ahead in another only ran differently far.
        (states(*[[one(ALL, 48, 40), one("tp:0-7", 8, 7)]] * 7, [one(ALL, 43, 40), one("tp:0-7", 9, 7)]), []),
        # In a group of all stages nobody is a peer for a like send alone.
        (states(*[[one("dp:0-4", 41, 40), sends(f"pp:{n}-{n + 4}", "recv 0<-1")] for n in range(4)],
                [one("dp:0-4", 40, 40), sends("pp:4-8", "recv 0<-1")]), []),
    ],
)  # fmt: skip
def test_who_never_came_though_nothing_shows_it_waiting(reached_by: States, ranks: list[int]) -> None:
    assert sorted({*waiting_of(reached_by).idle, *outrun(reached_by)}) == ranks


def looks(ranks: int, behind: int) -> int:
    """How many calls it takes to find ``behind`` ranks of a group that its others have outrun."""
    runs = [(0, 1, ranks)]
    short, far = (msgspec.structs.replace(one(ALL, last, 8), oldest=9, ranks=[], runs=runs) for last in (9, 12))
    idle = msgspec.structs.replace(one("idle:0-7", 9, 9), ranks=[], runs=runs)
    reached_by = states(*[[short, idle]] * behind, *[[far, idle]] * (ranks - behind))
    calls = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        found = outrun(reached_by)
    finally:
        sys.setprofile(None)
    assert sorted(found) == list(range(behind))
    return calls


def test_a_large_minority_costs_about_as_much_as_a_small_one() -> None:
    assert looks(400, 60) < 1.5 * looks(400, 6)


@pytest.mark.parametrize(
    ("completed", "ranks"),
    [
        ([40, 48, 48, 48], [0]),
        ([40, 40, 48, 48, 48], [0, 1]),
        ([40, 45, 48, 48, 48], [0, 1]),
        ([40, 40, 48, 48], []),
        ([40, 40, 40, 48, 48], []),
        ([40, 48], []),
        ([48, 48, 48], []),
    ],
)
def test_several_devices_of_a_group_may_have_stopped_together(completed: list[int], ranks: list[int]) -> None:
    reached_by = states(*[[one("dp:0-7", 60 if done == 48 else 48, done)] for done in completed])
    assert sorted(never_completed(reached_by)) == ranks


def begun(state: CollectiveState) -> CollectiveState:
    return msgspec.structs.replace(state, oldest_started=True)


@pytest.mark.parametrize(
    ("reached_by", "ranks"),
    [
        (states(*[[begun(WAIT)]] * 3, [WAIT]), [3]),
        (states(*[[begun(WAIT)]] * 2, *[[WAIT]] * 2), []),
        (states(*[[WAIT]] * 4), []),
        # It may wait for what its device has begun in another group.
        (states(*[[begun(WAIT)]] * 3, [WAIT, begun(one("tp:2-3", 9, 8))]), []),
        (states(*[[begun(WAIT)]] * 3, [WAIT, one("tp:2-3", 9, 8)]), [3]),
        # One of the others has not come.
        (states(*[[begun(WAIT)]] * 2, [DONE], [WAIT]), []),
        # All have begun, and one is at another operation.
        (states(*[[begun(WAIT)]] * 3, [one("dp:0-3", 42, 41)]), []),
    ],
)
def test_a_device_that_has_not_begun_what_most_have(reached_by: States, ranks: list[int]) -> None:
    judged = apart(reached_by, stages=1)
    assert judged is not None
    assert [rank for rank, one in judged.ranks.items() if one.grounds == "never_started"] == ranks


def test_a_device_that_has_not_begun_is_named() -> None:
    found = finding(states(*[[begun(one(ALL, 41, 40))]] * 7, [one(ALL, 41, 40)]), 8)
    assert [(suspect.rank, suspect.kind) for suspect in found.suspects] == [(7, "stopped_device")]
    assert found.text == "rank 7 enqueued and did not begin all_reduce 41 of group dp:0-7"


def test_a_rank_that_never_came_is_named_beside_a_device_that_has_stopped() -> None:
    both = states(*[[one(ALL, 60, 48)]] * 6, [one(ALL, 48, 40)], [one(ALL, 48, 48)])
    found = finding(both, 8)
    assert [(suspect.rank, suspect.kind) for suspect in found.suspects] == [(6, "stopped_device"), (7, "blocker")]
    assert found.grounds == "never_completed"
    assert "rank 6 never completed all_reduce 41" in found.text and "rank 7 never enqueued" in found.text


def test_c4_calls_it_a_non_communication_hang_where_somebody_has_not_come() -> None:
    found = finding(states(*[[one(ALL, 41, 40)]] * 7, [one(ALL, 40, 40)]), 8)
    assert (named([found]), found.grounds) == ([[7]], "never_enqueued")
    assert found.text == "non-communication hang: rank 7 never enqueued all_reduce 41 of group dp:0-7"


def test_who_waits_in_a_send_is_a_victim() -> None:
    waits = [sends("pp:6-7", "send 0->1"), one(ALL, 40, 40)]
    found = finding(states(*[[one(ALL, 41, 40)]] * 6, waits, [one(ALL, 40, 40)]), 8)
    assert (named([found]), found.victims) == ([[7]], [0, 1, 2, 3, 4, 5, 6])


def test_a_communication_hang_is_told_in_each_window_of_the_stall() -> None:
    extra = {rank: {"collectives": [one("dp:0-1", 41, 40)]} for rank in range(2)}
    windows = [*stalled(2, extra), still(2, 40), closed([], 50)]
    found = run(CollectiveLaggard(), new_view(), windows)
    assert [[anomaly.grounds for anomaly in window] for window in found[3:5]] == [["none_completed"]] * 2


@pytest.mark.parametrize(("state", "began"), [("started", True), ("enqueued", False), ("completed", False)])
def test_of_what_waits_longest_it_is_kept_whether_the_device_has_begun_it(state: Any, began: bool) -> None:
    told = Collective(time=at(35), group="a", sequence=41, operation="all_reduce", state=state, created=at(5))
    assert reached_of([told]).oldest_started is began
