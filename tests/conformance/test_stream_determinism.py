"""The same files give the same report, byte for byte, wherever they lie and whoever asks."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from streams_support import SHARED

from rankwatch.demo import bundled_recording
from rankwatch.diagnose import as_json, diagnose

ASK = "import json, pathlib, sys; from rankwatch.diagnose import as_json, diagnose; "
ASK += "print(json.dumps(as_json(diagnose(pathlib.Path(sys.argv[1])))))"


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with bundled_recording() as place:
        yield place


def report(place: Path, partitions: int = 2) -> str:
    return json.dumps(as_json(diagnose(place, partitions=partitions)))


def test_a_report_is_the_same_twice(folder: Path) -> None:
    first = report(folder)
    assert json.loads(first)["incidents"]
    assert report(folder) == first


def test_a_report_does_not_depend_on_the_folder_and_its_name(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "another name" / "ä")
    assert report(tmp_path / "another name" / "ä") == report(folder)


def test_a_report_does_not_depend_on_the_age_of_files(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    for number, path in enumerate(sorted(copy.rglob("*"), reverse=True)):
        os.utime(path, (1_000_000_000 + number, 1_000_000_000 + number))
    assert report(copy) == report(folder)


@pytest.mark.parametrize("partitions", [1, 3, 8])
def test_a_report_does_not_depend_on_the_number_of_partitions(folder: Path, partitions: int) -> None:
    assert report(folder, partitions) == report(folder)


@pytest.mark.parametrize("seed", ["1", "4711"])
def test_a_report_does_not_depend_on_the_process(folder: Path, seed: str) -> None:
    environment = {**os.environ, "PYTHONHASHSEED": seed, "TZ": "Asia/Kathmandu", "LC_ALL": "C"}
    asked = subprocess.run(
        [sys.executable, "-c", ASK, str(folder)], env=environment, capture_output=True, text=True, check=True
    )
    assert asked.stdout.strip() == report(folder)


@pytest.mark.parametrize("name", ["restart", "rl-healthy", "pp-hang"])
def test_a_report_of_a_recorded_job_does_not_depend_on_the_process(name: str) -> None:
    if not (SHARED / name).is_dir():
        pytest.skip("the recorded jobs are not there")
    environment = {**os.environ, "PYTHONHASHSEED": "99"}
    asked = subprocess.run(
        [sys.executable, "-c", ASK, str(SHARED / name)], env=environment, capture_output=True, text=True, check=True
    )
    assert asked.stdout.strip() == report(SHARED / name)
