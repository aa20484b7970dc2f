"""A job that stands still, is begun anew with its ranks numbered anew, and stands still again."""

from __future__ import annotations

import pytest
from streams_support import Script, records, run, written_log

from schemas.results import Incident

RANKS = 8


def twice() -> Script:
    """Rank 5 is outside communication in attempt 0; attempt 1 does 20 iterations from second 100 on."""
    script = Script("twice")
    script.start(RANKS)
    script.train(RANKS, 1, 20)
    script.alive(RANKS, 0, 60)
    script.stacks(RANKS, range(30, 50, 5), 5)
    script.start(RANKS, 90.2, "1")
    script.train(RANKS, 1, 20, attempt="1", zero=100)
    script.alive(RANKS, 90, 190, attempt="1")
    return script


def named(script: Script) -> dict[str, set[int | None]]:
    """Whom any revision names, by attempt."""
    log = written_log(script.recording)
    run(log)
    found: dict[str, set[int | None]] = {}
    incidents: list[Incident] = records(log, "incidents")
    for one in incidents:
        found.setdefault(one.attempt, set()).update(suspect.rank for suspect in one.suspects)
    return found


@pytest.mark.parametrize("outside", [2, None])
@pytest.mark.parametrize("late", [False, True])
def test_stacks_and_dumps_of_one_attempt_blame_nobody_in_the_next(outside: int | None, late: bool) -> None:
    script = twice()
    if outside is not None:
        script.stacks(RANKS, range(140, 170, 5), outside, "1")
    if late:
        # What was taken of the first attempt and is dated into the standstill of the second.
        script.dumps(RANKS, 150, 5)
        script.stacks(RANKS, range(141, 170, 5), 5)
    assert named(script) == {"0": {5}, "1": set() if outside is None else {outside}}
