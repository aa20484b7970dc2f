"""What chance explains: held against counting every case, and against many draws of jobs that are hit at random."""

from __future__ import annotations

import random
from collections.abc import Mapping, Set
from itertools import combinations, product
from math import comb, prod
from typing import NamedTuple

import pytest
from fleet_support import told

from streams.fleet.chance import hit_by_chance, points_by_chance
from streams.fleet.failure import Failure
from streams.fleet.failures import failures
from streams.fleet.seen import Seen
from streams.fleet.together import Told

DRAWS = 60


def counted(jobs: int, hit: int, shares: list[float], least: int) -> float:
    """The chance by looking at each way in which jobs may be hit, and each in which these may point there."""
    total = 0.0
    for drawn in combinations(range(jobs), hit):
        there = [shares[job] for job in drawn if job < len(shares)]
        for pointing in product((True, False), repeat=len(there)):
            if sum(pointing) >= least:
                total += prod(share if points else 1 - share for share, points in zip(there, pointing, strict=True))
    return total / comb(jobs, hit)


@pytest.mark.parametrize("seed", range(20))
def test_the_chance_is_that_of_counting_every_case(seed: int) -> None:
    draw = random.Random(seed)
    jobs = draw.randint(2, 7)
    shares = [draw.random() for _ in range(draw.randint(1, jobs))]
    for hit, least in product(range(jobs + 1), range(4)):
        assert points_by_chance(jobs, hit, shares, least) == pytest.approx(counted(jobs, hit, shares, least))


def test_what_is_very_unlikely_at_first_is_not_lost_for_many_jobs() -> None:
    """A chance that is too small for a float would stay nothing for whatever is multiplied by it."""
    tails = hit_by_chance(20_000, 400, 18_000, 320)
    assert tails[320] < 1e-300
    assert tails[18_000] > 0.99
    assert points_by_chance(20_000, 8_000, [0.5] * 5_000, 900) > 0.99


def test_which_of_the_jobs_there_point_at_a_place_does_not_matter() -> None:
    """Two of fifty is likely where each of them might have been one of the two."""
    assert points_by_chance(100, 100, [0.1] * 2, 2) == pytest.approx(0.01)
    assert points_by_chance(100, 100, [0.1] * 50, 2) > 0.9


class Shape(NamedTuple):
    """How many jobs run on how many nodes each, of how many; the share of jobs that is hit, and the area."""

    jobs: int
    nodes: int
    each: int
    hit: float
    area: str


SHAPES = {
    "all of a cluster": Shape(100, 100, 8, 1.0, "data"),
    "all of a cluster, by the network": Shape(100, 96, 8, 1.0, "network"),
    "half of small jobs": Shape(200, 100, 2, 0.5, "data"),
    "a few, by the network": Shape(150, 64, 4, 0.1, "network"),
    "jobs of all sizes": Shape(80, 60, 0, 0.6, "network"),
}
Cluster = Mapping[str, Set[str]]


def wiring(shape: Shape) -> dict[str, str]:
    return {f"n{n}": f"s{n // 32}.leaf{n // 8}" for n in range(shape.nodes)}


def drawn(shape: Shape, draw: random.Random) -> tuple[Cluster, list[Told]]:
    """Jobs on random nodes, of which some are hit at random, each of which names a random one of its nodes."""
    names = [f"n{n}" for n in range(shape.nodes)]
    running = {
        f"j{n}": frozenset(draw.sample(names, shape.each or draw.choice((1, 2, 4, 16)))) for n in range(shape.jobs)
    }
    hit = draw.sample(sorted(running), round(shape.hit * shape.jobs))
    incidents = [told(job, draw.uniform(90, 150), draw.choice(sorted(running[job])), area=shape.area) for job in hit]
    return running, incidents


def named(found: list[Failure]) -> set[str]:
    return {one.name for one in found if one.kind in ("node", "switch")}


@pytest.mark.parametrize("name", SHAPES)
def test_where_no_place_is_at_fault_hardly_ever_one_is_named(name: str) -> None:
    shape, wrong = SHAPES[name], 0
    for seed in range(DRAWS):
        running, incidents = drawn(shape, random.Random(f"{name} {seed}"))
        wrong += bool(named(failures(Seen(incidents=incidents, running=running, switches=wiring(shape)))))
    assert wrong <= 0.05 * DRAWS


def test_no_node_of_a_large_cluster_is_named_when_all_jobs_are_hit() -> None:
    running, incidents = drawn(Shape(1000, 1280, 16, 1.0, "network"), random.Random(2))
    found = failures(Seen(incidents=incidents, running=running))
    assert [one.reason.name for one in found] == ["CLUSTER_WIDE"]


def test_jobs_of_which_nobody_knows_where_they_ran_accuse_no_node_when_all_are_hit() -> None:
    draw = random.Random(1)
    names = [f"n{n}" for n in range(1280)]
    running = {f"j{n}": frozenset(draw.sample(names, 16)) for n in range(1000)}
    incidents = [told(job, draw.uniform(100, 160), draw.choice(names)) for job in running]
    assert named(failures(Seen(incidents=incidents, running=running))) == set()


@pytest.mark.parametrize("hit", [0.0, 0.05, 0.3])
def test_a_node_that_fails_is_found_among_jobs_that_fail_of_themselves(hit: float) -> None:
    """All eight jobs on the node point at it, while others are hit at random."""
    shape, found = Shape(120, 80, 4, hit, "data"), 0
    for seed in range(20):
        draw = random.Random(seed)
        running, incidents = drawn(shape, draw)
        planted = {f"p{n}": frozenset({"bad", *draw.sample([f"n{n}" for n in range(80)], 3)}) for n in range(8)}
        guilty = [told(job, draw.uniform(100, 120), "bad") for job in planted]
        seen = Seen(incidents=[*incidents, *guilty], running={**running, **planted})
        supported = {one.name for one in failures(seen) if one.verdict == "supported"}
        found += supported == {"bad"}
    assert found == 20
