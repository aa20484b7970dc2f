"""Ticks pass over the rest of a long silence in one step: whatever is said of the recording stays the same."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from kafka_pipeline import moved
from streams_support import CONFIG, RESULTS, SECOND, at, dying, hanging, recording_of, records, run, said, worker

from producers.observations import Observation
from producers.publish import stream
from producers.recording import Recording
from schemas.events import Metric
from schemas.topics import RAW_TOPICS
from streams.log.memory import MemoryLog

FORGETTING_S = CONFIG.forgetting_ns // SECOND


def joined(*parts: Recording) -> Recording:
    """Recordings one after another, their batches numbered on."""
    arrivals = [arrival for part in parts for arrival in part.arrivals]
    numbered = [
        msgspec.structs.replace(one, batch=msgspec.structs.replace(one.batch, boot=f"{number}"))
        for number, one in enumerate(arrivals)
    ]
    return msgspec.structs.replace(parts[0], arrivals=sorted(numbered, key=lambda one: one.time))


def same_job_again(silence_s: int) -> Recording:
    first = hanging("job", 4).recording
    return joined(first, moved(dying("job").recording, first.span[1] + silence_s * SECOND - at(0)))


def others_ahead_and_late(silence_s: int) -> Recording:
    """An event that runs ahead into the silence, one that comes out of it too late, and another job behind it."""
    first = hanging("job", 4)
    ahead = Metric(time=at(129), name="cpu_percent", value=90.0, pid=1001)
    first.observations.append(Observation(worker("job", 1), at(71), ahead, "", len(first.observations)))
    before = recording_of(first)
    behind = moved(dying("other").recording, before.span[1] + silence_s * SECOND - at(0))
    straggler = dying("job").recording.arrivals[0]
    events = [msgspec.structs.replace(one, time=at(200)) for one in straggler.batch.events]
    late = msgspec.structs.replace(
        straggler, time=behind.span[0] + SECOND, batch=msgspec.structs.replace(straggler.batch, events=events)
    )
    return joined(before, behind, msgspec.structs.replace(before, arrivals=[late]))


def results(recording: Recording, silence_ns: int | None, until: int | None = None) -> tuple[MemoryLog, int]:
    """The log after both stages, and how many entries its raw topics have."""
    log = MemoryLog(1)
    for _ in stream(recording, log, until=until, closing_ns=CONFIG.closing_ns, silence_ns=silence_ns):
        pass
    raw = sum(log.end(topic, 0) for topic in RAW_TOPICS)
    run(log)
    return log, raw


@pytest.mark.parametrize("made", [same_job_again, others_ahead_and_late])
@pytest.mark.parametrize("silence_s", [FORGETTING_S - 7, FORGETTING_S + 3, 3600])
def test_results_are_the_same_byte_for_byte(made: Callable[[int], Recording], silence_s: int) -> None:
    recording = made(silence_s)
    topics = (*RESULTS, "notices", "dead-letters")
    (whole, all_told), (jumped, fewer) = results(recording, None), results(recording, CONFIG.forgetting_ns)
    assert said(jumped, topics) == said(whole, topics)
    assert len({incident.id for incident in records(whole, "incidents")}) >= 2
    assert (fewer < all_told) == (silence_s > FORGETTING_S)
    if made is others_ahead_and_late:
        assert records(whole, "late")
        assert max(window.end for window in records(whole, "windows") if window.identity.job == "job") >= at(130)


@pytest.mark.parametrize("second", [75, 200, 300, 400, FORGETTING_S + 70, 1500, 3000, 3675])
def test_at_any_time_in_the_silence_all_is_said_that_was_known(second: int) -> None:
    recording = same_job_again(3600)
    whole, _ = results(recording, None, at(second))
    jumped, _ = results(recording, CONFIG.forgetting_ns, at(second))
    assert said(jumped) == said(whole)


def test_a_silence_of_a_month_costs_no_more_ticks_than_one_of_an_hour_and_these_stay_a_second_apart() -> None:
    counts = [results(same_job_again(silence_s), CONFIG.forgetting_ns)[1] for silence_s in (3600, 30 * 86_400)]
    assert counts[0] == counts[1]
