"""JSON Schemas and the topic table, written from the records for readers in other languages.

``python -m schemas.generate`` writes ``schemas/json/<kind>.v1.json`` and ``schemas/topics.json``;
``--check`` writes nothing, names what is stale and exits 1 if anything is.
"""

from __future__ import annotations

import argparse
import inspect
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from schemas import codec, events, topics

HOME = Path(__file__).resolve().parent
"""The folder of this package, where the documents lie."""

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema_of(kind: str) -> dict[str, Any]:
    """The JSON Schema 2020-12 of a record kind; unknown properties are allowed, since versions add fields."""
    schema = msgspec.json.schema(codec.TYPES[kind])
    root = schema["$defs"][schema["$ref"].rpartition("/")[2]]
    return {
        **schema,
        "$schema": DIALECT,
        "$id": f"urn:rankwatch:schema:{kind}:{codec.VERSION}",
        "title": root["title"],
        "description": _description(kind),
    }


def _description(kind: str) -> str:
    """What the record is; for a batch what its events are, then what a batch is."""
    records = (codec.BATCHES[kind], events.Batch) if kind in codec.BATCHES else (codec.SINGLES[kind],)
    return "\n\n".join(inspect.getdoc(record) or "" for record in records)


def topic_table() -> dict[str, Any]:
    """All topics by name: what they carry, who writes and reads them, how they are keyed and kept."""
    table = {name: msgspec.to_builtins(topic) for name, topic in topics.TOPICS.items()}
    for row in table.values():
        del row["name"]
    return table


def documents() -> dict[str, str]:
    """Every generated document's text by its path below ``schemas/``."""
    found = {f"json/{kind}.v{codec.VERSION}.json": _text(schema_of(kind)) for kind in codec.TYPES}
    return {**found, "topics.json": _text(topic_table())}


def _text(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def stale(home: Path = HOME) -> list[str]:
    """Paths below ``home`` that are missing, differ from what would be written, or belong to no kind."""
    wanted = documents()
    differing = [path for path, text in wanted.items() if not _holds(home / path, text)]
    return sorted(differing + _strays(home, wanted))


def _holds(path: Path, text: str) -> bool:
    return path.is_file() and path.read_bytes() == text.encode()


def _strays(home: Path, wanted: dict[str, str]) -> list[str]:
    """Schemas of the current version whose kind is gone; those of other versions stay."""
    found = (path.relative_to(home).as_posix() for path in home.glob(f"json/*.v{codec.VERSION}.json"))
    return [path for path in found if path not in wanted]


def write(home: Path = HOME) -> list[str]:
    """Bring the documents below ``home`` up to date; returns the paths that changed."""
    wanted = documents()
    changed = stale(home)
    for path in changed:
        target = home / path
        if path in wanted:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(wanted[path].encode())
        else:
            target.unlink()
    return changed


def main(arguments: Sequence[str] | None = None, home: Path = HOME) -> int:
    """Run the command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m schemas.generate", description="Write the JSON Schemas.")
    parser.add_argument("--check", action="store_true", help="write nothing; name stale files and exit 1 if any")
    check = parser.parse_args(arguments).check
    names = stale(home) if check else write(home)
    for name in names:
        print(f"{'stale' if check else 'wrote'}: schemas/{name}")
    return 1 if check and names else 0


if __name__ == "__main__":
    sys.exit(main())
