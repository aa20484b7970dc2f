"""Who wrote what and when in a sample of each envelope. ``RANKWATCH_WRITE_GOLDENS=1`` writes what was read anew."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from producers.recording import read_recording
from schemas.events import Log

SAMPLES = Path(__file__).parent / "envelopes"


def read(folder: Path) -> list[dict[str, Any]]:
    """The log events of a folder in the order of their lines."""
    found = [
        (event.line, arrival.batch.identity, event)
        for arrival in read_recording(folder).arrivals
        for event in arrival.batch.events
        if isinstance(event, Log)
    ]
    return [
        {
            "line": line,
            "worker": identity.worker,
            "local_rank": identity.local_rank,
            "rank_reason": identity.rank_reason,
            "process_type": identity.process_type,
            "time": event.time,
            "time_source": event.time_source,
            "precision_ns": event.precision_ns,
            "stream": event.stream,
            "level": event.level,
            "text": event.text,
        }
        for line, identity, event in sorted(found, key=lambda one: one[0])
    ]


@pytest.mark.parametrize("name", sorted(path.stem for path in SAMPLES.glob("*.log")))
def test_a_sample_is_read_as_it_is_pinned(tmp_path: Path, name: str) -> None:
    shutil.copy(SAMPLES / f"{name}.log", tmp_path / "sample.txt")
    found = read(tmp_path)
    golden = SAMPLES / f"{name}.json"
    if os.environ.get("RANKWATCH_WRITE_GOLDENS"):
        golden.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    assert found == json.loads(golden.read_text())
