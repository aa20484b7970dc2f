"""Real op timings with the analysis that their authors published: the same figures, the right worker, or nobody."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from producers.recording import Recording, read_recording
from rankwatch.diagnose import as_json, run
from schemas.events import Timeline
from streams.whatif import Player, WhatIf, what_if

TRACES = Path(__file__).resolve().parents[3] / "shared" / "data" / "bytedance-stragglers"
NAMES = sorted(path.stem.removeprefix("trace-") for path in TRACES.glob("trace-*.parquet"))

pytestmark = pytest.mark.skipif(not NAMES, reason="the op timings of ../shared are not here")

CLOSE = 0.002
"""Far less than the hundredth that would do."""


@pytest.fixture(scope="module", params=NAMES)
def trace(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Recording]:
    """A folder that holds a trace and its layout, and nothing else."""
    folder = tmp_path_factory.mktemp("trace")
    for file in (f"trace-{request.param}.parquet", f"meta-{request.param}.yaml"):
        shutil.copy(TRACES / file, folder)
    return request.param, read_recording(folder)


def published(kind: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((TRACES / f"{kind}-{name}.json").read_text())
    return found


def played(recording: Recording) -> WhatIf:
    steps: dict[int, dict[tuple[int, int], Timeline]] = {}
    for arrival in recording.arrivals:
        at = arrival.batch.identity.coordinates
        for event in arrival.batch.events:
            if isinstance(event, Timeline) and event.iteration is not None:
                steps.setdefault(event.iteration, {})[at["dp"], at["pp"]] = event  # type: ignore[index]
    return what_if(Player(steps))


def test_the_published_figures_are_met(trace: tuple[str, Recording], capsys: pytest.CaptureFixture[str]) -> None:
    name, recording = trace
    result, told = played(recording), published("result", name)
    figures = {
        "S": (result.slowdown, told["blocking_slowdown"]),
        "launch slowdown": (result.launch_slowdown, told["launch_slowdown"]),
        "T": (result.played_s, published("mw", name)["tori"]),
        "T ideal": (result.ideal_s, published("mw", name)["tideal"]),
        "M_W": (result.m_w, published("mw", name)["Mw"]),
        "M_S": (result.m_s, published("ms", name)["Ms"]),
    }
    for kind, own in (("dp_rank", result.of_replica), ("stage", result.of_stage)):
        for place, value in enumerate(own):
            figures[f"{kind} {place}"] = value, told[f"blocking_decompose_by_{kind}"][str(place)]
    for operation, value in result.of_type.items():
        figures[operation] = value, told["blocking_decompose_by_optype"][operation]
    with capsys.disabled():
        shown = ", ".join(f"{key} {ours:.4f} ({theirs:.4f})" for key, (ours, theirs) in list(figures.items())[:6])
        print(f"\n{name}, published in brackets: {shown}")
    for key, (ours, theirs) in figures.items():
        assert ours == pytest.approx(theirs, rel=CLOSE, abs=CLOSE / 10), key


@pytest.mark.parametrize("columns", [["duration"], ["start_ts", "duration"]])
def test_rows_without_a_time_here_and_there_change_no_figure_by_a_hundredth(tmp_path: Path, columns: list[str]) -> None:
    table = parquet.read_table(TRACES / "trace-AR.parquet")
    bad = np.arange(len(table)) % 1_000 == 0
    for name in columns:
        values = np.where(bad, np.nan, table[name].to_numpy())
        table = table.set_column(table.schema.names.index(name), name, pa.array(values, pa.float32()))
    parquet.write_table(table, tmp_path / "trace-AR.parquet")
    shutil.copy(TRACES / "meta-AR.yaml", tmp_path)
    recording = read_recording(tmp_path)
    assert [one.count for one in recording.inputs.unused] == [bad.sum()]
    result, told = played(recording), published("result", "AR")
    assert (len(result.steps), result.untimed) == (len(played(whole(tmp_path / "whole")).steps), bad.sum())
    assert result.slowdown == pytest.approx(told["blocking_slowdown"], rel=0.01)
    assert result.m_w == pytest.approx(published("mw", "AR")["Mw"], rel=0.01)
    (incident,) = run(recording).incidents
    assert [one.rank for one in incident.suspects] == [0]
    assert f"{bad.sum()} operations without a time" in incident.evidence[0].text


def whole(folder: Path) -> Recording:
    folder.mkdir()
    for file in ("trace-AR.parquet", "meta-AR.yaml"):
        shutil.copy(TRACES / file, folder)
    return read_recording(folder)


def test_only_the_slow_worker_is_named_and_else_nobody(trace: tuple[str, Recording]) -> None:
    name, recording = trace
    report = as_json(run(recording))
    assert (report["job"]["id"], report["inputs"]["unused"]) == (name, [])
    (incident,) = report["incidents"]
    named = [(one["rank"], one["coordinates"]) for one in incident["suspects"]]
    (evidence,) = incident["evidence"]
    assert (incident["symptom"], incident["verdict"], evidence["layer"]) == ("slowdown", "supported", "profile")
    if name == "AR":
        assert named == [(0, {"dp": 0, "pp": 0})]
        assert (incident["area"], incident["victims"]["ranks"]) == ("compute", ",".join(map(str, range(4, 64, 4))))
        assert "rank 0 (dp 0, pp 0" in evidence["text"] and "would win back 100%" in evidence["text"]
    elif name == "SE":
        assert (named, incident["area"], incident["scope"]["kind"]) == ([], "workload", "job")
        assert "sequence lengths differ" in evidence["text"]
    else:
        assert (named, incident["area"]) == ([], "workload")
        assert "stage imbalance" in evidence["text"]
