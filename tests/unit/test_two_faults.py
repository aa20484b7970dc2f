"""Two faults in one job through the whole pipeline: neither hides the other, and what follows from one is no second."""

from __future__ import annotations

import random

import pytest
from simulated_job import Shape
from simulated_slowness import Scene
from simulated_slowness import told as slowness
from streams_support import (
    SECOND,
    Script,
    records,
    run,
    written_log,
)

from schemas.results import Incident


def told(script: Script) -> list[Incident]:
    """All revisions of a job's incidents, in order."""
    log = written_log(script.recording)
    run(log)
    found: list[Incident] = records(log, "incidents")
    return sorted(found, key=lambda one: (one.published, one.id))


def final(script: Script) -> list[tuple[str, list[int | None], str]]:
    """The latest revisions of what pages: symptom, suspects and status, in order of onset."""
    latest = {one.id: one for one in told(script)}
    paging = [one for one in latest.values() if one.severity != "info"]
    return [
        (one.symptom, [suspect.rank for suspect in one.suspects], one.status)
        for one in sorted(paging, key=lambda one: one.onset)
    ]


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
