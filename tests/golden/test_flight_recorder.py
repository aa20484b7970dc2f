"""Real dumps of a faulty job, without anything beside them: who is named, and that no lost dump moves the blame."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from streams_support import SHARED, run, written_log

from producers.recording import read_recording
from schemas.results import Incident
from streams.report import latest, revisions

RUNS = SHARED.parent / "nvrx-flight-recorder/fr_traces"
FAULTY = {"gpu_error_2nd": [9, 14], "lock_gil_1st": [9, 14]}
pytestmark = pytest.mark.skipif(not RUNS.is_dir(), reason="the public dumps are not beside the project")


def incidents(folder: Path) -> list[Incident]:
    log = written_log(read_recording(folder))
    run(log)
    return latest(revisions(log))


def without(name: str, tmp_path: Path, *ranks: int) -> Path:
    folder = tmp_path / f"{name}-{'-'.join(map(str, ranks))}"
    shutil.copytree(RUNS / name, folder, ignore=shutil.ignore_patterns("fault_injection.log"))
    for rank in ranks:
        (folder / f"_dump_{rank}").unlink()
    return folder


@pytest.mark.parametrize("name", sorted(FAULTY))
def test_exactly_the_faulty_ranks_are_named(name: str, tmp_path: Path) -> None:
    (found,) = incidents(without(name, tmp_path))
    assert (found.symptom, found.verdict) == ("hang", "supported")
    assert [suspect.rank for suspect in found.suspects] == FAULTY[name]


@pytest.mark.parametrize("name", sorted(FAULTY))
def test_a_lost_dump_never_moves_the_blame(name: str, tmp_path: Path) -> None:
    for lost in (*((rank,) for rank in range(16)), (9, 14), (8, 9), (0, 8, 14)):
        for one in incidents(without(name, tmp_path, *lost)):
            assert {suspect.rank for suspect in one.suspects} <= set(FAULTY[name]) - set(lost), lost
