"""The report on the bundled recording, pinned. ``RANKWATCH_WRITE_GOLDENS=1`` writes it anew; read the difference."""

from __future__ import annotations

import json
import os
from pathlib import Path

from rankwatch.demo import bundled_recording
from rankwatch.diagnose import as_json, diagnose

GOLDEN = Path(__file__).parent / "bundled_report.json"


def test_the_report_on_the_bundled_recording_is_the_pinned_one() -> None:
    with bundled_recording() as folder:
        found = as_json(diagnose(folder))
    # Versions belong to the installation, and the run id follows from them.
    found.pop("versions")
    found.pop("run_id")
    if os.environ.get("RANKWATCH_WRITE_GOLDENS"):
        GOLDEN.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    assert found == json.loads(GOLDEN.read_text())
