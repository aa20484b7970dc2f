"""Profiled steps of a data-parallel job as segments between collectives, and whom they name when they are played."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from detection_support import closed, new_view, summary
from detection_support import run as detect
from kineto_support import ALL_REDUCE, call, write_trace
from profiled_job import OPTIMIZER_US, PIECES, TRANSFER_US, ProfiledJob, even, in_turn, slow

from producers.recording import Recording, read_recording
from producers.segments import MOST_SEGMENTS, Collectives, Talk, segments_of
from producers.sketch import Step
from rankwatch.diagnose import run
from schemas.events import Timeline
from schemas.results import Anomaly, Incident
from streams.detectors.what_if import WhatIfDetector

GROUPS = {"pg_config": [{"pg_name": "0", "pg_desc": "default_pg", "pg_size": 8, "ranks": []}], "pg_count": 1}


def written(folder: Path, job: ProfiledJob, ranks: list[int] | None = None, **info: Any) -> Recording:
    for rank, value in enumerate(job.traces()):
        if ranks is None or rank in ranks:
            value["distributedInfo"] |= info
            write_trace(folder / f"{rank}.json", value)
    return read_recording(folder)


def timelines(recording: Recording) -> dict[int, list[Timeline]]:
    found: dict[int, list[Timeline]] = {}
    for arrival in recording.arrivals:
        own = [event for event in arrival.batch.events if isinstance(event, Timeline)]
        if own and arrival.batch.identity.rank is not None:
            found[arrival.batch.identity.rank] = own
    return found


def suspects(found: list[Incident]) -> list[list[int | None]]:
    return [[one.rank for one in incident.suspects] for incident in found]


@pytest.mark.parametrize("hidden", [False, True])
def test_a_segment_is_own_work_and_then_what_nothing_hides(tmp_path: Path, hidden: bool) -> None:
    """Ranks meet, so the ends of segments are the same moments of the step, whatever the clocks say."""
    found = timelines(written(tmp_path, ProfiledJob(work=slow(5), hidden=hidden)))
    assert sorted(found) == list(range(8))
    for rank, own in found.items():
        # Nothing tells when the first step began for all.
        assert [one.iteration for one in own] == list(range(11, 17))
        for one in own:
            assert one.names == ["all-reduce", "compute"]
            assert one.operations == [1, 0] * PIECES
            assert one.microbatches == [0, 0, 1, 1, 2, 2]
            ends = [start + duration for start, duration in zip(one.starts, one.durations, strict=True)]
            assert one.starts == [0, *ends[:-1]]
            assert (one.members, one.time_source) == (8, "captured")
            step = (one.iteration or 0) - 10
            computed = sum(slow(5)(step, rank, piece) for piece in range(PIECES)) + OPTIMIZER_US + 500
            assert sum(one.durations[::2]) / 1_000 == pytest.approx(computed, abs=1)
        assert [one.starts[-1] + one.durations[-1] for one in own] == pytest.approx(
            [one.starts[-1] + one.durations[-1] for one in found[0]], abs=10
        )
    assert found[5][0].durations[-1] / 1_000 == pytest.approx(TRANSFER_US, abs=1)


def late_cpu(step: int, rank: int) -> float:
    return 9_000.0 if rank == 6 else 500.0


@pytest.mark.parametrize(
    ("job", "named"),
    [
        (ProfiledJob(work=slow(5)), [[5]]),
        (ProfiledJob(work=slow(5), hidden=True), [[5]]),
        (ProfiledJob(work=slow(0, 1.3)), [[0]]),
        (ProfiledJob(work=slow(2), ranks=4), [[2]]),
        # The device has nothing to do: the CPU is late.
        (ProfiledJob(work=even, idle=late_cpu), [[6]]),
        # Of rank 0 that may be its duty, as logging is.
        (ProfiledJob(work=even, idle=lambda step, rank: 500.0 if rank else 9_000.0), [[]]),
        (ProfiledJob(work=slow(5, 1.6), idle=lambda step, rank: 500.0 if rank else 5_000.0), [[5]]),
        (ProfiledJob(work=slow(1), ranks=3), []),
        (ProfiledJob(work=slow(5), steps=3), []),
        (ProfiledJob(work=even), []),
        (ProfiledJob(work=even, hidden=True), []),
        (ProfiledJob(work=in_turn()), []),
        (ProfiledJob(work=in_turn(), hidden=True), []),
    ],
)
def test_the_rank_that_computes_longer_in_most_steps_is_named(
    tmp_path: Path, job: ProfiledJob, named: list[list[int]]
) -> None:
    found = run(written(tmp_path, job)).incidents
    assert suspects(found) == named
    for incident in found:
        assert incident.symptom == "slowdown"
        assert "what_if" in {one.detector for one in incident.evidence}


def test_where_process_groups_are_listed_profiles_and_played_steps_are_one_incident(tmp_path: Path) -> None:
    (found,) = run(written(tmp_path, ProfiledJob(work=slow(5)), **GROUPS)).incidents
    assert (suspects([found]), found.verdict, found.severity) == ([[5]], "supported", "critical")
    # The function says what the rank's own time went to.
    assert found.area == "compute"
    assert {one.detector for one in found.evidence} >= {"what_if", "profile_outlier"}
    (told,) = [one.text for one in found.evidence if one.detector == "what_if"]
    assert "rank 5 like its peers would win back" in told and "dp" not in told


def played(found: dict[int, list[Timeline]]) -> list[Anomaly]:
    """What the detector says of these timelines once nobody is waited for any more."""
    told = [summary(rank, 0, timelines=own) for rank, own in sorted(found.items())]
    windows = [closed(told, 0), *(closed([], 10 * number) for number in range(1, 5))]
    return [one for found in detect(WhatIfDetector(), new_view(), windows) for one in found]


def test_ranks_that_were_not_profiled_may_be_whom_others_wait_for(tmp_path: Path) -> None:
    found = timelines(written(tmp_path, ProfiledJob(work=slow(3))))
    (one,) = played(found)
    assert (one.grounds, [suspect.rank for suspect in one.suspects]) == ("what_if_workers", [3])
    del found[5]
    (one,) = played(found)
    assert (one.grounds, one.severity, one.suspects) == ("not_played", "info", [])
    assert "steps of only 7 of 8 ranks fit together" in one.text


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"kernel": "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"}, "ranks send to each other"),
        ({"told": {"Group size": 8, "Collective name": "all_to_allv"}}, "ranks send to each other"),
        ({"kernel": "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)"}, "what a collective does is not told"),
        ({"told": {"Group size": 4}}, "collectives join only some of the ranks"),
    ],
)
def test_a_job_whose_ranks_do_not_all_meet_has_no_segments_and_a_note_says_why(
    tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    recording = written(tmp_path, msgspec.structs.replace(ProfiledJob(work=slow(5)), **changes))
    assert timelines(recording) == {}
    ((note, count),) = [(one.reason, one.count) for one in recording.inputs.unused]
    assert count == 8 and note.startswith("steps cannot be divided into own work and waiting: ") and reason in note


@pytest.mark.parametrize("told", [{}, {"Group size": [8]}, {"Group size": 8, "correlation": "x"}])
def test_where_nothing_tells_whom_collectives_join_or_in_which_step_there_are_none(
    tmp_path: Path, told: dict[str, Any]
) -> None:
    recording = written(tmp_path, ProfiledJob(work=slow(5), told=told))
    assert (timelines(recording), recording.inputs.unused) == ({}, [])


def test_listed_groups_stand_for_what_kernels_do_not_tell(tmp_path: Path) -> None:
    assert len(timelines(written(tmp_path, ProfiledJob(work=even, told={}), **GROUPS))) == 8


def test_collectives_that_do_not_end_together_are_not_played(tmp_path: Path) -> None:
    """One trace is of another run, in which all ranks had more to do."""
    found = timelines(written(tmp_path / "here", ProfiledJob(work=even)))
    there = timelines(written(tmp_path / "there", ProfiledJob(work=lambda *at: 1.5 * even(*at))))
    (one,) = played(found | {5: there[5]})
    assert (one.grounds, one.severity, one.suspects) == ("not_played", "info", [])
    assert "does not end on all ranks together" in one.text


def test_ranks_that_were_not_profiled_alike_are_not_played(tmp_path: Path) -> None:
    """Following Python takes time itself."""
    traces = ProfiledJob(work=slow(5)).traces()
    traces[5]["traceEvents"] += [call("train.py(1): f", "python_function", 20_000 + at, 5) for at in range(100)]
    for rank, value in enumerate(traces):
        write_trace(tmp_path / f"{rank}.json", value)
    recording = read_recording(tmp_path)
    assert len(timelines(recording)) == 8
    assert suspects([one for one in run(recording).incidents if one.suspects]) == []


def nothing() -> Talk:
    return lambda moments: moments * 0


def collectives_of(kinds: list[str], every: int = 100) -> Collectives:
    found = Collectives()
    for at, kind in enumerate(kinds):
        found.launched(at, at * every + 10)
        found.ran(kind, at * every + 50, at * every + 60, {"correlation": at, "Group size": 4})
    return found


def test_of_many_collectives_the_same_ones_end_segments_on_all_ranks() -> None:
    found = collectives_of([ALL_REDUCE] * 200)
    steps = [Step(0, 10_000, 1), Step(10_000, 20_000, 2)]
    (one,) = segments_of(found, steps, [], nothing, 4, False)
    assert len(one.starts) == 2 * MOST_SEGMENTS
    assert one.starts[-1] + one.durations[-1] == pytest.approx(100 * 100, abs=2 * MOST_SEGMENTS)


def test_what_not_everybody_waits_in_ends_no_segment() -> None:
    found = collectives_of([ALL_REDUCE, "ncclDevKernel_Broadcast_RING_LL(x)"] * 4)
    steps = [Step(0, 400, 1), Step(400, 800, 2)]
    (one,) = segments_of(found, steps, [], nothing, 4, False)
    assert one.names == ["compute", "all-reduce"] * 2


@pytest.mark.parametrize(
    ("numbers", "told"), [([1, 2, 3], [2, 3]), ([1, 5, 6], [6]), ([1, 2**50, 2**50 + 1], [2**50 + 1])]
)
def test_between_steps_that_do_not_follow_each_other_lies_what_was_not_profiled(
    numbers: list[int], told: list[int]
) -> None:
    found = collectives_of([ALL_REDUCE] * 3)
    steps = [Step(100 * at, 100 * at + 100, number) for at, number in enumerate(numbers)]
    assert [one.step for one in segments_of(found, steps, [], nothing, 4, False)] == told


def test_a_step_is_told_by_where_the_device_ran_it_if_launches_are_not(tmp_path: Path) -> None:
    found = Collectives()
    for at in range(3):
        found.ran(ALL_REDUCE, at * 100 + 50, at * 100 + 60, {"Group size": 4})
    steps = [Step(100 * at - 70, 100 * at + 30, at) for at in range(3)]
    device = [Step(100 * at, 100 * at + 90, at) for at in range(3)]
    assert [one.step for one in segments_of(found, steps, device, nothing, 4, False)] == [1, 2]


def test_a_call_of_the_cpu_that_waits_for_others_is_no_own_work(tmp_path: Path) -> None:
    """The device of everybody else is idle while rank 6 reads its data; they wait on their CPUs."""
    job = ProfiledJob(work=even, idle=lambda step, rank: 9_000.0)
    for rank, value in enumerate(job.traces()):
        if rank != 6:
            value["traceEvents"] += [
                call("gloo:barrier", "user_annotation", event["ts"] + 3_000, 8_500)
                for event in value["traceEvents"]
                if event["name"].startswith("ProfilerStep#")
            ]
        write_trace(tmp_path / f"{rank}.json", value)
    found = run(read_recording(tmp_path)).incidents
    assert suspects([one for one in found if one.suspects]) == [[6]]
