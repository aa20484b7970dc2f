"""Slow collectives through windows: for whom a group waits, whose sends are slow; evidence that names nobody."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

import msgspec
import pytest
from detection_support import at, closed, new_view, run, stepping, summary

from schemas.events import Collective
from schemas.results import Anomaly, OperationTimes
from streams.attempt_window import AttemptWindow
from streams.detectors.collective_delay import CollectiveDelay, CollectiveDelayConfig
from streams.stages.columns import MOST_KINDS, MOST_OPERATIONS, Timed

MS = 1_000_000
RANKS = 8
Took = Callable[[int, int], float]


def times(
    group: str, start: int, took: Callable[[int], float], operation: str = "AllReduce", **more: int
) -> OperationTimes:
    steps = range(start, start + 10)
    return OperationTimes(
        group=group,
        operation=operation,
        sequences=list(steps),
        durations=[int(took(step) * MS) for step in steps],
        times=[at(step) for step in steps],
        **more,
    )


def windows(*groups: tuple[str, Iterable[int], Took], count: int = 8) -> list[AttemptWindow]:
    """A step a second; ``took`` gives the ms of an operation by rank and step."""
    return [
        closed(
            [
                stepping(
                    rank,
                    start,
                    first=start + 1,
                    operations=[
                        times(group, start, lambda step, rank=rank, took=took: took(rank, step))  # type: ignore[misc]
                        for group, members, took in groups
                        if rank in members
                    ],
                )
                for rank in range(RANKS)
            ],
            start,
        )
        for start in range(0, 10 * count, 10)
    ]


def told(found: list[list[Anomaly]]) -> list[str]:
    return [one.grounds for window in found for one in window]


def noise(seed: int) -> Took:
    chance = random.Random(seed)
    return lambda _rank, _step: 10 + chance.uniform(0, 1)


def waiting_for(late: int, since: int) -> Took:
    rest = noise(1)
    return lambda rank, step: rest(rank, step) + (30 if step >= since and rank != late else 0)


def test_the_group_that_waits_for_one_is_told_with_its_numbers() -> None:
    found = run(CollectiveDelay(), new_view(), windows(("world", range(RANKS), waiting_for(5, 30))))
    (one,) = [one for window in found for one in window]
    assert one.text.startswith("rank 5 is the last to join") and one.text.endswith(
        "operations AllReduce of group world"
    )
    assert one.peers.startswith("the others take 40")
    assert (one.grounds, one.symptom, one.layer, one.axis, one.onset) == (
        "joins_last",
        "slowdown",
        "collective",
        "space",
        at(30),
    )
    assert (one.severity, one.suspects, one.victims) == ("info", [], [])


def test_what_goes_on_is_told_again_but_not_in_each_window() -> None:
    found = run(CollectiveDelay(), new_view(), windows(("world", range(RANKS), waiting_for(5, 0)), count=15))
    assert [number for number, window in enumerate(found) if window] == [2, 8, 14]


@pytest.mark.parametrize("seed", range(10))
def test_a_healthy_job_says_nothing(seed: int) -> None:
    pairs = [(f"pair{first}", (first, first + 1), noise(seed + first)) for first in range(0, RANKS, 2)]
    assert told(run(CollectiveDelay(), new_view(), windows(("world", range(RANKS), noise(seed)), *pairs))) == []


def test_of_several_groups_the_one_that_loses_most_is_told() -> None:
    small, large = waiting_for(1, 0), waiting_for(6, 0)
    groups = [("a", range(4), small), ("b", range(4, 8), lambda rank, step: 2 * large(rank, step))]
    (one,) = [one for window in run(CollectiveDelay(), new_view(), windows(*groups, count=3)) for one in window]
    assert "rank 6" in one.text


def test_transfers_that_take_longer_than_before_are_told_by_time() -> None:
    rest = noise(3)
    slower: Took = lambda rank, step: rest(rank, step) * (3 if step >= 60 else 1)  # noqa: E731
    found = run(CollectiveDelay(), new_view(), windows(("world", range(RANKS), slower), count=9))
    (one,) = [one for window in found for one in window]
    assert (one.grounds, one.axis, one.area) == ("slow_transfer", "time", "network")


@pytest.mark.parametrize("ranks", [(4, 5, 6), (0, 1, 2, 3, 4, 5, 6)])
def test_an_operation_that_some_of_the_group_do_not_report_says_nothing(ranks: tuple[int, ...]) -> None:
    """Who is not heard may be the last."""
    took = waiting_for(5, 20)
    whole = windows(("world", range(RANKS), took), count=2)
    some = windows(("world", ranks, took), count=6)[2:]
    assert told(run(CollectiveDelay(), new_view(), [*whole, *some])) == []


@pytest.mark.parametrize(("members", "expected"), [(0, []), (RANKS, ["joins_last"]), (2 * RANKS, [])])
def test_what_all_members_have_told_is_judged_at_once(members: int, expected: list[str]) -> None:
    """A dump shows many operations in one window, and nothing may come behind it."""
    took = waiting_for(5, 0)
    summaries = [
        stepping(
            rank,
            0,
            first=1,
            operations=[
                OperationTimes(
                    group="world",
                    operation="all_reduce",
                    sequences=list(range(32)),
                    durations=[int(took(rank, step) * MS) for step in range(32)],
                    times=[at(5)] * 32,
                    members=members,
                )
            ],
        )
        for rank in range(RANKS)
    ]
    assert told(run(CollectiveDelay(), new_view(), [closed(summaries, 0)])) == expected


@pytest.mark.parametrize(("operation", "expected"), [("AllReduce", ["joins_last"]), ("Broadcast", [])])
def test_only_operations_that_wait_for_all_are_compared(operation: str, expected: list[str]) -> None:
    found = windows(("world", range(RANKS), waiting_for(5, 0)), count=3)
    named = [
        msgspec.structs.replace(
            window,
            summaries=[
                msgspec.structs.replace(
                    one, operations=[msgspec.structs.replace(own, operation=operation) for own in one.operations]
                )
                for one in window.summaries
            ],
        )
        for window in found
    ]
    assert told(run(CollectiveDelay(), new_view(), named)) == expected


def sending(slow: Callable[[int, int], bool]) -> list[AttemptWindow]:
    """Each of four ranks sends to each other one; both ends say how long it took."""
    summaries = []
    for rank in range(4):
        own = []
        for peer in range(4):
            if peer != rank:
                out, back = (30 if slow(rank, peer) else 10), (30 if slow(peer, rank) else 10)
                own.append(times("pp", 0, lambda _, out=out: out, "Send", peer=peer))  # type: ignore[misc]
                # A receiver that comes first waits for its sender too.
                own.append(times("pp", 0, lambda _, back=back: back + 90, "recv", peer=peer))  # type: ignore[misc]
        summaries.append(stepping(rank, 0, first=1, operations=own))
    return [closed(summaries, 0)]


@pytest.mark.parametrize(
    ("slow", "grounds", "text"),
    [
        (lambda sender, _: sender == 2, "slow_sender", "whatever rank 2 sends, to 3 ranks,"),
        (lambda _, receiver: receiver == 1, "slow_receiver", "whatever rank 1 receives, from 3 ranks,"),
        (lambda sender, receiver: (sender, receiver) == (2, 0), "hot_link", "what rank 2 sends to rank 0"),
        (lambda sender, receiver: sender + receiver == 3, None, ""),
        (lambda _sender, _receiver: False, None, ""),
    ],
)
def test_sends_and_receives_make_a_delay_matrix(
    slow: Callable[[int, int], bool], grounds: str | None, text: str
) -> None:
    ((*found,),) = run(CollectiveDelay(), new_view(), sending(slow))
    assert [one.grounds for one in found] == ([grounds] if grounds else [])
    assert all(one.text.startswith(text) for one in found)


def test_a_flood_of_groups_and_operations_stays_bounded() -> None:
    detector = CollectiveDelay()
    for start in range(0, 50, 10):
        many = [times(f"group {start} {number}", start, lambda _: 10) for number in range(300)]
        pairs = [times(f"pair {start} {number}", start, lambda _: 10, "Send", peer=1) for number in range(300)]
        run(detector, new_view(), [closed([stepping(0, start, first=1, operations=[*many, *pairs])], start)])
    assert len(detector.state.kinds) == len(detector.state.pairs) == 128


def told_at_once(ranks: int, members: int, count: int) -> AttemptWindow:
    """All that ``ranks`` say of ``count`` operations in one window; all wait for rank 5."""
    took = waiting_for(5, 0)
    one = OperationTimes(
        group="world",
        operation="AllReduce",
        sequences=list(range(count)),
        durations=[int(took(0, step) * MS) for step in range(count)],
        times=[at(1) + step for step in range(count)],
        members=members,
    )
    last = msgspec.structs.replace(one, durations=[10 * MS] * count)
    return closed([summary(rank, 0, operations=[last if rank == 5 else one]) for rank in range(ranks)], 0)


@pytest.mark.parametrize(
    ("members", "expected", "left_out"), [(4096, ["joins_last"], {}), (0, ["joins_last"], {"operations": 12})]
)
def test_operations_of_thousands_of_ranks_are_judged_before_any_is_left_out(
    members: int, expected: list[str], left_out: dict[str, int]
) -> None:
    detector = CollectiveDelay()
    found = run(detector, new_view(), [told_at_once(4096, members, 32), closed([], 10)])
    assert told(found) == expected and detector.state.left_out == left_out
    assert [one.text.endswith("; not compared: 12 operations for which there was no room") for one in found[1]] == (
        [True] if left_out else []
    )


def test_reports_that_come_too_late_or_of_too_few_are_counted() -> None:
    took: Took = lambda _rank, _step: 10  # noqa: E731
    first, second = windows(("world", range(RANKS - 1), took), count=2)
    late = stepping(7, 10, first=11, operations=[times("world", 0, lambda _: 10), times("world", 20, lambda _: 10)])
    detector = CollectiveDelay()
    run(detector, new_view(), [first, second, closed([late], 20), closed([], 30)])
    assert detector.state.left_out == {"incomplete": 10, "late": 10}


def everybody_sends(ranks: int, start: int = 0) -> AttemptWindow:
    """Each sends to each; what rank 2 sends takes longer."""
    return closed(
        [
            summary(
                rank,
                start,
                operations=[
                    OperationTimes(
                        group="world",
                        operation="Send",
                        sequences=[1],
                        durations=[(30 if rank == 2 else 10) * MS],
                        times=[at(start + 1)],
                        peer=peer,
                    )
                    for peer in range(ranks)
                    if peer != rank
                ],
            )
            for rank in range(ranks)
        ],
        start,
    )


def test_a_matrix_too_large_to_keep_is_looked_at_and_counted() -> None:
    """Pairs grow with the square of the ranks; what is kept must not."""
    detector = CollectiveDelay()
    found = run(detector, new_view(), [everybody_sends(140)])
    assert told(found) == ["slow_sender"]
    assert found[0][0].text.endswith("not compared: 19460 ends of pairs for which there was no room")
    assert len(bytes(detector.snapshot())) < 1_000 and detector.state.left_out == {"pairs": 140 * 139}


def test_of_several_matrices_the_largest_is_left_out() -> None:
    detector = CollectiveDelay()
    (small,) = sending(lambda _sender, _receiver: False)
    large = everybody_sends(140)
    merged = [
        msgspec.structs.replace(one, operations=[*one.operations, *more.operations])
        for one, more in zip(large.summaries, small.summaries, strict=False)
    ]
    run(detector, new_view(), [closed([*merged, *large.summaries[len(merged) :]], 0)])
    assert list(detector.state.pairs) == ["pp|0"]


def test_a_history_too_short_to_compare_with_is_refused() -> None:
    with pytest.raises(ValueError, match="history must be 40 operations or more"):
        CollectiveDelayConfig(history=30)


def event(sequence: int, **changes: object) -> Collective:
    values: dict[str, object] = {"duration": 5, "state": "completed", "operation": "all_reduce", "group": "world"}
    return Collective(time=at(sequence), sequence=sequence, **(values | changes))  # type: ignore[arg-type]


def test_a_window_holds_the_last_operations_of_each_kind() -> None:
    timed = Timed()
    for sequence in range(100):
        timed.take(event(sequence, input_sizes=[[8, 4], []]))
    timed.take(event(101, duration=0))
    timed.take(event(102, state="started"))
    timed.take(event(5, operation="send 1->2", peer=2, size=9))
    for number in range(MOST_KINDS):
        timed.take(event(1, group=f"group {number}"))
    first, *rest = timed.columns()
    assert len(rest) == MOST_KINDS - 1 and timed.left_out == 2 + 100 - MOST_OPERATIONS
    (world, send) = [one for one in [first, *rest] if one.group == "world"]
    assert (world.operation, world.size, world.peer, world.sequences) == (
        "all_reduce",
        32,
        None,
        list(range(100 - MOST_OPERATIONS, 100)),
    )
    assert (send.operation, send.size, send.peer, send.durations) == ("send", 9, 2, [5])
