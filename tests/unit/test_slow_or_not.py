"""Whom the contrast of steps singles out once waiting, places, past and other ranks are taken into account."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np
import pytest
from detection_support import closed, identity, named, new_view, run, series, summary

from schemas.results import Anomaly
from streams.detectors.step_outlier import StepOutlier
from streams.series_table import series_table
from streams.state import written
from streams.steps import StepColumns, StepTable
from streams.view import AttemptWindow

STEPS = 10
Values = Callable[[int, int], float | None]
NOISE = np.random.default_rng(3).normal(1, 0.02, (600, 64))
PIPELINE = {"pp": 2, "dp": 8, "tp": 1, "cp": 1}
TENSOR = {"pp": 1, "dp": 8, "tp": 4, "cp": 1}


def windows(timers: Mapping[str, Values], ranks: int = 16, count: int = 10, **fields: Any) -> list[AttemptWindow]:
    """Ten steps of a second in each window; values in milliseconds by timer, rank and step from 0."""
    layout, per_node, first = (
        fields.pop("layout", {}),
        fields.pop("per_node", 2),
        fields.pop("first", lambda step: step),
    )
    columns: dict[str, Values] = {**timers, "total_ms": lambda rank, step: 1000.0}
    made = []
    for number in range(count):
        start, steps = number * 10, range(number * STEPS, (number + 1) * STEPS)
        summaries = []
        for rank in range(ranks):
            found = []
            for timer, values in sorted(columns.items()):
                row = [values(rank, step) for step in steps]
                if any(value is not None for value in row):
                    told = [
                        None if value is None else value * NOISE[step, rank % 64]
                        for value, step in zip(row, steps, strict=True)
                    ]
                    found.append(series(timer, first(steps[0]) + 1, told, start))
            told_layout = {"world": ranks, **layout} if layout else {}
            last = {"iteration": first(steps[0]) + STEPS, "iteration_time": found[-1].times[-1]}
            who = identity(rank, per_node)
            summaries.append(summary(rank, start, who=who, series=found, layout=told_layout, **last))
        made.append(closed(summaries, start))
    return made


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


def test_a_slow_rank_that_moves_every_epoch_is_named_no_more() -> None:
    epochs = lambda rank, step: 400.0 * (1.8 if rank == 3 + 2 * (step // 40) else 1)  # noqa: E731
    found = run(StepOutlier(), new_view(), windows({"data_load_ms": epochs}, count=12))
    first, final = found[3], found[-1]
    assert named(first) == [[3]]
    assert [(one.grounds, one.area) for one in final] == [("rotating", "workload")]
    assert named(final) == [[]]


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
