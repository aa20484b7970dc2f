"""Simulated jobs in which something is slow: whatever is printed of it, nobody else is named."""

from __future__ import annotations

import pytest
from simulated_job import Shape
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


@pytest.mark.parametrize("kind", PLAIN)
@pytest.mark.parametrize("shape", [Shape(1, 8, 1), Shape(1, 4, 3), Shape(2, 4, 2)])
def test_what_is_slow_for_all_to_see_is_named(kind: Kind, shape: Shape) -> None:
    scene = Scene(shape=shape, kind=kind, rank=5, factor=1.9, begin=50, seed=1, steps=110)
    if kind == "slow node" and shape.stages == 3:
        pytest.skip("the node is a stage, which may have grown")
    final = told(scene)[-1]
    assert (final.symptom, final.verdict) == ("slowdown", "supported"), final.reason
    # Nobody waits within loading, as ranks of a tensor-parallel group do within compute.
    assert named([final]) == ({5} if kind == "slow loader" else scene.guilty)
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


def test_a_stage_that_has_become_slow_is_told_and_nobody_is_named() -> None:
    scene = Scene(shape=Shape(1, 4, 3), kind="stage grows", rank=5, factor=1.6, begin=50, seed=1, steps=110)
    final = told(scene)[-1]
    assert (final.verdict, final.suspects) == ("ambiguous", [])
    assert (final.scope.kind, final.scope.ranks) == ("node", "8-11")
