"""The bundled recording of a real faulty job, streamed through the whole pipeline."""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path

QUERIES = (
    "SELECT symptom, verdict, suspect_ranks, suspect_nodes, victims, onset FROM incidents_latest "
    "WHERE run_id = '{run_id}'",
    "SELECT rank, max(iteration) AS iteration, max(ts) AS last FROM logs WHERE run_id = '{run_id}' "
    "GROUP BY rank ORDER BY rank",
)
TABLES = ("logs", "stacks", "metrics", "collectives", "windows", "templates", "anomalies", "merged_stacks", "incidents")
RECORDING = "dataloader-hang.tar.xz"


@contextmanager
def bundled_recording() -> Iterator[Path]:
    """A folder with the bundled recording, for as long as the context lasts."""
    with (
        as_file(files("rankwatch") / "recordings" / RECORDING) as packed,
        tempfile.TemporaryDirectory(prefix="rankwatch-") as place,
        tarfile.open(packed) as archive,
    ):
        archive.extractall(place, filter="data")
        yield Path(place)
