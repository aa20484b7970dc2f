"""Two faults in one job through the whole pipeline: neither hides the other, and what follows from one is no second."""

from __future__ import annotations

import random

import msgspec
import pytest
from simulated_job import Shape
from simulated_slowness import Scene
from simulated_slowness import told as slowness
from streams_support import SECOND, Script, at, leaking, records, run, slowing, worker, written_log

from schemas.results import Incident


class Both(Scene, frozen=True, kw_only=True):
    """As its kind, and another rank becomes slow as well, later or not."""

    other: int
    since: int

    def is_slow(self, dice: random.Random, step: int, rank: int) -> bool:
        return super().is_slow(dice, step, rank) or (rank == self.other and step >= self.since)


def slow(other: int, since: int, *, layout: bool = True) -> Both:
    """Sixteen copies of two stages, four ranks a node: rank 3 is slow from step 60 on."""
    shape = Shape(1, 16, 2)
    scene = {"kind": "slow rank", "rank": 3, "factor": 1.8, "begin": 60, "seed": 1, "noise": 0.02}
    return Both(shape=shape, steps=since + 100, other=other, since=since, layout=layout, **scene)


def paging(incidents: list[Incident]) -> list[tuple[list[int | None], str]]:
    latest = {one.id: one for one in incidents}
    return [([suspect.rank for suspect in one.suspects], one.status) for one in latest.values()]


@pytest.mark.parametrize("other", [27, 11])
def test_two_ranks_that_become_slow_one_long_after_the_other_are_two_incidents(other: int) -> None:
    incidents = slowness(slow(other, 260))
    assert paging(incidents) == [([3], "open"), ([other], "open")]
    # Neither loses its name for a moment, nor is any other rank named.
    assert {suspect.rank for one in incidents for suspect in one.suspects} == {3, other}
    first, later = sorted({one.id: one.onset for one in incidents}.values())
    assert later - first > 100 * SECOND


def test_a_second_slow_rank_that_cannot_be_named_takes_no_name_back() -> None:
    # Where stages are not known the other may wait for somebody within its work.
    incidents = slowness(slow(27, 260, layout=False))
    assert paging(incidents) == [([3], "open")]
    assert {suspect.rank for one in incidents for suspect in one.suspects} == {3}


@pytest.mark.parametrize(("other", "since"), [(27, 65), (2, 260)])
def test_ranks_that_become_slow_together_or_on_one_node_are_one_incident(other: int, since: int) -> None:
    assert len({one.id for one in slowness(slow(other, since))}) == 1


def told(script: Script) -> list[Incident]:
    """All revisions of a job's incidents, in order."""
    log = written_log(script.recording)
    run(log)
    found: list[Incident] = records(log, "incidents")
    return sorted(found, key=lambda one: (one.published, one.id))


def ranks_of(incident: Incident) -> list[int | None]:
    return [suspect.rank for suspect in incident.suspects]


FRAMES = 'Traceback (most recent call last):\n  File "/job/train.py", line 90, in train\n    f()\n'
LOST = (
    "[Rank {0}] Process group watchdog thread terminated with exception: NCCL error: remote process exited or there "
    "was a network error, NCCL version 2.21.5"
)


@pytest.mark.parametrize("rank", [3, 6])
def test_who_was_slow_until_it_failed_is_one_incident_and_who_was_not_is_another(rank: int) -> None:
    script = slowing(steps=70)
    script.log(worker(script.job, rank), 71, f"{FRAMES}RuntimeError: device lost")
    for other in set(range(8)) - {rank}:
        script.log(worker(script.job, other), 73 + other / 10, LOST.format(other))
    script.alive(8, 72, 90)
    latest = {one.id: one for one in told(script)}
    slow, crash = sorted(latest.values(), key=lambda one: one.symptom, reverse=True)
    assert ([one.symptom for one in (slow, crash)], ranks_of(crash)) == (["slowdown", "crash"], [rank])
    if rank == 3:
        assert (slow.merged_into, slow.severity, slow.status) == (crash.id, "info", "resolved")
        assert (crash.onset, crash.evidence[-1].detector) == (slow.onset, "step_outlier")
    else:
        assert (slow.merged_into, slow.severity, ranks_of(slow)) == ("", "critical", [3])
        assert crash.onset == at(71)


