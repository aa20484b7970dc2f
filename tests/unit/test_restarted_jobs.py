"""Whole jobs that begin another attempt: what was wrong with the one before is over, and the new one is judged anew."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streams_support import (
    Script,
    at,
    dying,
    hanging,
    node_of,
    recording_of,
    restarting,
    slowing,
    worker,
)

from rankwatch import diagnose
from schemas.events import Log
from schemas.identity import Identity
from schemas.results import Incident

XID = "NVRM: Xid (PCI:0000:0f:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."


def again(script: Script, ranks: int, second: float, steps: int = 40, attempt: str = "1") -> Script:
    """Another attempt begins, and trains."""
    script.start(ranks, second, attempt)
    script.train(ranks, 1, steps, attempt=attempt, zero=second + 1)
    script.alive(ranks, int(second) + 1, int(second) + steps + 2, attempt=attempt)
    return script


def nan(ranks: int = 8) -> Script:
    script = Script("job")
    script.start(ranks)
    script.train(ranks, 1, 40)
    script.alive(ranks, 0, 60)
    for step in range(20, 60):
        line = f"iteration {step:8d}/ 500 | lm loss: nan | grad norm: nan |"
        script.log(worker("job", 0), step + 0.53, line, step)
    return script


def faulty_gpu(ranks: int = 8) -> Script:
    script = Script("job")
    script.start(ranks)
    script.train(ranks, 1, 40)
    script.alive(ranks, 0, 44)
    kernel = Identity(job="job", node=node_of(2), rank_reason="log of a node", process_type="kernel")
    script.send(kernel, Log(time=at(30), stream="kernel", text=XID, process_type="kernel"))
    return script


def late_words() -> Script:
    """The attempt before has hung; what its ranks lose is printed when the next one runs already."""
    script = again(hanging("job"), 8, 75.2)
    for rank in range(8):
        script.log(worker("job", rank), 90 + rank / 10, f"[rank{rank}]: RuntimeError: Connection closed by peer")
    return script


JOBS: dict[str, tuple[Callable[[], Script], str]] = {
    "hang": (lambda: again(hanging("job"), 8, 75.2), "hang"),
    "crash": (lambda: again(dying("job"), 4, 40.2), "crash"),
    "error": (lambda: restarting("job"), "crash"),
    "slowdown": (lambda: again(slowing("job"), 8, 75.2), "slowdown"),
    "numerics": (lambda: again(nan(), 8, 75.2), "numerics"),
    "node fault": (lambda: again(faulty_gpu(), 8, 50.2), "hang"),
    "late words": (late_words, "hang"),
}


def incidents(script: Script) -> list[Incident]:
    return diagnose.run(script.recording).incidents


@pytest.mark.parametrize(("make", "symptom"), JOBS.values(), ids=JOBS)
def test_a_new_attempt_resolves_what_was_wrong_with_the_one_before(make: Callable[[], Script], symptom: str) -> None:
    (found,) = incidents(make())
    assert (found.attempt, found.symptom, found.status) == ("0", symptom, "resolved")


def test_a_job_that_restarts_every_minute_has_one_incident_for_each_failure() -> None:
    script = Script("job")
    for attempt in range(6):
        again(script, 4, 60.0 * attempt + 0.2, 40, str(attempt))
        script.log(worker("job", 2, str(attempt)), 60.0 * attempt + 42, "ValueError: bad shard")
        for rank in range(4):
            text = f'Traceback (most recent call last):\n  File "t.py", line 1, in f\n    f()\nValueError: {attempt}'
            lost = f"[rank{rank}]: RuntimeError: Connection closed by peer"
            script.log(worker("job", rank, str(attempt)), 60.0 * attempt + 43 + rank, text if rank == 2 else lost)
    found = diagnose.run(recording_of(script)).incidents
    assert sorted((one.attempt, one.status) for one in found) == [
        *((str(attempt), "resolved") for attempt in range(5)),
        ("5", "open"),
    ]
    assert {one.severity for one in found} == {"critical"}
