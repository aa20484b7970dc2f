"""Two faults in one job through the whole pipeline: neither hides the other, and what follows from one is no second."""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec
import pytest
from lifecycle_jobs import TERMINATED
from simulated_job import Shape
from simulated_pairs import FIRST, LATER, RANKS, Kind, aborted, hung, pair
from simulated_pairs import SECOND as OTHER
from simulated_slowness import Scene
from simulated_slowness import told as slowness
from streams_support import SECOND, TRACEBACK, Script, at, leaking, records, run, slowing, worker, written_log

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


Told = tuple[str, list[int | None], list[str]]
"""Symptom, ranks and nodes of an incident as it was last said."""


def lasting(incidents: list[Incident]) -> list[Told]:
    """The incidents that page, as they were last said, in the order in which they were first said."""
    latest = {one.id: one for one in incidents}
    return [(one.symptom, ranks_of(one), one.scope.nodes) for one in latest.values() if one.severity != "info"]


OF_FIRST: dict[Kind, Told] = {
    "nan": ("numerics", [], []),
    "hang": ("hang", [FIRST], ["node02"]),
    "crash": ("crash", [FIRST], ["node02"]),
    "kill": ("memory", [FIRST], ["node02"]),
    "gpu": ("crash", [], ["node02"]),
    "rank's gpu": ("crash", [], ["node02"]),
}
OF_OTHER: dict[Kind, Told] = {
    "nan": ("numerics", [], []),
    "hang": ("hang", [OTHER], ["node01"]),
    "crash": ("crash", [OTHER], ["node01"]),
    "kill": ("memory", [OTHER], ["node01"]),
    "gpu": ("crash", [], ["node01"]),
    "rank's gpu": ("crash", [], ["node01"]),
}
# A job that stands still or has failed prints no more losses, cannot come to stand still, and whoever fails in it after
# a peer has may do so for that.
FOLLOWS: set[tuple[Kind, Kind]] = {
    *((first, second) for first in ("hang", "crash", "kill") for second in ("nan", "hang")),
    *((first, "crash") for first in ("crash", "kill")),
}
STOPS: set[Kind] = {"hang", "crash", "kill"}
PAIRS = [(first, second) for first in OF_FIRST for second in OF_OTHER if first != second]


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_neither_of_two_faults_hides_the_other(first: Kind, second: Kind) -> None:
    incidents = told(pair(first, second))
    both = [OF_FIRST[first], OF_OTHER[second]]
    assert lasting(incidents) == (both[:1] if (first, second) in FOLLOWS else both)
    # Nor does either lose whom it names while the other shows, or is it over.
    for one in incidents:
        assert set(ranks_of(one)) <= {FIRST, OTHER}
    over = {one.id: one.resolution for one in incidents}
    lived_through = [kind for kind in (first, second) if "gpu" in kind and first not in STOPS]
    assert [why for why in over.values() if why] == ["iterations go on"] * len(lived_through)


FRAME = 'Traceback (most recent call last):\n  File "/job/train.py", line 140, in main\n    step()\n'
PEERS = [rank for rank in range(RANKS) if rank != FIRST]
OF_THE_HANG = {
    "watchdogs": lambda: hung(aborted(), {}, PEERS),
    "watchdogs, and deaths by SIGABRT": lambda: hung(aborted(), dict.fromkeys(PEERS, -6)),
    "deaths by SIGABRT": lambda: hung({}, dict.fromkeys(PEERS, -6)),
    "one is killed, and nobody says why": lambda: hung({}, {OTHER: -9}),
    "one is killed, and launchers end the others": lambda: hung(
        {}, {rank: -9 if rank == OTHER else -15 for rank in range(RANKS)}
    ),
    "one raises as it is told to end": lambda: hung({OTHER: (LATER, TERMINATED)}, {OTHER: 1}),
    "one has waited long enough": lambda: hung({OTHER: (LATER, f"{FRAME}TimeoutError: no step for 60 s")}, {OTHER: 1}),
    "one raises and goes on waiting": lambda: hung({OTHER: (LATER, TRACEBACK)}, {}),
    "several raise": lambda: hung({rank: (LATER + rank / 3, TRACEBACK) for rank in (0, 2, 3)}, {0: 1, 2: 1, 3: 1}),
    "all raise": lambda: hung({rank: (LATER + rank / 3, TRACEBACK) for rank in PEERS}, dict.fromkeys(PEERS, 1)),
    "one raises among watchdogs": lambda: hung(
        {**aborted(), OTHER: (LATER + 1, f"{FRAME}KeyError: 'metrics'")}, dict.fromkeys(PEERS, 1)
    ),
    "one raises just before watchdogs": lambda: hung({**aborted(), OTHER: (LATER - 0.5, TRACEBACK)}, {}, PEERS),
}


@pytest.mark.parametrize("make", OF_THE_HANG.values(), ids=OF_THE_HANG)
def test_what_follows_from_a_hang_is_no_second_fault(make: Callable[[], Script]) -> None:
    incidents = told(make())
    assert {one.id for one in incidents} == {incidents[0].id}
    assert lasting(incidents) == [OF_FIRST["hang"]]
