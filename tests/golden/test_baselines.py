"""Real recorded jobs held against a healthy one of the same kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from streams_support import SHARED, records

from producers.recording import read_recording
from rankwatch.diagnose import Diagnosis, run
from rankwatch.library import learn
from schemas.library import Library
from streams.compared import comparisons
from streams.library.file import read_library, text_of
from streams.library.known import Known
from streams.library.record import checked

pytestmark = pytest.mark.skipif(
    not (SHARED / "healthy-1").is_dir(), reason="the recorded jobs of ../shared are not here"
)

OLD = Path(__file__).parent / "library_of_before.json"
"""Learned of a healthy job before libraries knew what their jobs are."""
AIM = 0.95
"""Two jobs of the same kind share this part of their templates."""


@pytest.fixture(scope="module")
def healthy() -> Library:
    return learn([SHARED / "healthy-1"], "baseline")


def held(job: str, library: Library | None) -> Diagnosis:
    return run(read_recording(SHARED / job), library=library)


def novelties(found: Diagnosis) -> list[Any]:
    return [one for one in records(found.log, "anomalies") if one.detector == "log_novelty"]


def test_another_healthy_job_of_the_kind_shares_its_templates_and_shows_nothing(healthy: Library) -> None:
    both = learn([SHARED / "healthy-2", SHARED / "healthy-1"], "healthy")
    shared = sum(len(template.printed) == 2 for template in both.templates)
    assert shared >= AIM * len(both.templates) > 0
    assert text_of(both) == text_of(learn([SHARED / "healthy-1", SHARED / "healthy-2"], "healthy"))
    found = held("healthy-2", healthy)
    assert (found.incidents, novelties(found)) == ([], [])


@pytest.mark.parametrize(
    ("job", "ranks", "text"),
    [
        ("exception", "6", "ValueError: expected sequence of length"),
        ("oom", "4", "DefaultCPUAllocator: can't allocate memory"),
        ("config-error", "0-7", "KeyError: 'model.tensor_model_parallel_size'"),
    ],
)
def test_an_incident_shows_what_the_healthy_job_does_not_print(
    job: str, ranks: str, text: str, healthy: Library
) -> None:
    with_, without = held(job, healthy), held(job, None)
    (incident,) = with_.incidents
    shown = [one for one in incident.templates if text in one.text]
    assert [(one.axis, one.ranks) for one in shown] == [("cross-job", ranks)]
    assert incident.library == Known(healthy).label == with_.versions["library"]
    assert [(one.id, one.verdict, one.suspects) for one in with_.incidents] == [
        (one.id, one.verdict, one.suspects) for one in without.incidents
    ]
    assert with_.run_id != without.run_id


def test_no_recorded_job_of_the_kind_lacks_what_the_healthy_one_prints(healthy: Library) -> None:
    for job in ("drift", "straggler", "nan", "kill"):
        found = held(job, healthy)
        assert [one.text for one in novelties(found) if one.grounds == "absent_templates"] == [], job


def test_a_library_of_before_is_the_same_library_and_judges_as_it_did(healthy: Library) -> None:
    old = checked(read_library(OLD))
    assert (text_of(old), old.version) == (OLD.read_text(), "40c275b9e54d31bd")
    assert [one.id for one in old.templates] == [one.id for one in healthy.templates]
    with_old, with_new = held("exception", old), held("exception", healthy)
    assert [one.templates for one in with_old.incidents] == [one.templates for one in with_new.incidents]
    (beside,) = comparisons(with_old.log)
    assert (beside.verdict, beside.jobs[0].reason) == ("ambiguous", "the library does not describe it")


def test_recorded_jobs_beside_a_healthy_one_show_what_they_are_known_for(healthy: Library) -> None:
    # One slow rank makes all steps of its job longer than those of a healthy one.
    longer = {("like_steps", "info")}
    for job, symptoms, unlike in (
        ("nan", ["numerics"], set()),
        ("straggler", ["slowdown"], longer),
        ("healthy-2", [], set()),
    ):
        found = held(job, healthy)
        (beside,) = comparisons(found.log)
        assert (beside.symptoms, [one.baseline for one in beside.jobs]) == (symptoms, [True]), job
        told = [one for one in records(found.log, "anomalies") if one.detector.startswith("like_")]
        assert {(one.detector, one.severity) for one in told} == unlike, job


def test_a_library_of_ill_and_healthy_jobs_tells_them_apart() -> None:
    library = learn([SHARED / "healthy-2", SHARED / "nan", SHARED / "straggler"], "mixed", even_unhealthy=True)
    again = learn([SHARED / "straggler", SHARED / "healthy-2", SHARED / "nan"], "mixed", even_unhealthy=True)
    assert text_of(library) == text_of(again)
    assert sorted(symptom for job in library.jobs for symptom in job.symptoms) == ["numerics", "slowdown"]
    (beside,) = comparisons(held("healthy-1", library).log)
    (baseline,) = [one for one in beside.jobs if one.baseline]
    assert baseline.symptoms == [] and beside.symptoms == []
