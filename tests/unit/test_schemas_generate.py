"""The generated documents: fresh, complete, and named when stale."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from schemas import codec, generate, topics


def references(node: Any) -> set[str]:
    if isinstance(node, dict):
        own = {node["$ref"]} if isinstance(node.get("$ref"), str) else set()
        return own.union(*(references(part) for part in node.values()))
    return set().union(*(references(part) for part in node)) if isinstance(node, list) else set()


def test_the_documents_in_the_tree_are_fresh() -> None:
    assert generate.stale() == []


def test_every_kind_has_a_schema() -> None:
    wanted = {f"json/{kind}.v1.json" for kind in codec.TYPES} | {"topics.json"}
    assert generate.documents().keys() == wanted


@pytest.mark.parametrize("kind", sorted(codec.TYPES))
def test_a_schema_says_what_it_is_of_and_is_closed_in_itself(kind: str) -> None:
    schema = generate.schema_of(kind)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["title"]
    assert schema["description"].endswith(".")
    assert all(entry["title"] and entry["description"] for entry in schema["$defs"].values())
    assert references(schema) == {f"#/$defs/{name}" for name in schema["$defs"]}


@pytest.mark.parametrize("kind", sorted(codec.TYPES))
def test_a_schema_lets_newer_versions_add_fields(kind: str) -> None:
    entries = generate.schema_of(kind)["$defs"].values()
    assert not any(entry.get("additionalProperties") is False for entry in entries)


@pytest.mark.parametrize(("path", "text"), generate.documents().items())
def test_a_document_has_sorted_keys_and_ends_in_a_newline(path: str, text: str) -> None:
    assert text == json.dumps(json.loads(text), indent=2, sort_keys=True, ensure_ascii=False) + "\n", path


def test_the_topic_table_holds_every_topic() -> None:
    table = json.loads(generate.documents()["topics.json"])
    assert table.keys() == topics.TOPICS.keys()
    assert table["logs"]["kinds"] == ["log", "tick"]
    assert {tuple(sorted(row)) for row in table.values()} == {
        ("cleanup", "key", "kinds", "most_bytes", "raw", "readers", "single", "writer")
    }


def test_check_names_what_is_stale_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    generate.write(tmp_path)
    (tmp_path / "json" / "log.v1.json").write_text("{}\n")
    (tmp_path / "json" / "tick.v1.json").unlink()
    (tmp_path / "json" / "gone.v1.json").write_text("{}\n")
    assert generate.main(["--check"], tmp_path) == 1
    named = ["json/gone.v1.json", "json/log.v1.json", "json/tick.v1.json"]
    assert capsys.readouterr().out.splitlines() == [f"stale: schemas/{path}" for path in named]
    assert generate.stale(tmp_path) == named


def test_writing_repairs_what_check_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "json").mkdir()
    (tmp_path / "json" / "gone.v1.json").write_text("{}\n")
    (tmp_path / "json" / "log.v0.json").write_text("{}\n")
    assert generate.main([], tmp_path) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(generate.documents()) + 1
    assert generate.main(["--check"], tmp_path) == 0
    assert generate.write(tmp_path) == []
    assert (tmp_path / "json" / "log.v0.json").exists()
