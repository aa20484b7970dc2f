"""Stacks during a stall: who stands outside communication while the peers wait inside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from detection_support import (
    ALL_REDUCE,
    BACKWARD,
    BARRIER,
    GETITEM,
    LOADER_WAIT,
    OWN,
    SAVE,
    closed,
    gauge,
    healthy,
    identity,
    named,
    new_view,
    printed,
    run,
    stack,
    stalled,
    stepping,
    still,
    summary,
)

from schemas.events import Frame
from schemas.results import Anomaly, StackSpan
from streams.attempt_window import AttemptWindow
from streams.detectors.stack_minority import StackMinority

RANKS = 8
ELSEWHERE = [Frame("<module>", "/workspace/train2.py", 70), Frame("evaluate", "/workspace/train2.py", 44)]


def finding(stacks: Mapping[int, Sequence[StackSpan]], ranks: int = RANKS, **layout: int) -> list[Anomaly]:
    extra: dict[int, dict[str, Any]] = {rank: {"stacks": list(spans)} for rank, spans in stacks.items()}
    return run(StackMinority(), new_view(), stalled(ranks, extra, **layout))[-1]


def all_in(*apart: int, frames: list[Frame] = ALL_REDUCE) -> dict[int, list[StackSpan]]:
    return {rank: [stack(frames, 33, 38)] for rank in range(RANKS) if rank not in apart}


@pytest.mark.parametrize(
    ("frames", "area"), [(OWN, "unknown"), (LOADER_WAIT, "data"), (SAVE, "checkpoint"), (ELSEWHERE, "unknown")]
)
@pytest.mark.parametrize("peers", [ALL_REDUCE, BACKWARD, BARRIER])
def test_the_one_outside_is_named_and_its_peers_are_victims(frames: list[Frame], area: str, peers: list[Frame]) -> None:
    (found,) = finding(all_in(5, frames=peers) | {5: [stack(frames, 33, 38)]})
    assert named([found]) == [[5]]
    assert (found.grounds, found.symptom, found.area, found.layer) == ("outside_communication", "hang", area, "stack")
    assert found.victims == [rank for rank in range(RANKS) if rank != 5]
    assert found.unobserved == []
    assert found.suspects[0].node == "node02"


def test_what_the_suspects_loader_does_is_said() -> None:
    loader = stack(GETITEM, 33, 38, process_type="dataloader", pid=7)
    (found,) = finding(all_in(5) | {5: [stack(LOADER_WAIT, 33, 38), loader]})
    assert "its loader in __getitem__ (train.py:71)" in found.suspects[0].why


def test_several_at_one_place_outside_are_named_together() -> None:
    (found,) = finding(all_in(2, 5) | {2: [stack(OWN, 33, 38)], 5: [stack(OWN, 33, 38)]})
    assert (named([found]), found.grounds) == ([[2, 5]], "outside_communication")


def test_several_at_different_places_outside_name_nobody() -> None:
    (found,) = finding(all_in(2, 5) | {2: [stack(OWN, 33, 38)], 5: [stack(ELSEWHERE, 33, 38)]})
    assert (named([found]), found.grounds) == ([[]], "several_outside")


def test_one_sample_is_no_proof_that_a_rank_stands_still() -> None:
    (found,) = finding(all_in(5) | {5: [stack(OWN, 33)]})
    assert (named([found]), found.grounds, found.severity) == ([[]], "perhaps_outside", "info")


def test_one_sample_is_enough_of_a_process_that_does_nothing() -> None:
    idle = {"gauges": [gauge("cpu_percent", 0.0), gauge("ctx_switches", 3151.0)]}
    extra: dict[int, dict[str, Any]] = {rank: {"stacks": spans} for rank, spans in all_in(5).items()}
    extra[5] = {"stacks": [stack(OWN, 33)], **idle}
    (found,) = run(StackMinority(), new_view(), stalled(RANKS, extra))[-1]
    assert named([found]) == [[5]]


def test_one_that_is_busy_while_the_others_wait_is_no_critical_hang() -> None:
    busy = {"gauges": [gauge("cpu_percent", 60.0), gauge("ctx_switches", 5000.0, first=2000.0, last=5000.0)]}
    extra: dict[int, dict[str, Any]] = {rank: {"stacks": spans} for rank, spans in all_in(0).items()}
    extra[0] = {"stacks": [stack(OWN, 33, 38)], **busy}
    (found,) = run(StackMinority(), new_view(), stalled(RANKS, extra))[-1]
    assert (named([found]), found.severity) == ([[0]], "warning")


def test_ranks_that_move_do_not_stand_still_however_silent_their_logs() -> None:
    moving = {rank: [stack(ALL_REDUCE, 33), stack(OWN, 36), stack(ALL_REDUCE, 39)] for rank in range(RANKS)}
    assert finding(moving) == []


def test_all_in_communication_name_nobody() -> None:
    (found,) = finding(all_in())
    assert (named([found]), found.grounds) == ([[]], "all_in_communication")
    assert found.victims == list(range(RANKS))


def test_a_majority_outside_says_nothing() -> None:
    assert finding({rank: [stack(OWN if rank < 5 else ALL_REDUCE, 33)] for rank in range(RANKS)}) == []


def test_too_few_observed_ranks_say_nothing() -> None:
    assert finding({0: [stack(ALL_REDUCE, 33)], 1: [stack(ALL_REDUCE, 33)], 2: [stack(OWN, 33)]}) == []


def test_ranks_without_a_sample_are_unobserved() -> None:
    (found,) = finding(all_in(5, 6, 7) | {5: [stack(LOADER_WAIT, 33, 38)]}, world=9)
    assert (named([found]), found.unobserved) == ([[5]], [6, 7, 8])


def test_own_code_may_wait_in_its_own_way_for_a_rank_that_is_not_seen() -> None:
    (found,) = finding(all_in(5, 6) | {5: [stack(OWN, 33, 38)]})
    assert (named([found]), found.grounds, found.unobserved) == ([[]], "perhaps_outside", [6])


def test_own_code_that_the_others_came_through_may_wait_as_they_do() -> None:
    at_item = ALL_REDUCE[:1]
    (found,) = finding(all_in(5) | {5: [stack(at_item, 33, 38)]})
    assert (named([found]), found.grounds) == ([[]], "perhaps_outside")


def test_a_child_of_a_rank_that_looks_like_its_trainer_clears_nobody_and_blames_nobody() -> None:
    child = stack(OWN, 33, 38, pid=9000)
    waits = all_in(5)
    (found,) = finding(waits | {5: [stack(LOADER_WAIT, 33, 38)], 0: [*waits[0], child]})
    assert named([found]) == [[5]]
    (found,) = finding(all_in() | {0: [*waits[0], child]})
    assert (named([found]), found.grounds) == ([[]], "all_in_communication")


def test_the_process_that_announced_itself_is_the_trainer() -> None:
    spans = {rank: [stack(ALL_REDUCE, 33, 38, pid=rank + 100)] for rank in range(RANKS)}
    spans[5] = [stack(LOADER_WAIT, 33, 38, pid=105), stack(ALL_REDUCE, 33, 38, pid=9000)]
    extra = {rank: {"stacks": found, "announced": [(rank + 100, "trainer")]} for rank, found in spans.items()}
    (found,) = run(StackMinority(), new_view(), stalled(RANKS, extra))[-1]
    assert named([found]) == [[5]]
    # One that was announced since has taken its place, whatever its number.
    windows = stalled(RANKS, extra)
    windows[2] = still(RANKS, 20, {5: {"announced": [(9000, "trainer")]}})
    windows[3] = still(RANKS, 30, {rank: {"stacks": found} for rank, found in spans.items()})
    assert named(run(StackMinority(), new_view(), windows)[-1]) == [[]]


def test_most_stand_at_one_line_of_own_code_and_one_loads_data() -> None:
    item = [stack(OWN, *range(20, 60, 5))]
    extra = {rank: {"stacks": item if rank != 5 else [stack(LOADER_WAIT, *range(20, 60, 5))]} for rank in range(RANKS)}
    windows = [*stalled(RANKS), still(RANKS, 40), still(RANKS, 50, extra)]
    (found,) = run(StackMinority(), new_view(), windows)[-1]
    assert (named([found]), found.victims) == ([[5]], [0, 1, 2, 3, 4, 6, 7])


def test_a_rank_whose_sample_failed_is_unobserved_not_healthy() -> None:
    (found,) = finding(all_in(5) | {5: [stack([], 33, failure="permission denied")]})
    assert named([found]) == [[]]
    assert found.unobserved == [5]


def test_failed_samples_do_not_count_as_observed() -> None:
    failed = {rank: [stack([], 33, failure="timed out")] for rank in range(3, RANKS)}
    found = finding({0: [stack(ALL_REDUCE, 33)], 1: [stack(ALL_REDUCE, 33)], 2: [stack(OWN, 33)]} | failed)
    assert named(found) in ([], [[]])


def test_samples_from_before_the_stall_are_ignored() -> None:
    windows = stalled(RANKS, {rank: {"stacks": [stack(ALL_REDUCE, 33)]} for rank in range(RANKS) if rank != 5})
    windows[0] = closed(
        stepping(rank, 0, first=1, stacks=[stack(OWN, 9.5)] if rank == 5 else []) for rank in range(RANKS)
    )
    (found,) = run(StackMinority(), new_view(), windows)[-1]
    assert (named([found]), found.unobserved) == ([[]], [5])


def test_a_loader_or_another_thread_outside_is_no_trainer_outside() -> None:
    others = [stack(OWN, 33, process_type="dataloader", pid=9), stack(OWN, 33, thread="pin_memory")]
    (found,) = finding({rank: [stack(ALL_REDUCE, 33), *others] for rank in range(RANKS)})
    assert found.grounds == "all_in_communication"


def test_a_job_that_iterates_is_not_contrasted() -> None:
    windows = [
        healthy(RANKS, 0, 1, stacks=[stack(ALL_REDUCE, 5)]),
        closed(
            (stepping(r, 10, first=11, stacks=[stack(OWN if r == 5 else ALL_REDUCE, 15)]) for r in range(RANKS)), 10
        ),
    ]
    assert run(StackMinority(), new_view(), windows) == [[], []]


def test_each_window_of_the_stall_gives_one_finding_with_the_latest_samples() -> None:
    windows = stalled(
        RANKS, {rank: {"stacks": spans} for rank, spans in (all_in(5) | {5: [stack(OWN, 33, 38)]}).items()}
    )
    windows.append(still(RANKS, 40))
    windows.append(closed((summary(r, 50, stacks=[stack(ALL_REDUCE, 55)]) for r in range(RANKS)), 50))
    found = run(StackMinority(), new_view(), windows)
    assert [named(one) for one in found] == [[], [], [], [[5]], [[5]], [[]]]
    assert len({one.id for window in found for one in window}) == 3


def said(rank: int, second: float, text: str = "loaded 812 documents") -> dict[str, Any]:
    return {"signatures": [printed(text, second)]}


@pytest.mark.parametrize(
    ("lines", "suspects"),
    [
        ({5: said(5, 36)}, []),
        ({5: said(5, 32)}, [5]),
        ({5: said(5, 36, "shard 812: read timed out, attempt 3")}, [5]),
        ({5: said(5, 36, "[rank5] Received a dump signal due to a collective timeout from rank 2")}, [5]),
        ({rank: said(rank, 36) for rank in range(RANKS)}, [5]),
        ({rank: said(rank, 36) for rank in (0, 1, 5)}, []),
        ({0: said(0, 36)}, [5]),
    ],
    ids=["it prints", "it printed before", "it tries again", "a library prints", "all print", "few print", "another"],
)
def test_who_still_prints_what_its_peers_do_not_is_not_named(lines: Any, suspects: list[int]) -> None:
    stacks = all_in(5) | {5: [stack(OWN, 33, 38)]}
    extra = {rank: {"stacks": spans, **lines.get(rank, {})} for rank, spans in stacks.items()}
    (found,) = run(StackMinority(), new_view(), stalled(RANKS, extra))[-1]
    assert named([found]) == [suspects]


@pytest.mark.parametrize(
    "frame", [Frame("collect", "/usr/lib/python3.11/gc.py", 0), Frame("gc_collect_main", "python")]
)
def test_who_is_met_while_it_collects_garbage_is_no_minority(frame: Frame) -> None:
    (found,) = finding(all_in(5) | {5: [stack([*OWN, frame], 33, 38)]})
    assert (named([found]), found.grounds, found.unobserved) == ([[]], "all_in_communication", [])


def in_roles(roles: Mapping[str, Sequence[int]], stacks: Mapping[int, Sequence[StackSpan]]) -> list[Anomaly]:
    """A standstill of ranks that have roles."""
    of = {rank: identity(rank, role=role) for role, ranks in roles.items() for rank in ranks}

    def window(start: float, **fields: Any) -> AttemptWindow:
        found = stacks if start == 30 else {}
        return closed(
            (summary(rank, start, who=of[rank], stacks=list(found.get(rank, [])), **fields) for rank in sorted(of)),
            start,
        )

    first = closed((stepping(rank, 0, first=1, who=of[rank]) for rank in sorted(of)), 0)
    return run(StackMinority(), new_view(), [first, window(10), window(20), window(30)])[-1]


def test_a_role_that_idles_by_design_is_not_named_for_it() -> None:
    roles = {"actor": range(6), "controller": [6], "rollout": [7]}
    stacks = {rank: [stack(ALL_REDUCE, 33, 38)] for rank in range(6)}
    idle = {rank: [stack(ELSEWHERE, 33, 38)] for rank in (6, 7)}
    (found,) = in_roles(roles, stacks | idle)
    assert (named([found]), found.grounds, found.victims) == ([[]], "outside_by_design", list(range(6)))
    # One of those that wait by design is the one that does not.
    (found,) = in_roles(roles, stacks | idle | {3: [stack(OWN, 33, 38)]})
    assert (named([found]), found.grounds) == ([[3]], "outside_communication")


def test_of_a_role_that_mostly_waits_the_one_outside_is_named_whatever_others_do() -> None:
    roles = {"actor": range(4), "rollout": range(4, 9)}
    stacks = {rank: [stack(ALL_REDUCE, 33, 38)] for rank in (0, 1, 2, 4, 5, 6, 7)}
    (found,) = in_roles(roles, stacks | {3: [stack(ELSEWHERE, 33, 38)], 8: [stack(OWN, 33, 38)]})
    assert (named([found]), found.grounds) == ([[]], "several_outside")
    (found,) = in_roles(roles, stacks | {3: [stack(ALL_REDUCE, 33, 38)], 8: [stack(OWN, 33, 38)]})
    assert named([found]) == [[8]]


def test_a_rank_whose_role_is_not_known_is_held_against_the_only_role() -> None:
    stacks = all_in(5) | {5: [stack(OWN, 33, 38)]}
    (found,) = in_roles({"trainer": [rank for rank in range(RANKS) if rank != 5], "": [5]}, stacks)
    assert named([found]) == [[5]]


def test_a_whole_stage_outside_is_not_told_apart_from_what_it_does_by_design() -> None:
    stacks = all_in(2, 3) | {rank: [stack(OWN, 33, 38)] for rank in (2, 3)}
    (found,) = finding(stacks, world=8, pp=4, tp=1, dp=2)
    assert (named([found]), found.grounds) == ([[]], "outside_by_design")
    (found,) = finding(all_in(2) | {2: [stack(OWN, 33, 38)]}, world=8, pp=4, tp=1, dp=2)
    assert named([found]) == [[2]]
    # A stage of a single rank has nobody to be held against but the others.
    (found,) = finding(all_in(2) | {2: [stack(OWN, 33, 38)]}, world=8, pp=8, tp=1, dp=1)
    assert named([found]) == [[2]]


def test_where_all_others_wait_the_one_that_could_not_be_sampled_is_told_and_not_named() -> None:
    (found,) = finding(all_in(5) | {5: [stack([], 33, failure="permission denied")]})
    assert (named([found]), found.grounds, found.unobserved) == ([[]], "one_unsampled", [5])
    assert found.text == "rank 5 could not be sampled (permission denied); all 7 others wait in communication"


def test_why_samples_failed_is_told_by_rank_and_only_of_this_stall() -> None:
    failed = {rank: [stack([], 33, failure="timed out")] for rank in (5, 6)}
    windows = stalled(RANKS, {rank: {"stacks": spans} for rank, spans in (all_in(4, 5, 6) | failed).items()})
    windows[0] = closed(
        stepping(rank, 0, first=1, stacks=[stack([], 5, failure="too early")] if rank == 4 else [])
        for rank in range(RANKS)
    )
    (found,) = run(StackMinority(), new_view(), windows)[-1]
    assert (found.grounds, found.unobserved) == ("all_in_communication", [4, 5, 6])
    assert "ranks 5-6 could not be sampled (timed out); rank 4 could not be sampled" in found.text


def test_who_polls_is_not_named_where_another_is_not_seen() -> None:
    polls = [*OWN, Frame("Event.wait", "/usr/lib/python3.11/threading.py", 607)]
    (found,) = finding(all_in(5) | {5: [stack(polls, 33, 38)]})
    assert named([found]) == [[5]]
    (found,) = finding(all_in(3, 5) | {5: [stack(polls, 33, 38)]})
    assert (named([found]), found.grounds, found.unobserved) == ([[]], "perhaps_outside", [3])
    # What a loader waits for is its own.
    (found,) = finding(all_in(3, 5) | {5: [stack(LOADER_WAIT, 33, 38)]})
    assert named([found]) == [[5]]


def test_a_suspect_is_a_blocker() -> None:
    (found,) = finding(all_in(5) | {5: [stack(OWN, 33, 38)]})
    assert [one.kind for one in found.suspects] == ["blocker"]
