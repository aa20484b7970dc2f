"""Whose which value is and when it was taken in a small sample of each kind of metrics, as one folder each.

``RANKWATCH_WRITE_GOLDENS=1`` writes what was read anew.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from producers.recording import read_recording
from schemas.events import Metric
from schemas.identity import Identity

SAMPLES = Path(__file__).parent / "metrics"


def shown(identity: Identity, event: Metric) -> dict[str, Any]:
    """What matters of an event, without what is as it always is."""
    row = {
        "worker": identity.worker,
        "device": event.device,
        "name": event.name,
        "value": event.nonfinite or event.value,
        "unit": event.unit,
        "counter": event.counter or None,
        "time": event.time,
        "time_source": None if event.time_source == "captured" else event.time_source,
        "precision_ns": event.precision_ns or None,
    }
    return {name: value for name, value in row.items() if value not in ("", None)}


def read(folder: Path) -> dict[str, Any]:
    """The metrics of a folder in the order of the log, and what was left aside."""
    recording = read_recording(folder)
    events = [
        shown(arrival.batch.identity, event)
        for arrival in recording.arrivals
        for event in arrival.batch.events
        if isinstance(event, Metric)
    ]
    unused = [f"{note.file}:{note.line}: {note.reason} ({note.count})" for note in recording.inputs.unused]
    return {"metrics": events, "unused": unused}


@pytest.mark.parametrize("name", sorted(path.name for path in SAMPLES.iterdir() if path.is_dir()))
def test_a_sample_is_read_as_it_is_pinned(name: str) -> None:
    found = read(SAMPLES / name)
    golden = SAMPLES / f"{name}.json"
    if os.environ.get("RANKWATCH_WRITE_GOLDENS"):
        rows = [json.dumps(row, ensure_ascii=False) for row in found["metrics"]]
        unused = json.dumps(found["unused"], ensure_ascii=False, indent=1)
        golden.write_text('{"metrics": [\n' + ",\n".join(rows) + '\n], "unused": ' + unused + "}\n")
    assert found == json.loads(golden.read_text())
