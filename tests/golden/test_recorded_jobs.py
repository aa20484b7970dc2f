"""Real recorded jobs with one known fault each: the right name or none, in time, and silence before.

The judge is the scorer's own; every job is copied under a neutral name, without its truth.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path
from types import ModuleType

import pytest

from producers.recording import read_recording
from rankwatch.diagnose import as_json, run
from streams.config import StreamConfig

SHARED = Path(__file__).resolve().parents[3] / "shared"
RECORDED = SHARED / "data" / "recorded"
SECOND = 1_000_000_000
JOBS = sorted(path.name for path in RECORDED.iterdir() if (path / "truth.json").exists()) if RECORDED.is_dir() else []

needs_recordings = pytest.mark.skipif(not JOBS, reason="the recorded jobs of ../shared are not here")


@pytest.fixture(scope="module")
def scorer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("score_recorded", SHARED / "tools" / "score_recorded.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def report(job: str, place: Path, until: float | None = None) -> dict[str, object]:
    hidden = shutil.ignore_patterns("truth.json", "fault_injection.log")
    shutil.copytree(RECORDED / job, place / "job", ignore=hidden)
    at = None if until is None else int(until * SECOND)
    return as_json(run(read_recording(place / "job"), until=at))


def truth_of(job: str) -> dict[str, object]:
    found: dict[str, object] = json.loads((RECORDED / job / "truth.json").read_text())
    return found


@needs_recordings
@pytest.mark.parametrize("job", JOBS)
def test_the_whole_recording_is_judged_right(job: str, tmp_path: Path, scorer: ModuleType) -> None:
    verdict, reasons = scorer.judge(truth_of(job), report(job, tmp_path))
    assert verdict == "right", reasons


@needs_recordings
@pytest.mark.parametrize("job", JOBS)
def test_the_answer_is_there_in_time(job: str, tmp_path: Path, scorer: ModuleType) -> None:
    truth = truth_of(job)
    at = truth.get("fault_time")
    if at is None:
        pytest.skip("nothing happens in this job, or at its very start")
    assert isinstance(at, float)
    allowed = 48 if truth["fault"] in scorer.LATE else 24
    verdict, reasons = scorer.judge(truth, report(job, tmp_path, at + allowed))
    assert verdict == "right", reasons


@needs_recordings
@pytest.mark.parametrize("job", JOBS)
def test_there_is_silence_before_the_fault(job: str, tmp_path: Path, scorer: ModuleType) -> None:
    at = truth_of(job).get("fault_time")
    if at is None:
        pytest.skip("nothing happens in this job, or at its very start")
    assert isinstance(at, float)
    assert scorer.paging(report(job, tmp_path, at - 3)) == []


@needs_recordings
@pytest.mark.parametrize("window_s", [7.0, 9.0, 13.0])
@pytest.mark.parametrize("job", JOBS)
def test_the_verdict_does_not_hang_on_where_windows_are_cut(job: str, window_s: float, scorer: ModuleType) -> None:
    found = as_json(run(read_recording(RECORDED / job), config=StreamConfig(window_s=window_s)))
    verdict, reasons = scorer.judge(truth_of(job), found)
    assert verdict == "right", reasons
