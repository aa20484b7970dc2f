"""Who wrote what and when in a small sample of each kind of log, as one folder each.

``RANKWATCH_WRITE_GOLDENS=1`` writes what was read anew.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from producers.recording import read_recording
from schemas.events import Log, Stack
from schemas.identity import Identity
from streams.lines.facts import facts_of

SAMPLES = Path(__file__).parent / "logs"


def shown(identity: Identity, event: Log | Stack) -> dict[str, Any]:
    """What matters of an event, without what is as it always is."""
    if isinstance(event, Stack):
        frames = [f"{frame.function}({frame.file}:{frame.line})" for frame in event.frames]
        said: dict[str, Any] = {"thread": event.thread, "active": event.active, "frames": frames}
        said["failure"] = event.failure
    else:
        said = {"stream": event.stream, "level": event.level, "text": event.text}
        said["predefined"] = facts_of(event.text).predefined
    row = {
        "job": identity.job,
        "worker": identity.worker,
        "local_rank": identity.local_rank,
        "rank_reason": identity.rank_reason,
        "process_type": event.process_type,
        "time": event.time,
        "time_source": event.time_source,
        "precision_ns": event.precision_ns,
        **said,
    }
    return {name: value for name, value in row.items() if value not in ("", None)}


def read(folder: Path) -> dict[str, Any]:
    """The events of a folder by file and line, and what was left aside."""
    recording = read_recording(folder)
    found = [
        (event.file if isinstance(event, Log) else "", event.line if isinstance(event, Log) else 0, identity, event)
        for arrival in recording.arrivals
        for identity in [arrival.batch.identity]
        for event in arrival.batch.events
        if isinstance(event, Log | Stack)
    ]
    files: dict[str, list[dict[str, Any]]] = {}
    for file, line, identity, event in sorted(found, key=lambda one: one[:2]):
        files.setdefault(file or "stacks", []).append(({"line": line} if line else {}) | shown(identity, event))
    unused = [f"{note.file}:{note.line}: {note.reason} ({note.count})" for note in recording.inputs.unused]
    return {"files": files, "unused": unused}


@pytest.mark.parametrize("name", sorted(path.name for path in SAMPLES.iterdir() if path.is_dir()))
def test_a_sample_is_read_as_it_is_pinned(name: str) -> None:
    found = read(SAMPLES / name)
    golden = SAMPLES / f"{name}.json"
    if os.environ.get("RANKWATCH_WRITE_GOLDENS"):
        golden.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    assert found == json.loads(golden.read_text())
