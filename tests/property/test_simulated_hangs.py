"""Simulated jobs in which one rank goes wrong: whatever the dumps show of it, nobody else is named."""

from __future__ import annotations

import random

import msgspec
import pytest
from simulated_job import FAULTS, SHAPES, Job, Shape, Wrong, drawn

from streams.apart import Apart, apart

CHUNK = 100


class Seen(msgspec.Struct, frozen=True):
    """What is seen of a job: the dumps that are there, whether of sends and of starts, and whether stages are known."""

    lost: frozenset[int] = frozenset()
    sends: bool = True
    timed: bool = False
    layout: bool = True


def judged(job: Job, seen: Seen) -> Apart | None:
    states = {
        rank: {one.group: one for one in job.dump(rank, sends=seen.sends, timed=seen.timed)}
        for rank in job.shape.ranks
        if rank not in seen.lost
    }
    return apart(states, stages=job.shape.stages if seen.layout else None)


def seen_of(job: Job, seed: int) -> Seen:
    dice = random.Random(seed)
    lost = dice.sample(job.shape.ranks, dice.choice([0, 0, 0, 1, 1, 2]))
    return Seen(frozenset(lost), sends=dice.random() < 0.7, timed=dice.random() < 0.3, layout=dice.random() < 0.5)


@pytest.mark.parametrize("first", range(0, 600, CHUNK))
def test_nobody_but_the_one_that_went_wrong_is_named(first: int) -> None:
    for seed in range(first, first + CHUNK):
        job = drawn(seed)
        seen = seen_of(job, seed + 1_000_000)
        found = judged(job, seen)
        if job.stands_still and found is not None and found.grounds != "perhaps_waiting":
            assert set(found.ranks) <= set(job.wrong), (seed, job.wrong, job.shape, seen, found)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_process_that_stops_is_named_wherever_it_stops(shape: Shape) -> None:
    for rank in shape.ranks:
        for where in range(len(shape.iteration(rank))):
            job = Job(shape, Wrong("process stops", rank, where + len(shape.iteration(rank))))
            found = judged(job, Seen())
            assert found is not None
            assert (found.grounds, list(found.ranks)) == ("never_enqueued", [rank]), (rank, where)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_device_that_stops_is_at_the_place_to_which_all_have_come(shape: Shape) -> None:
    for rank in shape.ranks:
        for where in range(len(shape.iteration(rank))):
            job = Job(shape, Wrong("device stops", rank, where + len(shape.iteration(rank))))
            found = judged(job, Seen())
            assert found is not None
            assert found.grounds == "none_completed"
            assert any(rank in ranks for _, ranks in found.places), (rank, where)


@pytest.mark.parametrize("shape", [Shape(1, 1, 4), Shape(1, 1, 6), Shape(1, 2, 4)])
def test_where_sends_are_not_shown_no_innocent_rank_is_named(shape: Shape) -> None:
    for rank in shape.ranks:
        for where in range(len(shape.iteration(rank))):
            for fault in ("device stops", "process stops"):
                job = Job(shape, Wrong(fault, rank, where + len(shape.iteration(rank))), ahead=3)
                for lost in ((), (rank,), ((rank + 1) % len(shape.ranks),)):
                    found = judged(job, Seen(frozenset(lost), sends=False, timed=True, layout=where % 2 == 0))
                    if found is not None and found.grounds != "perhaps_waiting":
                        assert set(found.ranks) <= {rank}, (rank, where, fault, lost, found)


@pytest.mark.parametrize("first", range(0, 300, CHUNK))
def test_where_two_go_wrong_nobody_else_is_named(first: int) -> None:
    for seed in range(first, first + CHUNK):
        job = drawn(seed, faults=2)
        seen = seen_of(job, seed + 1_000_000)
        found = judged(job, seen)
        if found is not None and found.grounds != "perhaps_waiting":
            assert set(found.ranks) <= set(job.wrong), (seed, job.wrong, job.shape, seen, found)


def test_where_starts_are_seen_a_device_that_stops_is_named_among_at_least_three() -> None:
    shape = SHAPES[0]
    for rank in shape.ranks:
        found = judged(Job(shape, Wrong("device stops", rank, 3)), Seen(timed=True))
        assert found is not None
        assert (found.grounds, list(found.ranks)) == ("never_started", [rank])


def test_another_operation_is_named_among_at_least_three() -> None:
    shape = SHAPES[0]
    for rank in shape.ranks:
        found = judged(Job(shape, Wrong("another operation", rank, 2)), Seen())
        assert found is not None
        assert (found.grounds, list(found.ranks)) == ("mismatched", [rank])


def test_all_faults_are_drawn_and_found_often_enough_to_mean_anything() -> None:
    named = dict.fromkeys(FAULTS, 0)
    for seed in range(600):
        job = drawn(seed)
        found = judged(job, seen_of(job, seed + 1_000_000))
        (wrong,) = job.wrong.values()
        named[wrong.fault] += found is not None and list(found.ranks) == [wrong.rank]
    # Where a device stops mostly only its group can be told.
    assert named.pop("device stops") >= 1
    assert min(named.values()) >= 20, named