def test_numbers_that_are_not_finite_and_a_later_hang_of_another_rank_are_two_incidents() -> None:
    script = Script("two")
    script.start(8)
    script.train(8, 1, 60)
    for step in range(30, 61):
        line = f"iteration {step:8d}/ 500 | lm loss: nan | grad norm: nan |"
        script.log(worker(script.job, 0), step + 0.53, line, step)
    script.alive(8, 0, 120)
    script.stacks(8, range(65, 120, 5), 7)
    latest = {one.id: one for one in told(script)}
    found = [(one.symptom, ranks_of(one), one.merged_into) for one in latest.values() if one.severity != "info"]
    assert sorted(found) == [("hang", [7], ""), ("numerics", [], "")]


def test_an_assertion_on_numbers_that_are_not_finite_is_part_of_these() -> None:
    script = Script("asserts")
    script.start(4)
    script.train(4, 1, 70)
    for step in range(30, 71):
        line = f"iteration {step:8d}/ 500 | lm loss: nan | grad norm: nan |"
        script.log(worker(script.job, 0), step + 0.53, line, step)
    script.alive(4, 0, 110)
    frames = 'Traceback (most recent call last):\n  File "/job/train.py", line 90, in train\n    check(loss)\n'
    for rank in range(4):
        script.log(worker(script.job, rank), 71.5, f"{frames}AssertionError: loss is NaN at step 70")
    latest = {one.id: one for one in told(script)}
    numbers, crash = sorted(latest.values(), key=lambda one: one.symptom, reverse=True)
    assert (numbers.symptom, numbers.status, numbers.severity, ranks_of(numbers)) == (
        "numerics",
        "open",
        "critical",
        [],
    )
    assert (crash.symptom, crash.merged_into, crash.severity) == ("crash", numbers.id, "info")


def test_a_hang_that_comes_and_goes_is_one_incident() -> None:
    script = Script("flaps")
    script.start(8)
    for begin in (0, 100, 200):
        script.train(8, begin // 5 + 1, begin // 5 + 20, zero=begin - begin // 5)
        # In training everybody is seen to wait now and then.
        script.stacks(8, range(begin + 2, begin + 20, 4), outside=8)
        script.stacks(8, range(begin + 25, begin + 95, 5), outside=5)
    script.alive(8, 0, 290)
    incidents = told(script)
    assert len({one.id for one in incidents}) == 1
    assert {rank for one in incidents for rank in ranks_of(one)} == {5}
    assert [one.status for one in incidents].count("resolved") == 2
    assert incidents[-1].status == "open"


def test_memory_that_grows_of_one_rank_hides_no_crash_of_another() -> None:
    script = leaking(windows=220)
    script.log(worker(script.job, 3), 2195.5, f"{FRAMES}ValueError: bad shard")
    for rank in (0, 1, 2):
        script.log(worker(script.job, rank), 2197 + rank / 10, LOST.format(rank))
    latest = {one.id: one for one in told(script)}
    found = sorted((one.symptom, ranks_of(one), one.merged_into) for one in latest.values() if one.severity != "info")
    assert found == [("crash", [3], ""), ("memory", [1], "")]


def test_a_node_whose_clock_runs_ahead_makes_nobody_elsewhere_the_first_to_fail() -> None:
    script = Script("ahead", flush_s=3)
    script.start(4)
    script.train(4, 1, 22)
    script.alive(4, 0, 60)
    script.log(worker(script.job, 2), 24.2, f"{FRAMES}ValueError: bad shard")
    # By its time of arrival the error of rank 2 lies seconds behind this one, which followed from it.
    script.log(worker(script.job, 0), 24.9, f"{FRAMES}KeyError: 'shard of rank 2'")
    for rank in (1, 3):
        script.log(worker(script.job, rank), 26 + rank / 10, LOST.format(rank))
    script.observations = [
        msgspec.structs.replace(one, event=msgspec.structs.replace(one.event, time=one.event.time + 300 * SECOND))
        if one.identity.node == "node01"
        else one
        for one in script.observations
    ]
    incidents = told(script)
    assert incidents
    assert {rank for one in incidents for rank in ranks_of(one)} <= {2}
