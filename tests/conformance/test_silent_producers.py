"""A node's producer that falls silent makes nobody a suspect, whatever the rest of the job does."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streams_support import (
    Script,
    at,
    dying,
    hanging,
    node_of,
    records,
    restarting,
    run,
    slowing,
    steady,
    talking,
    written_log,
)

from schemas.results import Incident

RANKS = 4
JOBS: dict[str, tuple[Callable[[], Script], int | None]] = {
    "healthy": (lambda: steady("fine", RANKS, 70), None),
    "a loader hangs": (lambda: hanging("hang", RANKS), 3),
    "one raises": (lambda: restarting("again", RANKS), 2),
    "one is killed": (lambda: dying("dead", RANKS), 1),
    "one is slow": (lambda: slowing("slow", RANKS, 70), 3),
    "one stops within its loop": (lambda: talking("talk", 6), 5),
}


def dark(script: Script, node: str, second: float) -> list[Incident]:
    """The latest revisions of a job's incidents if all from one node ends at a second."""
    script.observations = [
        one for one in script.observations if one.identity.node != node or one.event.time < at(second)
    ]
    log = written_log(script.recording)
    run(log)
    latest = {one.id: one for one in sorted(records(log, "incidents"), key=lambda one: one.revision)}
    return list(latest.values())


@pytest.mark.parametrize("second", [12, 23, 38])
@pytest.mark.parametrize("name", JOBS)
def test_nobody_is_named_for_the_silence_of_a_producer(name: str, second: float) -> None:
    made, culprit = JOBS[name]
    for node in (node_of(0), node_of(RANKS - 1)):
        found = dark(made(), node, second)
        named = {suspect.rank for one in found for suspect in one.suspects}
        assert named <= {culprit}, node
        if culprit is None:
            assert {one.severity for one in found} <= {"info"}, node
