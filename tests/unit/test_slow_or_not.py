"""Whom the contrast of steps singles out once waiting, places, past and other ranks are taken into account."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import pytest
from detection_support import closed, identity, named, new_view, run, series, summary
from timed_steps import Values, windows

from schemas.results import Anomaly
from streams.attempt_window import AttemptWindow
from streams.detectors.step_outlier import StepOutlier
from streams.series_table import series_table
from streams.state import written
from streams.steps import StepColumns, StepTable

PIPELINE = {"pp": 2, "dp": 8, "tp": 1, "cp": 1}
TENSOR = {"pp": 1, "dp": 8, "tp": 4, "cp": 1}
DATA = {"pp": 1, "dp": 16, "tp": 1, "cp": 1}


def last(made: list[AttemptWindow]) -> list[Anomaly]:
    return run(StepOutlier(), new_view(), made)[-1]


def slow(*ranks: int, since: int = 0, factor: float = 1.8) -> Values:
    return lambda rank, step: 400.0 * (factor if rank in ranks and step >= since else 1)


def waiting(*ranks: int, longer: float, since: int = 0) -> Values:
    return lambda rank, step: 200.0 + (longer if rank in ranks and step >= since else 0.0)


@pytest.mark.parametrize(
    ("name", "timers", "fields", "grounds", "suspects"),
    [
        (
            "its peers wait for it",
            {"compute_ms": slow(5), "wait_ms": waiting(5, longer=-180)},
            {},
            "slow_against_peers",
            [5],
        ),
        (
            "it waits as they do",
            {"compute_ms": slow(5), "wait_ms": waiting(5, longer=0)},
            {},
            "slow_against_peers",
            [5],
        ),
        ("it waits longer", {"compute_ms": slow(5), "wait_ms": waiting(5, longer=150)}, {}, "slow_but_waits", []),
        (
            "one of two waits longer",
            {"compute_ms": slow(5, 9), "wait_ms": waiting(5, longer=150)},
            {},
            "slow_against_peers",
            [9],
        ),
        ("always rank 0", {"compute_ms": slow(0)}, {}, "slow_first_rank", [0]),
        ("always the last rank", {"compute_ms": slow(15)}, {}, "slow_first_rank", [15]),
        ("always both ends", {"compute_ms": slow(0, 15)}, {}, "slow_first_rank", [0, 15]),
        ("always the first of each node", {"compute_ms": slow(0, 8)}, {"per_node": 8}, "slow_first_rank", [0, 8]),
        (
            "the first of each node has become slow",
            {"compute_ms": slow(0, 8, since=50)},
            {"per_node": 8},
            "slow_and_changed",
            [0, 8],
        ),
        (
            "always who loads for its tensor-parallel group",
            {"data_load_ms": slow(0, 8, 16, 24)},
            {"ranks": 32, "layout": {"pp": 1, "dp": 4, "tp": 8, "cp": 1}},
            "slow_first_rank",
            [0, 8, 16, 24],
        ),
        (
            "always who loads for its tensor-parallel group, on the first and the last stage",
            {"data_load_ms": slow(0, 8, 48, 56)},
            {"ranks": 64, "layout": {"pp": 4, "dp": 2, "tp": 8, "cp": 1}},
            "slow_first_rank",
            [0, 8, 48, 56],
        ),
        ("two of many nodes", {"compute_ms": slow(4, 12)}, {}, "slow_against_peers", [4, 12]),
        ("rank 0 has become slow", {"compute_ms": slow(0, since=50)}, {}, "slow_and_changed", [0]),
        ("a node", {"compute_ms": slow(4, 5, 6, 7, since=50)}, {"per_node": 4}, "slow_and_changed", [4, 5, 6, 7]),
        (
            "one of a node",
            {"compute_ms": slow(6, since=50)},
            {"per_node": 4},
            "slow_and_changed",
            [6],
        ),
        (
            "half of all, which is a node",
            {"compute_ms": slow(*range(8), since=50)},
            {"per_node": 8, "layout": {"pp": 1, "dp": 16, "tp": 1, "cp": 1}},
            "slow_place",
            list(range(8)),
        ),
        (
            "half of all, which is a node, and one elsewhere that is slow as well",
            {"compute_ms": lambda rank, step: 400.0 * (1 + 0.6 * (rank > 7 and step >= 50) + 2 * (rank == 3))},
            {"per_node": 8, "layout": {"pp": 1, "dp": 16, "tp": 1, "cp": 1}},
            None,
            [],
        ),
        ("a stage that was always slow", {"compute_ms": slow(*range(8, 16))}, {"layout": PIPELINE}, None, []),
        (
            "a stage that has become slow",
            {"compute_ms": slow(*range(8, 16), since=50)},
            {"layout": PIPELINE},
            "slow_stage",
            list(range(8, 16)),
        ),
        ("both stages of a replica", {"compute_ms": slow(3, 11)}, {"layout": PIPELINE}, "slow_replica", [3, 11]),
        (
            "one stage of a replica, the other not by as much",
            {"compute_ms": lambda rank, step: 400.0 * {3: 1.6, 11: 1.4}.get(rank, 1.0)},
            {"layout": PIPELINE},
            "slow_replica",
            [3, 11],
        ),
        (
            "one stage of a replica, the other unseen",
            {"compute_ms": lambda rank, step: None if rank == 11 else 400.0 * (1.8 if rank == 3 else 1)},
            {"layout": PIPELINE},
            "slow_unseen",
            [3],
        ),
        (
            "one stage of a replica, the other without peers",
            {"compute_ms": lambda rank, step: None if rank in (8, 9, 10, *range(12, 16)) else 400 * (1 + (rank == 3))},
            {"layout": PIPELINE},
            "slow_unseen",
            [3],
        ),
        (
            "one stage of a replica, the other too noisy to tell",
            {"compute_ms": lambda rank, step: 400 * (1.3 if rank == 3 else 0.7 + step % 3 * 0.3 if rank == 11 else 1)},
            {"layout": PIPELINE},
            "slow_unseen",
            [3],
        ),
        (
            "one stage of a replica, which has changed, the other unseen",
            {"compute_ms": lambda rank, step: None if rank == 11 else 400 * (1 + 0.8 * (rank == 3 and step >= 50))},
            {"layout": PIPELINE},
            "slow_unseen",
            [3],
        ),
        (
            "most of a stage's ranks that have a past",
            {"compute_ms": lambda rank, step: None if rank == 8 else 400.0 * (1.6 if rank in (9, 10, 11) else 1)},
            {"layout": PIPELINE, "per_node": 4},
            "many_slow",
            [],
        ),
        (
            "one node of two, of which not all stand out in each window",
            {"compute_ms": lambda rank, step: 400.0 * (1 + 0.6 * (rank > 1 and step >= 50))},
            {"ranks": 4, "layout": {"pp": 1, "dp": 4, "tp": 1, "cp": 1}},
            "slow_place",
            [2, 3],
        ),
        (
            "one of a stage, the other stage lighter",
            {"compute_ms": lambda rank, step: (400.0 if rank < 12 else 150.0) * (1 + 0.6 * (rank == 2))},
            {"layout": {"pp": 4, "dp": 4, "tp": 1, "cp": 1}},
            "slow_against_peers",
            [2],
        ),
        (
            "forward of the first stage",
            {"forward_ms": slow(3, since=50)},
            {"layout": PIPELINE},
            "slow_and_changed",
            [3],
        ),
        (
            "forward of a later stage",
            {"forward_ms": slow(11, since=50)},
            {"layout": PIPELINE},
            "slow_within_group",
            [11],
        ),
        (
            "forward of a later stage that times what it receives",
            {"forward_ms": slow(11, since=50), "p2p_recv_ms": lambda rank, step: 30.0 if rank > 7 else None},
            {"layout": PIPELINE},
            "slow_and_changed",
            [11],
        ),
        (
            "forward of a later stage, and only the first times what it receives",
            {"forward_ms": slow(11, since=50), "p2p_recv_ms": lambda rank, step: 30.0 if rank < 8 else None},
            {"layout": PIPELINE},
            "slow_within_group",
            [11],
        ),
        (
            "forward of a later stage that times what comes back",
            {"forward_ms": slow(11, since=50), "forward-send-backward-recv_ms": lambda rank, step: 30.0},
            {"layout": PIPELINE},
            "slow_within_group",
            [11],
        ),
        (
            "backward of the last stage",
            {"backward_compute_ms": slow(11, since=50)},
            {"layout": PIPELINE},
            "slow_and_changed",
            [11],
        ),
        (
            "backward of the first stage",
            {"backward_compute_ms": slow(3, since=50)},
            {"layout": PIPELINE},
            "slow_within_group",
            [3],
        ),
        (
            "one of whose peers always does what nobody times",
            {"compute_ms": slow(2, since=50), "allreduce_ms": lambda rank, step: 100.0 if rank == 3 else 500.0},
            {},
            "slow_and_changed",
            [2],
        ),
        (
            "one of whose peers began to do a little that nobody times",
            {"compute_ms": slow(2, since=50), "allreduce_ms": lambda r, step: 500.0 - 100 * (r == 3 and step >= 50)},
            {},
            "slow_and_changed",
            [2],
        ),
        ("one stage of a replica", {"compute_ms": slow(3)}, {"layout": PIPELINE}, "slow_against_peers", [3]),
        (
            "a tensor-parallel group",
            {"compute_ms": slow(8, 9, 10, 11, since=50)},
            {"ranks": 32, "layout": TENSOR},
            "slow_within_group",
            [8, 9, 10, 11],
        ),
        (
            "a tensor-parallel group, one of it by less",
            {"compute_ms": lambda rank, step: 400.0 * {8: 1.4, 9: 1.4, 10: 1.4, 11: 1.08}.get(rank, 1.0)},
            {"ranks": 32, "layout": {"pp": 1, "dp": 8, "tp": 4, "cp": 1}},
            "slow_within_group",
            [8, 9, 10],
        ),
        (
            "one of a tensor-parallel group",
            {"compute_ms": slow(9, since=50)},
            {"ranks": 32, "layout": TENSOR},
            "slow_within_group",
            [9],
        ),
        (
            "another unit on some ranks",
            {
                "compute_ms": lambda rank, step: None if rank % 3 == 0 else 400.0 * (1.8 if rank == 5 else 1),
                "compute_s": lambda rank, step: 0.4 if rank % 3 == 0 else None,
            },
            {},
            "slow_against_peers",
            [5],
        ),
        (
            "a wrong unit on one rank",
            {"compute_ms": lambda rank, step: 400_000.0 if rank == 5 else 400.0},
            {},
            None,
            [],
        ),
        ("below nothing", {"compute_ms": lambda rank, step: -400.0 if rank == 5 else -800.0}, {}, None, []),
        ("on one rank only", {"compute_ms": lambda rank, step: 400.0 if rank == 5 else None}, {}, None, []),
        (
            "what a router sends",
            {"moe_expert_forward_ms": slow(5)},
            {},
            None,
            [],
        ),
        ("a layer that may hold experts", {"mlp_ms": slow(5, since=50)}, {}, "slow_experts", [5]),
        (
            "all of a step, in a job that times a router",
            {"compute_ms": slow(5, since=50), "moe_dispatch_ms": slow()},
            {},
            "slow_experts",
            [5],
        ),
        (
            "all of a step, in a job with a size of expert groups",
            {"compute_ms": slow(5, since=50)},
            {"layout": {**DATA, "ep": 8}},
            "slow_experts",
            [5],
        ),
        (
            "a layer without experts, in a job that times a router",
            {"attention_ms": slow(5, since=50), "moe_dispatch_ms": slow()},
            {},
            "slow_and_changed",
            [5],
        ),
        (
            "attention together with what holds experts",
            {"attention_mlp_ms": slow(5, since=50), "moe_dispatch_ms": slow()},
            {},
            "slow_experts",
            [5],
        ),
        (
            "loading, in a job that times a router",
            {"data_load_ms": slow(5, since=50), "moe_dispatch_ms": slow()},
            {},
            "slow_and_changed",
            [5],
        ),
        (
            "a node that always was",
            {"compute_ms": slow(4, 5, 6, 7)},
            {"per_node": 4, "layout": DATA},
            "slow_node",
            [4, 5, 6, 7],
        ),
        (
            "two nodes of eight that always were",
            {"compute_ms": slow(4, 5, 12, 13)},
            {"layout": DATA},
            "slow_node",
            [4, 5, 12, 13],
        ),
        (
            "all that is seen of a node that always was",
            {"compute_ms": lambda rank, step: None if rank == 4 else 400.0 * (1 + 0.8 * (rank == 5))},
            {"layout": DATA},
            "slow_node",
            [5],
        ),
        ("one of a node that always was", {"compute_ms": slow(5)}, {"layout": DATA}, "slow_against_peers", [5]),
        ("its forward, and nobody times waiting", {"forward_ms": slow(5, since=50)}, {}, "slow_unwitnessed", [5]),
        (
            "its forward, and backward tells that others wait",
            {"forward_ms": slow(5, since=50), "backward_ms": lambda r, step: 200.0 + 300.0 * (r != 5 and step >= 50)},
            {},
            "slow_and_changed",
            [5],
        ),
        (
            "its forward, and the layout tells that nobody meets there",
            {"forward_ms": slow(5, since=50)},
            {"layout": DATA},
            "slow_and_changed",
            [5],
        ),
        (
            "what is seen of a stage that has become slow",
            {"compute_ms": lambda r, step: None if 8 <= r < 12 else 400.0 * (1 + 0.6 * (r >= 12 and step >= 50))},
            {"layout": PIPELINE, "per_node": 4},
            "slow_stage",
            [12, 13, 14, 15],
        ),
        (
            "it comes later",
            {"compute_ms": lambda rank, step: (400.0 * (3 if step < 64 else 1)) if rank != 5 or step >= 60 else None},
            {},
            None,
            [],
        ),
    ],
)
def test_who_is_singled_out(
    name: str, timers: Mapping[str, Values], fields: dict[str, Any], grounds: str | None, suspects: list[int]
) -> None:
    found = last(windows(timers, **fields))
    assert [one.grounds for one in found] == ([grounds] if grounds else []), name
    assert named(found) == ([suspects] if grounds else [])


@pytest.mark.parametrize(
    ("name", "ranks", "slow_ranks", "coordinates", "timer", "grounds"),
    [
        ("stages of one replica", 32, range(16, 24), ("dp", 8, "pp", 4), "compute_ms", "slow_replica"),
        ("stages of one replica, of two", 16, range(8, 16), ("dp", 8, "pp", 4), "compute_ms", "slow_replica"),
        ("a context-parallel group", 32, range(16, 24), ("dp", 8, "cp", 1), "compute_ms", "slow_within_group"),
        ("a context-parallel group, of two", 16, range(8, 16), ("dp", 8, "cp", 1), "compute_ms", "slow_within_group"),
        ("its data", 32, range(16, 24), ("dp", 8, "cp", 1), "data_load_ms", "slow_and_changed"),
        (
            "some stages of a replica, others fast",
            64,
            range(16, 24),
            ("dp", 16, "pp", 4),
            "compute_ms",
            "slow_within_group",
        ),
        ("stages without mates, others fast", 32, range(8, 16), ("dp", 16, "pp", 1), "compute_ms", "slow_place"),
        ("several replicas", 32, range(16, 24), ("dp", 4, "cp", 1), "compute_ms", "slow_and_changed"),
        ("several replicas, of two nodes", 16, range(8, 16), ("dp", 4, "cp", 1), "compute_ms", "slow_place"),
    ],
)
def test_a_node_is_slow_as_such_only_where_it_holds_several_replicas(
    name: str, ranks: int, slow_ranks: range, coordinates: tuple[str, int, str, int], timer: str, grounds: str
) -> None:
    replica, size, axis, each = coordinates

    def at(rank: int) -> dict[str, Any]:
        return {"pp": 0, replica: rank // size, axis: rank % size // each}

    made = []
    for window in windows({timer: slow(*slow_ranks, since=50)}, ranks=ranks, per_node=8):
        who = [
            msgspec.structs.replace(one.identity, coordinates=at(one.identity.rank or 0)) for one in window.summaries
        ]
        told = [msgspec.structs.replace(one, identity=own) for one, own in zip(window.summaries, who, strict=True)]
        made.append(msgspec.structs.replace(window, summaries=told))
    (found,) = last(made)
    assert found.grounds == grounds, name
    if grounds == "slow_replica" and ranks == 32:
        assert "all of node02, which is data-parallel replica 2, is slow" in found.text


@pytest.mark.parametrize(
    ("timer", "role_name", "grounds"),
    [
        ("forward_compute_ms", "data_trainer", "slow_within_group"),
        ("generate_tokens_ms", "trainer", "slow_within_group"),
        ("data_load_ms", "trainer", "slow_and_changed"),
    ],
)
def test_only_what_loads_data_is_done_without_the_others_of_a_group(timer: str, role_name: str, grounds: str) -> None:
    made = []
    for window in windows({timer: slow(9, since=50)}, ranks=32, layout=TENSOR):
        told = [msgspec.structs.replace(one, identity=role(one, role_name)) for one in window.summaries]
        made.append(msgspec.structs.replace(window, summaries=told))
    (found,) = last(made)
    assert found.grounds == grounds


def test_a_slow_rank_that_moves_every_epoch_is_named_no_more() -> None:
    epochs = lambda rank, step: 400.0 * (1.8 if rank == 3 + 2 * (step // 40) else 1)  # noqa: E731
    found = run(StepOutlier(), new_view(), windows({"data_load_ms": epochs}, count=12))
    first, final = found[3], found[-1]
    assert named(first) == [[3]]
    assert [(one.grounds, one.area) for one in final] == [("rotating", "workload")]
    assert named(final) == [[]]


@pytest.mark.parametrize(("until", "grounds"), [(50, "slow_and_changed"), (180, "rotating")])
def test_a_slow_rank_that_has_moved_is_at_fault_once_it_stays_far_longer_than_before(until: int, grounds: str) -> None:
    def moved(rank: int, step: int) -> float:
        return 400.0 * (1.8 if (rank == 3 and 20 <= step < until) or (rank == 9 and step >= until + 10) else 1)

    found = run(StepOutlier(), new_view(), windows({"compute_ms": moved}, count=60))
    assert {one.grounds for one in found[until // 10 + 5]} == {"rotating"}
    assert {one.grounds for one in found[-1]} == {grounds}


def test_who_became_slow_is_no_less_at_fault_while_it_recovers() -> None:
    passing = lambda rank, step: 400.0 * (1.8 if rank == 3 and 40 <= step < 124 else 1)  # noqa: E731
    found = run(StepOutlier(), new_view(), windows({"compute_ms": passing}, count=16))
    told = {(one.grounds, one.iteration, tuple(named([one])[0])) for each in found for one in each}
    assert told == {("slow_and_changed", 41, (3,))}
    assert found[12]
    assert not found[13]


@pytest.mark.parametrize(
    ("turns", "final"),
    [
        ([(3, 40, 160), (9, 240, 400)], ["slow_and_changed"]),
        ([(3, 40, 160), (9, 175, 400)], ["rotating"]),
        ([(3, 40, 60), (9, 120, 160)], ["rotating"]),
        ([(3, 40, 120), (9, 180, 260), (3, 320, 400)], ["rotating"]),
        ([(3, 40, 120), (9, 180, 260), (5, 320, 400)], ["rotating"]),
    ],
    ids=["long after", "at once", "after a moment", "back", "on to a third"],
)
def test_one_that_becomes_slow_long_after_another_has_not_taken_a_turn(
    turns: list[tuple[int, int, int]], final: list[str]
) -> None:
    def taken(rank: int, step: int) -> float:
        return 400.0 * (1.8 if any(rank == who and first <= step < end for who, first, end in turns) else 1)

    found = run(StepOutlier(), new_view(), windows({"compute_ms": taken}, count=turns[-1][2] // 10))
    assert [one.grounds for one in found[-1]] == final


def test_who_has_changed_with_another_may_be_of_its_stage() -> None:
    grown, before = {5: 560.0, 9: 410.0}, {9: 320.0}
    values = lambda rank, step: (grown if step >= 50 else before).get(rank, 400.0)  # noqa: E731
    found = run(StepOutlier(), new_view(), windows({"compute_ms": values}))
    assert {one.grounds for each in found for one in each} == {"slow_perhaps_with_others"}


def test_who_takes_turns_is_not_named_though_one_comes_out_on_top() -> None:
    dice = np.random.default_rng(5)
    heavy = dice.random((200, 16)) < 0.4
    heavy[:, 5] = dice.random(200) < 0.6
    assert last(windows({"compute_ms": lambda rank, step: 400.0 * (1.6 if heavy[step, rank] else 1)})) == []


def test_what_rank_0_does_more_by_design_wakes_nobody() -> None:
    assert [one.severity for one in last(windows({"compute_ms": slow(0)}))] == ["info"]


def test_slowness_that_lasts_longer_than_is_remembered_stays_what_it_was() -> None:
    found = run(StepOutlier(), new_view(), windows({"compute_ms": slow(5, since=50)}, count=40))
    assert {(one.grounds, one.iteration) for each in found[8:] for one in each} == {("slow_and_changed", 51)}


def test_steps_that_are_counted_anew_each_epoch_are_judged_all_the_same() -> None:
    found = last(windows({"compute_ms": slow(5, since=50)}, count=12, first=lambda step: step % 30))
    assert (named(found), [one.grounds for one in found]) == ([[5]], ["slow_and_changed"])


def test_roles_that_are_at_different_steps_do_not_wait_for_each_other() -> None:
    actors = windows({"compute_ms": slow(5)}, 8)
    rollouts = windows({"compute_ms": slow(), "total_ms": slow()}, 8, first=lambda step: step // 100)
    both = []
    for number, (one, other) in enumerate(zip(actors, rollouts, strict=True)):
        first = [summary(s.identity.rank, number * 10, who=role(s, "actor"), series=s.series) for s in one.summaries]
        second = [
            summary((s.identity.rank or 0) + 8, number * 10, who=role(s, "rollout", 8), series=s.series)
            for s in other.summaries
        ]
        both.append(closed([*first, *second], number * 10))
    view, detector = new_view(), StepOutlier()
    found = run(detector, view, both)
    assert named(found[-1]) == [[5]]


def role(one: Any, name: str, shift: int = 0) -> Any:
    return identity((one.identity.rank or 0) + shift, role=name)


def test_ten_thousand_ranks_take_a_few_megabytes() -> None:
    table = StepTable(StepColumns())
    for number in range(7):
        one = series("compute_ms", number * 10 + 1, [400.0 + number] * 10, number * 10)
        told = series_table([summary(rank, series=[one]) for rank in range(10_240)])["compute_ms"].flat
        table.take(told, np.full(10_240, 1e6), 0)
        table.settle(table.reported_by_all(3), 200)
    raw = bytes(written(table.written()))
    assert len(raw) < 2_500_000
    assert table.judged == 51
    assert np.allclose(table.values(50, 51) / 1e6, 406, rtol=0.001)


def test_who_may_wait_for_one_whose_time_is_not_accounted_for_is_not_named() -> None:
    def open_for(rank: int, step: int) -> float:
        return 900.0 if step >= 50 else 500.0

    timers = {
        "forward_ms": slow(2, since=50),
        "allreduce_ms": lambda rank, step: 100.0 + (320.0 if step >= 50 and rank not in (2, 3) else 0.0),
        "total_ms": open_for,
    }
    (found,) = last(windows(timers))
    assert (found.grounds, [one.rank for one in found.suspects]) == ("slow_or_waits", [2])
    assert "rank 3" in found.text
    (found,) = last(windows(timers | {"allreduce_ms": lambda rank, step: 100.0 + 320.0 * (step >= 50 and rank != 2)}))
    assert found.grounds == "slow_and_changed"


def test_timers_that_only_explain_are_few() -> None:
    detector = StepOutlier()
    names = [*(f"backward_{number}_ms" for number in range(12)), *(f"step_{number}_ms" for number in range(6))]
    run(detector, new_view(), windows({"compute_ms": slow(), **dict.fromkeys(names, slow())}, ranks=2, count=3))
    detector.snapshot()
    assert Counter(text.split("|")[0] for text in detector.state.tables) == {"own": 1, "mixed": 8, "total": 4}


def test_a_finding_tells_the_timer_that_it_rests_on() -> None:
    found = run(StepOutlier(), new_view(), windows({"compute_ms": slow(5, since=50)}, ranks=8, count=12))
    assert {one.metric for told in found for one in told} == {"compute"}


@pytest.mark.parametrize("stages", [False, True])
def test_other_roles_without_timers_are_of_no_unseen_stage(stages: bool) -> None:
    made = []
    for window in windows({"compute_ms": slow(5, since=50)}):
        told = []
        for one in window.summaries:
            actor = (one.identity.rank or 0) < 8
            who = msgspec.structs.replace(
                one.identity, role="actor" if actor else "rollout", coordinates={"pp": 0} if stages and actor else {}
            )
            told.append(msgspec.structs.replace(one, identity=who, series=one.series if actor else []))
        made.append(msgspec.structs.replace(window, summaries=told))
    (found,) = last(made)
    assert (found.grounds, named([found])) == ("slow_and_changed", [[5]])


@pytest.mark.parametrize(
    ("name", "ranks", "slow_ranks", "axes", "grounds"),
    [
        ("tensor-parallel ranks of one replica", 16, [3], ("tp",), "slow_within_group"),
        ("four of ten of a stage", 20, [2, 4, 6, 8], (), "many_slow"),
    ],
)
def test_coordinates_that_tell_no_replica(
    name: str, ranks: int, slow_ranks: list[int], axes: tuple[str, ...], grounds: str
) -> None:
    made = []
    for window in windows({"compute_ms": slow(*slow_ranks, since=50)}, ranks=ranks):
        told = []
        for one in window.summaries:
            rank = one.identity.rank or 0
            at = {"pp": 0, "tp": rank} if axes else {"pp": rank // 10}
            told.append(msgspec.structs.replace(one, identity=msgspec.structs.replace(one.identity, coordinates=at)))
        made.append(msgspec.structs.replace(window, summaries=told))
    assert [one.grounds for one in last(made)] == [grounds], name
