"""ARCHITECTURE.md's map lists every folder and module of the packages, and nothing that does not exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("rankwatch", "schemas", "producers", "streams", "sinks")
SECTION = re.compile(r"^## Map[ \t]*\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```[^\n]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
EXEMPT = {"__init__.py"}


def entries(document: str) -> list[tuple[str, str]]:
    """Path and description of each line of the map's fenced block; a folder's last slash is left off."""
    section = SECTION.search(document)
    block = BLOCK.search(section.group(1)) if section else None
    if block is None:
        raise ValueError("ARCHITECTURE.md has no section '## Map' with a fenced block")
    lines = (line.strip() for line in block.group(1).splitlines())
    return [entry(line) for line in lines if line]


def entry(line: str) -> tuple[str, str]:
    path, _, what = line.partition("  ")
    return path.strip().rstrip("/"), what.strip()


def visible(path: Path, root: Path) -> bool:
    return not any(part.startswith(".") or part == "__pycache__" for part in path.relative_to(root).parts)


def expected(root: Path) -> set[str]:
    """Every module, every folder that holds modules, and the outermost folders that hold only data."""
    found: set[str] = set()
    for package in PACKAGES:
        found.update(path.relative_to(root).as_posix() for path in wanted(root / package, root))
    return found


def wanted(folder: Path, root: Path) -> Iterator[Path]:
    yield folder
    for path in sorted(folder.iterdir()):
        if not visible(path, root):
            continue
        if path.is_file() and path.suffix == ".py" and path.name not in EXEMPT:
            yield path
        elif path.is_dir() and holds_modules(path):
            yield from wanted(path, root)
        elif path.is_dir() and any(inner.is_file() and visible(inner, root) for inner in path.rglob("*")):
            yield path


def holds_modules(folder: Path) -> bool:
    return any(visible(path, folder) for path in folder.rglob("*.py"))


@pytest.fixture(scope="module")
def listed() -> list[tuple[str, str]]:
    return entries((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))


def test_every_folder_and_module_stands_on_the_map(listed: list[tuple[str, str]]) -> None:
    assert sorted(expected(ROOT) - {path for path, _ in listed}) == []


def test_nothing_on_the_map_is_missing_from_the_tree(listed: list[tuple[str, str]]) -> None:
    assert [path for path, _ in listed if not (ROOT / path).exists()] == []


def test_every_line_of_the_map_says_what_is_there_and_once(listed: list[tuple[str, str]]) -> None:
    paths = [path for path, _ in listed]
    assert [path for path, what in listed if not what] == []
    assert sorted({path for path in paths if paths.count(path) > 1}) == []


def test_the_map_is_read_from_its_own_section_and_block_only() -> None:
    before = "# A\n\n```\nno/  x\n```\n"
    section = "\n## Map\n\ntext\n\n```text\nstreams/  two stages\n  streams/log.py  the log\n```\n"
    after = "\n## Next\n\n```\nno.py  x\n```\n"
    assert entries(before + section + after) == [("streams", "two stages"), ("streams/log.py", "the log")]


@pytest.mark.parametrize("document", ["", "## Map\n\nnothing\n", "## Map\n\n## Next\n\n```\nx  y\n```\n"])
def test_a_document_without_a_map_is_refused(document: str) -> None:
    with pytest.raises(ValueError, match="## Map"):
        entries(document)


def test_what_must_stand_on_the_map_is_found_in_a_tree(tmp_path: Path) -> None:
    files = (
        "a.py",
        "__init__.py",
        "py.typed",
        "inner/b.py",
        "data/x/1.json",
        "__pycache__/a.pyc",
        ".hidden/c.py",
        "t.sql",
    )
    for package in PACKAGES:
        (tmp_path / package).mkdir()
    for file in files:
        path = tmp_path / "streams" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / "streams" / "empty").mkdir()
    inside = {"streams/a.py", "streams/inner", "streams/inner/b.py", "streams/data"}
    assert expected(tmp_path) == set(PACKAGES) | inside
