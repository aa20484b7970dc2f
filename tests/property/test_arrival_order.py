"""In what order batches stand between two ticks, and how often each stands there, changes no result."""

from __future__ import annotations

import random

import pytest
from streams_support import (
    JOBS,
    RESULTS,
    SHARED,
    Raw,
    between_ticks,
    is_tick,
    log_of,
    raw_of,
    records,
    run,
    said,
    written_log,
)

from producers.recording import read_recording
from rankwatch.demo import bundled_recording
from schemas.ports import Entry

SEEDS = range(4)
RECORDED = ("restart", "kill", "pp-straggler")


def shuffled(raw: Raw, seed: int) -> Raw:
    """Every run of batches between two ticks in another order."""
    chance = random.Random(seed)
    return {part: between_ticks(entries, lambda held: chance.sample(held, len(held))) for part, entries in raw.items()}


def repeated(raw: Raw, seed: int, share: float = 0.2) -> Raw:
    """A share of the batches twice or three times, the copies anywhere behind the first in the same partition."""
    chance = random.Random(seed)
    found: Raw = {}
    for part, entries in raw.items():
        placed: list[tuple[float, Entry]] = [(float(place), entry) for place, entry in enumerate(entries)]
        for place, entry in enumerate(entries):
            if not is_tick(entry) and chance.random() < share:
                copies = chance.randint(1, 2)
                placed += [(place + 0.5 + chance.random() * (len(entries) - place), entry) for _ in range(copies)]
        found[part] = [entry for _, entry in sorted(placed, key=lambda one: one[0])]
    return found


def results(raw: Raw) -> dict[str, list[bytes]]:
    log = log_of(raw)
    run(log)
    return said(log)


@pytest.mark.parametrize("job", JOBS)
def test_a_synthetic_job_gives_incidents_at_all(job: str) -> None:
    log = written_log(JOBS[job]())
    run(log)
    assert records(log, "incidents")
    assert not records(log, "late")
    assert not records(log, "dead-letters")


@pytest.mark.parametrize("job", JOBS)
def test_the_order_of_batches_between_two_ticks_changes_nothing(job: str) -> None:
    raw = raw_of(written_log(JOBS[job]()))
    expected = results(raw)
    for seed in SEEDS:
        other = shuffled(raw, seed)
        assert other != raw
        assert results(other) == expected, seed


@pytest.mark.parametrize("job", JOBS)
def test_batches_that_were_sent_again_change_nothing(job: str) -> None:
    raw = raw_of(written_log(JOBS[job]()))
    expected = results(raw)
    for seed in SEEDS:
        other = repeated(raw, seed)
        assert sum(map(len, other.values())) > sum(map(len, raw.values()))
        assert results(other) == expected, seed


def test_batches_sent_again_and_shuffled_change_nothing() -> None:
    raw = raw_of(written_log(JOBS["two at once"]()))
    expected = results(raw)
    for seed in SEEDS:
        assert results(shuffled(repeated(raw, seed), seed)) == expected, seed


def test_a_batch_moved_behind_its_closing_tick_does_change_the_result() -> None:
    raw = raw_of(written_log(JOBS["hang"]()))
    expected = results(raw)
    moved = {part: [*filter(is_tick, held), *(e for e in held if not is_tick(e))] for part, held in raw.items()}
    assert results(moved) != expected


def test_the_bundled_recording_does_not_depend_on_arrival() -> None:
    with bundled_recording() as folder:
        raw = raw_of(written_log(read_recording(folder)))
    expected = results(raw)
    assert expected["incidents"]
    assert results(shuffled(repeated(raw, 1), 1)) == expected


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_job_does_not_depend_on_arrival(name: str) -> None:
    if not (SHARED / name).is_dir():
        pytest.skip("the recorded jobs are not there")
    raw = raw_of(written_log(read_recording(SHARED / name)))
    expected = results(raw)
    assert set(expected) == set(RESULTS)
    assert results(shuffled(repeated(raw, 2), 2)) == expected
