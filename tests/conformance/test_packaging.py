"""The wheel holds the five packages with their data, and nobody else claims their names."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import subprocess
import sys
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("rankwatch", "schemas", "producers", "streams", "sinks")
DATA = (
    "*/py.typed",
    "schemas/json/*.json",
    "schemas/topics.json",
    "schemas/examples/*/*.json",
    "sinks/migrations/*.sql",
)
NEVER_EMPTY = DATA[:4]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def metadata(wheel: Path, names: set[str]) -> Message:
    (path,) = (name for name in names if name.endswith(".dist-info/METADATA"))
    with zipfile.ZipFile(wheel) as archive:
        return Parser().parsestr(archive.read(path).decode())


def in_packages(pattern: str) -> set[str]:
    found = (path.relative_to(ROOT) for path in ROOT.glob(pattern))
    return {path.as_posix() for path in found if path.parts[0] in PACKAGES}


def test_the_wheel_holds_the_five_packages_and_its_metadata_only(names: set[str]) -> None:
    tops = {name.partition("/")[0] for name in names}
    information = {top for top in tops if top.endswith(".dist-info")}
    assert len(information) == 1
    assert tops - information == set(PACKAGES)


def test_every_module_is_in_the_wheel(names: set[str]) -> None:
    modules = in_packages("*/**/*.py")
    assert modules
    assert sorted(modules - names) == []


@pytest.mark.parametrize("pattern", DATA)
def test_data_files_are_in_the_wheel(pattern: str, names: set[str]) -> None:
    files = in_packages(pattern)
    assert files or pattern not in NEVER_EMPTY
    assert sorted(files - names) == []


def test_every_package_is_typed(names: set[str]) -> None:
    assert {f"{package}/py.typed" for package in PACKAGES} <= names


def test_the_wheel_holds_no_compiled_or_test_files(names: set[str]) -> None:
    assert sorted(name for name in names if "__pycache__" in name or "tests/" in name) == []


def test_the_wheel_can_be_uploaded_nowhere(metadata: Message) -> None:
    assert "Private :: Do Not Upload" in metadata.get_all("Classifier", [])


def test_the_wheel_offers_the_command(wheel: Path, names: set[str]) -> None:
    (path,) = (name for name in names if name.endswith(".dist-info/entry_points.txt"))
    with zipfile.ZipFile(wheel) as archive:
        assert "rankwatch = rankwatch.__main__:entry" in archive.read(path).decode()


@pytest.mark.parametrize("package", PACKAGES)
def test_no_other_distribution_owns_the_name(package: str) -> None:
    owners = set(importlib.metadata.packages_distributions().get(package, []))
    assert owners <= {"rankwatch"}


@pytest.mark.parametrize("package", PACKAGES)
def test_the_name_leads_to_this_tree(package: str) -> None:
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin == str(ROOT / package / "__init__.py")


def test_no_test_folder_is_named_like_a_package_or_is_one() -> None:
    tests = ROOT / "tests"
    assert {path.name for path in tests.iterdir() if path.is_dir()}.isdisjoint(PACKAGES)
    assert sorted(path.relative_to(ROOT).as_posix() for path in tests.rglob("__init__.py")) == []
