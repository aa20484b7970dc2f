"""Real recorded jobs held against a healthy one of the same kind."""

from __future__ import annotations

from typing import Any

import pytest
from streams_support import SHARED, records

from producers.recording import read_recording
from rankwatch.diagnose import Diagnosis, run
from rankwatch.library import learn
from schemas.library import Library
from streams.library.file import text_of
from streams.library.known import Known

pytestmark = pytest.mark.skipif(
    not (SHARED / "healthy-1").is_dir(), reason="the recorded jobs of ../shared are not here"
)

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
