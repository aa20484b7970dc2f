"""Steps, phases and rates of lines against healthy jobs that are like a job."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from streams_support import Script, described, library_of, records, run, starting, worker, written_log

from schemas.jobs import JobDescription
from schemas.library import HealthyJob, JobPace, Library
from schemas.results import Anomaly, Incident
from streams.library.known import Known
from streams.library.likeness import DECIDES_STEP
from streams.library.likeness import described as read
from streams.library.pace import StepPace
from streams.library.rates import ITERATIONS, LEAST_SAMPLES, MOST_NAMES, Lines, RatePace
from streams.library.slower import slower, why_not

BIG = JobDescription(
    framework="megatron",
    world_size=8,
    layout={"tp": 2, "dp": 4},
    model={"name": "gpt-7b"},
    flags={"fp8": "false"},
    hyperparameters={"lr": "0.1"},
)


def job(step_s: float = 1.0, spread_s: float = 0.01, windows: int = 30, **changes: Any) -> HealthyJob:
    pace = JobPace(
        step_s=step_s, spread_s=spread_s, windows=windows, steps=9 * windows, batch=changes.pop("batch", 0.0)
    )
    values: dict[str, Any] = {"id": f"j{step_s}", "world_size": 8, "description": BIG}
    return HealthyJob(**{**values, **changes}, job="j", ranks={"train": 8}, pace=pace)


def pace(*early: float, recent: float | None = None, counted: int = 60, batch: float | None = None) -> StepPace:
    seconds = list(early) * (6 if len(early) == 1 else 1)
    return StepPace(early=seconds, recent=[recent or seconds[-1]] * 3, counted=counted, batch=batch)


OTHER_BATCH = JobDescription(framework="megatron", hyperparameters={"lr": "0.1", "global_batch_size": "512"})
TWICE = msgspec.structs.replace(BIG, world_size=16)
OTHER_FLAGS = JobDescription(framework="megatron", flags={"fp8": "true"})


@pytest.mark.parametrize(
    ("name", "here", "jobs", "expected"),
    [
        ("as fast", pace(1.0), [job()], None),
        ("9 % longer", pace(1.09), [job(), job(0.9)], None),
        ("12 % longer than one: perhaps jobs differ so", pace(1.12), [job()], (False, True)),
        ("12 % longer than the slowest of two", pace(1.12), [job(), job(0.9)], (True, True)),
        ("30 % longer than one", pace(1.3), [job()], (True, True)),
        ("no longer than the slower of two", pace(1.3), [job(), job(1.25)], None),
        ("within what steps differ", pace(1.3), [job(spread_s=0.1)], None),
        ("too few windows", pace(1.3, 1.3), [job()], None),
        ("too few steps", pace(1.3, counted=9), [job()], None),
        ("slow windows among fast ones", pace(1.0, 1.3, 1.3, 1.3, 1.0, 1.3), [job()], None),
        ("no longer slow", pace(1.3, recent=1.0), [job()], None),
        ("became slow later", pace(1.0, recent=2.0), [job()], None),
        ("faster", pace(0.5), [job()], None),
        ("the like job is hardly known", pace(1.3), [job(windows=2)], None),
        ("other ranks", pace(1.3), [job(world_size=16)], None),
        ("other ranks by what describes it", pace(1.3), [job(world_size=None, description=TWICE)], None),
        ("as many by what describes it", pace(1.3), [job(world_size=None)], (True, True)),
        ("ranks not known", pace(1.3), [job(world_size=None, description=OTHER_FLAGS)], None),
        ("another batch", pace(1.3, batch=256.0), [job(batch=512.0)], None),
        ("batches that changed", pace(1.3, batch=0.0), [job(batch=512.0)], None),
        ("the batch of one is told", pace(1.3, batch=256.0), [job()], (True, True)),
        ("flags differ", pace(1.3), [job(description=OTHER_FLAGS)], (True, False)),
        ("one of two differs", pace(1.3), [job(), job(0.9, description=OTHER_FLAGS)], (True, False)),
        ("nothing is known of it", pace(1.3), [job(description=None)], (True, False)),
    ],
)
def test_who_is_slower(name: str, here: StepPace, jobs: list[HealthyJob], expected: tuple[bool, bool] | None) -> None:
    found = slower(here, read(BIG), 8, jobs)
    assert (None if found is None else (found.clear, found.alike)) == expected, name
    assert slower(here, read(BIG), 8, jobs[::-1]) == found or len(jobs) > 1


@pytest.mark.parametrize(
    ("early", "held"), [((1.3,), (6, 6)), ((1.3, 1.3, 1.0, 1.3, 1.3, 1.3), (5, 6)), ((1.0, 1.3, 1.3, 1.3, 1.3), (4, 5))]
)
def test_in_how_many_of_the_first_windows_it_was_so_is_known(early: tuple[float, ...], held: tuple[int, int]) -> None:
    found = slower(pace(*early), read(BIG), 8, [job()])
    assert found is not None and (found.held, found.early) == held


def test_of_a_job_that_became_slow_it_is_not_said_that_it_was_so_since_it_began(healthy: Library) -> None:
    script = described("job", steps=19)
    script.alive(4, 19, 170)
    for step in range(20, 90):
        line = f"iteration {step:8d}/ 500 | elapsed time per iteration (ms): 2000.{step % 10} | lm loss: 2.0E+00 |"
        script.log(worker("job", 0), 2 * step - 19.4, line, step)
    found, _ = held(script, healthy)
    texts = [one.text.partition(" windows behind the warm-up, ")[0] for one in found if one.detector == "like_steps"]
    assert (texts[0], texts[-1]) == ("a step takes 2 s in 4 of the first 5", "a step takes 2 s in 5 of the first 6")


def test_batches_that_the_descriptions_tell_must_be_the_same() -> None:
    here = read(JobDescription(hyperparameters={"global_batch_size": "256"}))
    assert why_not(pace(1.0), here, 8, job(description=OTHER_BATCH)) == "its global_batch_size is another"
    assert why_not(pace(1.0), here, 8, job()) == ""


def test_what_decides_a_step_and_is_not_known_of_both_is_said() -> None:
    found = slower(pace(1.3), read(JobDescription(framework="megatron")), 8, [job()])
    assert found is not None and not found.alike
    assert found.unlike == f"{', '.join(DECIDES_STEP[1:3])}, hyperparameters, flags not known of both"


@pytest.fixture(scope="module")
def healthy() -> Library:
    return library_of(described("fine"), described("well", steps=70))


def held(script: Script, library: Library) -> tuple[list[Anomaly], list[Incident]]:
    """Findings of this kind, and the latest revisions of incidents."""
    log = written_log(script.recording)
    run(log, known=Known(library))
    latest = {one.id: one for one in sorted(records(log, "incidents"), key=lambda one: one.revision)}
    found = [one for one in records(log, "anomalies") if one.detector.startswith("like_")]
    return found, list(latest.values())


def test_a_job_that_was_always_slow_warns_and_names_nobody(healthy: Library) -> None:
    found, (incident,) = held(described("job", step_s=2, steps=70), healthy)
    assert {one.grounds for one in found} == {"slower_than_alike"} and len(found) < 6
    assert (incident.symptom, incident.severity, incident.verdict) == ("slowdown", "warning", "supported")
    assert (incident.suspects, incident.victims.ranks, incident.scope.kind) == ([], "", "job")
    assert (
        incident.evidence[0].text.startswith("a step takes 2 s in all of the first ")
        and "100% longer" in incident.evidence[0].text
    )
    assert incident.onset < min(one.start for one in found)


def test_it_is_ambiguous_where_the_jobs_differ_in_what_decides_a_step(healthy: Library) -> None:
    script = described("job", step_s=2, steps=70, flags={"fp8": "true", "bf16": "true"})
    found, (incident,) = held(script, healthy)
    assert {one.grounds for one in found} == {"slower_than_like"}
    assert (incident.severity, incident.verdict, incident.suspects) == ("warning", "ambiguous", [])
    assert incident.evidence[0].text.endswith("; flags differs")


@pytest.mark.parametrize(
    ("name", "script"),
    [
        ("as fast", described("job")),
        ("other ranks", described("job", ranks=8, step_s=2)),
        ("another job", described("job", framework="verl", model="bert", step_s=2)),
        ("too short to warn", described("job", step_s=2, steps=30)),
    ],
)
def test_no_incident(name: str, script: Script, healthy: Library) -> None:
    assert held(script, healthy)[1] == [], name


def test_lines_that_come_more_often_are_told_once_and_open_nothing(healthy: Library) -> None:
    found, incidents = held(described("job", lines=3), healthy)
    (one,) = found
    assert (incidents, one.detector, one.grounds, one.suspects) == ([], "like_rates", "more_lines", [])
    assert one.text == (
        "lines come more often than in any like healthy job: 'packed <NUM> sequences' 3 times a rank and iteration (1)"
    )


def test_a_start_up_that_lasts_is_told_while_it_lasts(healthy: Library) -> None:
    found, incidents = held(starting("job"), healthy)
    (one,) = [one for one in found if one.detector == "like_phases"]
    assert (one.grounds, one.suspects) == ("long_start_up", [])
    assert one.text.startswith("start-up takes ") and "at most in like healthy jobs" in one.text
    assert [one.symptom for one in incidents if one.symptom == "slowdown"] == []


def test_a_rate_rests_on_some_iterations_of_nearly_all_ranks() -> None:
    taken = RatePace()
    for reached in range(1, 60):
        told = {"all": Lines(2 * 8, 8), "first": Lines(5, 1), "late": Lines(8 if reached > 40 else 0, 8)}
        taken.take(told, 8, reached)
    assert taken.samples == 58 // ITERATIONS >= LEAST_SAMPLES
    assert taken.regular() == {"all": 2.0}
    assert taken.rates["late"][0] == 0 and taken.rates["late"][-1] == 1
    assert RatePace().regular() == {}


def test_rates_begin_anew_with_the_iterations_and_are_bounded() -> None:
    taken = RatePace()
    for reached in (1, 9, 3, 4, 20):
        taken.take({f"t{n}": Lines(8, 8) for n in range(MOST_NAMES + 50)}, 8, reached)
    assert taken.samples == 2 and len(taken.rates) == MOST_NAMES
    assert not taken.take({}, 8, None)
