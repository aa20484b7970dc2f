"""A slow function planted into copies of a real trace is found by its name, and in the right rank."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kineto_support import ALL_REDUCE, call, idle_moments, inserted, of_rank, read_real, write_trace
from streams_support import SHARED

from producers.recording import read_recording
from rankwatch import cli
from rankwatch.diagnose import diagnose, run
from schemas.events import Profile
from schemas.results import Incident

REAL = SHARED.parent / "hta-kineto"
CONTROL = REAL / "trace_diff/control/control.json.gz"
LOADER = "train/data.py(41): augment"
DELAY_US = 20_000
ALIKE = {"pg_config": [{"pg_name": "0", "pg_desc": "default_pg", "pg_size": 6, "ranks": []}], "pg_count": 1}

pytestmark = pytest.mark.skipif(not CONTROL.is_file(), reason="the traces of ../shared/data/hta-kineto are not here")


@pytest.fixture(scope="module")
def real() -> dict[str, Any]:
    """Rank 3 of a job of eight: six steps of about 78 ms. What it sends to others is renamed to a collective."""
    found = read_real(CONTROL)
    for event in found["traceEvents"]:
        if "SendRecv" in event["name"]:
            event["name"] = ALL_REDUCE
    return found


def delayed(value: dict[str, Any], name: str, category: str) -> dict[str, Any]:
    """The trace with a call of 20 ms in each step at a moment at which the device was idle."""
    return inserted(value, {at: call(name, category, at, DELAY_US, thread=7) for at in idle_moments(value)})


def waiting_beside(value: dict[str, Any], kernel: str, kernel_us: float) -> dict[str, Any]:
    """The trace with a shorter kernel there, and waiting for the rest of the time."""
    calls = {}
    for at in idle_moments(value):
        calls[at] = call(kernel, "kernel", at, kernel_us, thread=7)
        calls[at + 1] = call(ALL_REDUCE, "kernel", at + 1, DELAY_US - kernel_us, thread=7)
    return inserted(value, calls)


def write_all(folder: Path, slow: dict[str, Any], waiting: dict[str, Any]) -> None:
    """Traces of six ranks that all meet in all collectives; rank 4 is slow."""
    for rank in range(6):
        value = of_rank(slow if rank == 4 else waiting, rank, 6)
        value["distributedInfo"] |= ALIKE
        write_trace(folder / f"{rank:x}.json", value)


def only(folder: Path) -> Incident:
    (found,) = diagnose(folder).incidents
    return found


@pytest.mark.parametrize(
    ("name", "category", "words", "area", "gain"),
    [
        (LOADER, "python_function", f"function '{LOADER}' of rank 4", "data", "81%"),
        ("sm80_slow_gemm_kernel", "kernel", "GPU kernel 'sm80_slow_gemm_kernel' of rank 4", "compute", "79%"),
    ],
)
def test_a_slow_function_of_one_rank_is_found_by_name_and_the_rank_is_named(
    tmp_path: Path, real: dict[str, Any], name: str, category: str, words: str, area: str, gain: str
) -> None:
    # Others run the kernel, too; what the host does quickly is not listed.
    on_device = category == "kernel"
    waiting = waiting_beside(real, name, 2_000) if on_device else delayed(real, ALL_REDUCE, "kernel")
    write_all(tmp_path, delayed(real, name, category), waiting)
    found = only(tmp_path)
    assert (found.symptom, found.verdict, found.area) == ("slowdown", "supported", area)
    assert [one.rank for one in found.suspects] == [4]
    (evidence,) = [one.text for one in found.evidence if one.detector == "profile_outlier"]
    assert evidence.startswith(f"{words} holds 20.00 ms of a step")
    # Collectives run beside kernels in these steps.
    (played,) = [one.text for one in found.evidence if one.detector == "what_if"]
    assert f"over 5 steps); rank 4 like its peers would win back {gain} of that" in played


def test_a_kernel_that_nobody_else_runs_is_told_and_its_rank_is_not_named(tmp_path: Path, real: dict[str, Any]) -> None:
    """Only that rank has the head of the model: nothing tells the stages, as no sends are recorded."""
    write_all(tmp_path, delayed(real, "cross_entropy", "kernel"), delayed(real, ALL_REDUCE, "kernel"))
    found = only(tmp_path)
    assert (found.verdict, found.suspects) == ("ambiguous", [])
    assert "execute other things" in found.reason
    assert any("GPU kernel 'cross_entropy' of rank 4" in one.text for one in found.evidence)


def test_without_known_stages_it_is_found_by_name_and_nobody_is_named(tmp_path: Path, real: dict[str, Any]) -> None:
    slow, waiting = delayed(real, LOADER, "python_function"), delayed(real, ALL_REDUCE, "kernel")
    for rank in (3, 4):
        write_trace(tmp_path / f"{rank}.json", of_rank(slow if rank == 4 else waiting, rank, 6))
    found = only(tmp_path)
    assert (found.verdict, found.suspects) == ("ambiguous", [])
    assert f"function '{LOADER}' of rank 4" in found.evidence[0].text


def test_a_slow_function_of_an_abnormal_window_is_found_by_name(tmp_path: Path, real: dict[str, Any]) -> None:
    write_trace(tmp_path / "normal.json", real)
    later = [event | {"ts": event["ts"] + 300e6} for event in delayed(real, LOADER, "python_function")["traceEvents"]]
    write_trace(tmp_path / "abnormal.json", real | {"traceEvents": later})
    found = only(tmp_path)
    assert (found.verdict, found.suspects) == ("ambiguous", [])
    (evidence,) = [one.text for one in found.evidence if one.layer == "profile"]
    assert f"function '{LOADER}' of rank 3 holds 20.00 ms of a step" in evidence


@pytest.mark.parametrize(
    ("folder", "places", "undivided"),
    [
        ("trace_diff", [(3, 8, 6), (1, 2, 6)], 2),
        ("trace_filter", [(0, 128, 2), (1, 128, 2)], 2),
        ("nccl_parser_config", [(0, 2, 3)], 0),
    ],
)
def test_real_traces_are_read_whole_and_two_ranks_of_different_work_are_no_incident(
    folder: str, places: list[tuple[int, int, int]], undivided: int
) -> None:
    recording = read_recording(REAL / folder)
    # All is used, though steps of ranks that send to each other cannot be played.
    assert [one.count for one in recording.inputs.unused if "ranks send to each other" in one.reason] == [
        *([undivided] if undivided else [])
    ]
    assert len(recording.inputs.unused) == (undivided > 0)
    sketches = {}
    for arrival in recording.arrivals:
        found = [event for event in arrival.batch.events if isinstance(event, Profile)]
        if found:
            sketches[arrival.batch.identity.rank] = found
    assert [(rank, own[0].world_size, own[0].steps) for rank, own in sketches.items()] == places
    for own in sketches.values():
        assert 0.5 < sum(one.share for one in own) <= 1.001
        assert "collective" in {one.kind for one in own}
    assert run(recording).incidents == []


def test_two_runs_are_contrasted_and_what_differs_is_listed_without_an_incident(
    tmp_path: Path, real: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    write_trace(tmp_path / "healthy/trace.json", real)
    write_trace(tmp_path / "slow/trace.json", delayed(real, LOADER, "python_function"))
    arguments = ["diagnose", str(tmp_path / "slow"), "--baseline", str(tmp_path / "healthy"), "--clickhouse", "none"]
    assert cli.run(arguments) == 0
    told = capsys.readouterr().out
    assert "no incident" in told and "profiles also show, as information" in told
    assert f"new, or small in every healthy job: function '{LOADER}' 20.00 ms" in told
    assert "(unlike healthy jobs)" in told
    assert cli.run([*arguments, "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    (found,) = report["differences"]
    assert (found["detector"], found["layer"], report["incidents"]) == ("profile_contrast", "profile", [])
    assert LOADER in found["text"]
    assert cli.run([*arguments, "--format", "html"]) == 0
    assert "Profiles also show, as information" in capsys.readouterr().out
