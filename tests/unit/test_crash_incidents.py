"""Crashes in jobs that print no iterations: who died, and who only printed an error."""

from __future__ import annotations

import pytest
from streams_support import SECOND, TRACEBACK, Script, at, records, worker, written_log
from streams_support import run as through

from schemas.events import Log, Metric
from schemas.identity import Identity
from schemas.results import Incident
from streams.incidents.decision import Reason

CAUGHT = (
    "fetch failed, retrying\nTraceback (most recent call last):\n"
    '  File "/app/data.py", line 31, in fetch\n    return read(path)\n'
    "OSError: [Errno 5] Input/output error: /data/shard-17"
)
LOST = (
    "[Rank {0}] Process group watchdog thread terminated with exception: NCCL error: remote process exited or there "
    "was a network error, NCCL version 2.21.5"
)


def latest(script: Script) -> Incident:
    log = written_log(script.recording)
    through(log)
    found: Incident = max(records(log, "incidents"), key=lambda one: one.revision)
    return found


@pytest.mark.parametrize(
    ("until", "lost", "reason", "suspects"),
    [
        (90, True, Reason.OWN_ERROR, [3]),
        (110, True, Reason.ONLY_CASCADES, []),
        (110, False, Reason.PENDING_PEERS, []),
    ],
    ids=["it was its last word", "it printed on, and lost a peer like others", "it printed on, and nobody minds"],
)
def test_an_error_that_a_rank_has_caught_is_not_its_death(
    until: int, lost: bool, reason: Reason, suspects: list[int]
) -> None:
    script = Script(job="own-words")
    for second in range(0, 111, 10):
        for rank in range(6):
            if rank != 3 or second <= until:
                script.log(worker(script.job, rank), second + 1 + rank / 10, f"epoch 0 batch {second} done")
    script.log(worker(script.job, 3), 95, CAUGHT)
    for rank in (0, 1, 2, 3) if lost else ():
        script.log(worker(script.job, rank), 130 + rank / 10, LOST.format(rank))
    node = Identity(job=script.job, node="node00", rank_reason="node", process_type="sampler")
    script.send(node, Metric(time=at(200), name="cpu_percent", value=1.0))
    found = latest(script)
    assert ([one.rank for one in found.suspects], found.reason) == (suspects, reason.value)


def unsure(stop: int, within: int = 300) -> Script:
    """Rank 2 prints an error that is dated to minutes, in a job that stands still after a step (of a second)."""
    script = Script()
    script.start(4)
    script.train(4, 1, stop)
    script.alive(4, 0, stop + 60)
    error = Log(time=at(25.1), stream="stderr", text=TRACEBACK, precision_ns=within * SECOND, time_source="inferred")
    script.send(worker(script.job, 2), error)
    return script


def test_iterations_that_may_have_come_before_an_error_do_not_end_its_incident() -> None:
    log = written_log(unsure(80).recording)
    through(log)
    said = records(log, "incidents")
    assert len({one.id for one in said}) == 1
    # Nor is a rank silent since whose words may have come before or after it.
    assert (said[-1].status, said[-1].suspects) == ("open", [])


def test_iterations_that_came_later_for_certain_end_it() -> None:
    script = unsure(330)
    said = latest(script)
    assert (said.status, said.severity, said.resolution) == ("resolved", "info", "iterations go on")
    assert said.published >= at(325)
