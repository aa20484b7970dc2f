"""Recorded jobs of which one worker's evidence is lost: the blame never moves to another rank.

Stacks and dumps are taken away, or samples fail, of one worker at a time; all the rest of the recording stays as it is.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable

import msgspec
import pytest
from streams_support import SHARED, run, written_log

from producers.recording import Recording, read_recording
from schemas.events import Collective, Event, Stack
from schemas.results import Incident
from streams.report import latest, revisions

HANGS = ("ckpt-stall", "dataloader-hang", "pp-hang", "skip-collective")
JOBS = sorted(path.parent.name for path in SHARED.glob("*/stacks"))
SHOWN = 3
"""Of how many ranks, the culprit among them, each loss is tried; the slow test tries all."""
pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded jobs are not beside the project")


def without_stacks(event: Event) -> Event | None:
    return None if isinstance(event, Stack) else event


def without_dump(event: Event) -> Event | None:
    return None if isinstance(event, Collective) else event


def without_either(event: Event) -> Event | None:
    return without_stacks(event) and without_dump(event)


def failed_samples(event: Event) -> Event | None:
    return msgspec.structs.replace(event, frames=[], failure="timed out") if isinstance(event, Stack) else event


def empty_samples(event: Event) -> Event | None:
    return msgspec.structs.replace(event, frames=[]) if isinstance(event, Stack) else event


Loss = Callable[[Event], Event | None]
LOSSES: list[Loss] = [without_stacks, without_dump, without_either, failed_samples, empty_samples]


@functools.cache
def recording(job: str) -> Recording:
    return read_recording(SHARED / job)


def after(loss: Loss, rank: int, whole: Recording) -> Recording:
    """The recording with what is left of one rank's events."""
    arrivals = []
    for arrival in whole.arrivals:
        sent = arrival.batch
        if sent.identity.rank != rank:
            arrivals.append(arrival)
        elif left := [event for event in map(loss, sent.events) if event is not None]:
            arrivals.append(msgspec.structs.replace(arrival, batch=msgspec.structs.replace(sent, events=left)))
    return msgspec.structs.replace(whole, arrivals=arrivals)


def named(found: Recording) -> tuple[set[int | None], set[int | None]]:
    """Whom the last revisions name, and whom any has named."""
    log = written_log(found)
    run(log)
    said = list(revisions(log))
    return _suspects(latest(said)), _suspects(said)


def _suspects(incidents: list[Incident]) -> set[int | None]:
    return {suspect.rank for one in incidents for suspect in one.suspects}


@functools.cache
def culprits(job: str) -> frozenset[int | None]:
    now, ever = named(recording(job))
    assert job not in HANGS or (now == ever and len(now) == 1)
    return frozenset(ever)


def ranks_of(job: str) -> list[int]:
    return sorted({rank for one in recording(job).arrivals if (rank := one.batch.identity.rank) is not None})


def check(job: str, loss: Loss, ranks: list[int]) -> None:
    for rank in ranks:
        now, ever = named(after(loss, rank, recording(job)))
        assert now <= culprits(job) and ever <= culprits(job), f"without rank {rank}: {sorted(map(str, ever))}"


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.__name__)
@pytest.mark.parametrize("job", HANGS)
def test_what_one_of_some_workers_lacks_never_moves_the_blame(job: str, loss: Loss) -> None:
    chance = random.Random(f"{job} {loss.__name__}")
    guilty = [rank for rank in ranks_of(job) if rank in culprits(job)]
    others = chance.sample([rank for rank in ranks_of(job) if rank not in guilty], SHOWN - len(guilty))
    check(job, loss, [*guilty, *others])


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.__name__)
@pytest.mark.parametrize("job", JOBS)
def test_what_any_one_worker_lacks_never_moves_the_blame(job: str, loss: Loss) -> None:
    check(job, loss, ranks_of(job))
