"""Simulated jobs in which something is slow: whatever is printed of it, nobody else is named."""

from __future__ import annotations

import msgspec
import pytest
from simulated_job import Shape
from simulated_slow_logs import judged
from simulated_slowness import KINDS, PLAIN, Kind, Scene, drawn, told

from schemas.results import Incident


def named(incidents: list[Incident]) -> set[int]:
    return {suspect.rank for one in incidents for suspect in one.suspects if suspect.rank is not None}


def allowed(scene: Scene, incidents: list[Incident]) -> set[int]:
    """Who may be named; of a slow rank that moves only the first that is seen, which nothing tells from a fault."""
    if scene.kind != "moves":
        return scene.guilty
    first = min(named(incidents[:1]), default=scene.rank)
    return set(scene.shape.members(scene.shape.group("tp", first)))


@pytest.mark.parametrize("kind", KINDS)
def test_nobody_but_the_slow_ones_is_named(kind: Kind) -> None:
    scene = drawn(100 * KINDS.index(kind), kind)
    incidents = told(scene)
    assert named(incidents) <= allowed(scene, incidents), scene


@pytest.mark.parametrize("seed", [1, 3, 16, 24])
def test_load_that_stays_with_a_rank_for_some_steps_and_moves_on_is_nobodys_fault(seed: int) -> None:
    assert named(told(drawn(seed, "routed"))) == set()


def test_load_that_moves_about_is_no_change_of_a_place() -> None:
    # Two tensor-parallel groups of one stage, which are a node, have more to do at the end.
    scene = drawn(40984)
    assert scene.kind == "routed"
    assert named(told(scene)) == set()


@pytest.mark.parametrize("kind", PLAIN)
@pytest.mark.parametrize("shape", [Shape(1, 8, 1), Shape(1, 4, 3), Shape(2, 4, 2)])
def test_what_is_slow_for_all_to_see_is_named(kind: Kind, shape: Shape) -> None:
    scene = Scene(shape=shape, kind=kind, rank=5, factor=1.9, begin=50, seed=1, steps=110)
    if kind == "slow node" and shape.stages == 3:
        pytest.skip("the node is a stage, which may have grown")
    final = told(scene)[-1]
    # Nobody waits within loading, as ranks of a tensor-parallel group do within compute.
    one_of_a_group = shape.tensor > 1 and kind in ("slow rank", "slow trend")
    assert (final.symptom, final.verdict) == ("slowdown", "ambiguous" if one_of_a_group else "supported"), final.reason
    assert named([final]) == (set() if one_of_a_group else {5} if kind == "slow loader" else scene.guilty)
    assert final.area == ("data" if kind == "slow loader" else "compute")
    if kind != "slow trend":
        assert abs((final.iteration or 0) - 51) <= 3


def test_a_slow_node_is_told_as_a_node() -> None:
    scene = Scene(shape=Shape(1, 16, 2), kind="slow node", rank=5, factor=1.9, begin=50, seed=1, steps=110)
    final = told(scene)[-1]
    assert (final.scope.kind, final.scope.name, final.scope.ranks) == ("node", "node01", "4-7")
    assert "node01" in final.next_step


def test_a_tensor_parallel_group_is_told_as_a_group() -> None:
    scene = Scene(shape=Shape(2, 4, 2), kind="slow rank", rank=5, factor=1.9, begin=50, seed=1, steps=110)
    final = told(scene)[-1]
    assert (final.scope.kind, final.scope.name) == ("group", "tensor-parallel group of ranks 4-5")
    assert (final.verdict, final.suspects) == ("ambiguous", [])


def test_a_stage_that_has_become_slow_is_told_and_nobody_is_named() -> None:
    scene = Scene(shape=Shape(1, 4, 3), kind="stage grows", rank=5, factor=1.6, begin=50, seed=1, steps=110)
    final = told(scene)[-1]
    assert (final.verdict, final.suspects) == ("ambiguous", [])
    assert (final.scope.kind, final.scope.ranks) == ("node", "8-11")


EIGHT = Scene(shape=Shape(1, 8, 1), kind="slow rank", rank=5, factor=1.6, begin=60, seed=1, steps=260)
HEALTHY: tuple[Kind, ...] = ("nothing", "pauses", "roles", "turns", "lengths", "routed", "first rank", "units")


def scene_of(kind: Kind, **changes: object) -> Scene:
    return msgspec.structs.replace(EIGHT, kind=kind, **changes)


@pytest.mark.parametrize("kind", HEALTHY)
def test_nothing_is_said_of_a_healthy_job_by_any_detector(kind: Kind) -> None:
    assert judged(scene_of(kind)) == []


@pytest.mark.parametrize(
    ("scene", "ranks", "iteration"),
    [
        (scene_of("slow rank"), {5}, 61),
        (scene_of("slow loader"), {5}, 61),
        (scene_of("slow in its role", rank=1), {1}, 61),
        (scene_of("two nodes", shape=Shape(1, 4, 1), per_node=2, rank=2), {2, 3}, 61),
    ],
    ids=lambda told: told.kind if isinstance(told, Scene) else "",
)
def test_one_fault_is_one_incident_that_names_the_same_ranks_throughout(
    scene: Scene, ranks: set[int], iteration: int
) -> None:
    revisions = judged(scene)
    assert len({one.id for one in revisions}) == 1
    assert [named([one]) for one in revisions] == [ranks] * len(revisions)
    assert abs((revisions[-1].iteration or 0) - iteration) <= 3


def test_a_rank_that_becomes_slow_in_a_job_that_already_is_slower_is_named_with_its_own_onset() -> None:
    first, *_, last = judged(scene_of("slow rank", begin=400, slowed=100, steps=520))
    assert (first.id, named([first]), abs((first.iteration or 0) - 101) <= 3) == (last.id, set(), True)
    assert (named([last]), last.verdict, abs((last.iteration or 0) - 401) <= 3) == ({5}, "supported", True)


@pytest.mark.parametrize("leaks", [2, 5])
def test_memory_that_grows_and_a_slow_rank_are_two_incidents(leaks: int) -> None:
    revisions = judged(scene_of("slow rank", begin=120, steps=200, leaks=leaks, step_s=1.6))
    told = {one.symptom: named([one]) for one in revisions}
    assert (told, len({one.id for one in revisions})) == ({"slowdown": {5}, "memory": {leaks}}, 2)


def test_a_loader_that_is_a_process_of_its_own_is_its_ranks() -> None:
    final = told(scene_of("loader process", steps=140))[-1]
    assert (named([final]), final.area) == ({5}, "data")


def test_half_a_replica_whose_other_half_is_unseen_is_not_named_though_it_has_changed() -> None:
    shape = Shape(1, 8, 2)
    scene = scene_of("replica grows", shape=shape, begin=50, steps=140, lost=frozenset({13}))
    assert {one.verdict for one in told(scene)} == {"ambiguous"}
