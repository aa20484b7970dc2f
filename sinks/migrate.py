"""Applies the SQL files of ``migrations`` in order, each exactly once."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from importlib import resources
from itertools import pairwise

import msgspec

from sinks.clickhouse import Client
from sinks.errors import OtherBuildError, SinkError, one_line

_NAME = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")
_STATEMENT_END = re.compile(r";[ \t]*$", re.MULTILINE)
_LEDGER = """
CREATE TABLE IF NOT EXISTS migrations
(
    version UInt32 COMMENT 'Number of the file',
    name String COMMENT 'Name of the file',
    checksum String COMMENT 'Hash of the text of the file'
)
ENGINE = ReplacingMergeTree ORDER BY version
COMMENT 'Migrations that were applied'
"""


class Migration(msgspec.Struct, frozen=True):
    """One file: its number, its name without suffix and its text."""

    version: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        """Hash of the text."""
        return hashlib.blake2b(self.text.encode(), digest_size=16).hexdigest()

    @property
    def statements(self) -> list[str]:
        """The statements; one ends with a semicolon at the end of a line."""
        return [text for part in _STATEMENT_END.split(self.text) if (text := _without_comments(part).strip())]


def migrations() -> list[Migration]:
    """The migrations that came with the package, in order. Raises SinkError for a wrong or doubled name."""
    found = []
    for file in resources.files("sinks").joinpath("migrations").iterdir():
        if not file.name.endswith(".sql"):
            continue
        name = _NAME.fullmatch(file.name)
        if not name:
            raise SinkError(f"{file.name} is not called NNNN_verb_noun.sql")
        found.append(Migration(int(name[1]), file.name.removesuffix(".sql"), file.read_text("utf-8")))
    found.sort(key=lambda migration: migration.version)
    for before, after in pairwise(found):
        if before.version == after.version:
            raise SinkError(f"{before.name} and {after.name} have the same number")
    return found


def migrate(client: Client, wanted: Sequence[Migration] | None = None) -> list[str]:
    """Apply what is not yet applied, by default of the package's own migrations; returns the names applied.

    A migration is recorded after its last statement, so one that was cut short runs again: statements must bear that.
    Raises OtherBuildError if an applied migration has another text now, SinkError if ClickHouse fails.
    """
    applied = _applied(client)
    names = []
    for migration in migrations() if wanted is None else wanted:
        if migration.version in applied:
            _compare(migration, *applied[migration.version])
            continue
        _apply(client, migration)
        names.append(migration.name)
    return names


def behind(client: Client) -> str:
    """Why a statement may find less than it asks for: the tables were never made, or not all; else empty.

    It only reads, and says nothing where it may not: then what the statement itself came to has to do.
    """
    try:
        if not client.query("EXISTS TABLE migrations").result_rows[0][0]:
            return "Rankwatch has no tables in this database yet: `rankwatch migrate` makes them"
        applied = {version for (version,) in client.query("SELECT version FROM migrations").result_rows}
    except Exception:
        return ""
    missing = sum(one.version not in applied for one in migrations())
    if not missing:
        return ""
    return f"{missing} of {len(migrations())} migrations were not applied here: `rankwatch migrate` applies them"


def _applied(client: Client) -> dict[int, tuple[str, str]]:
    """Names and checksums by number."""
    try:
        client.command(_LEDGER)
        rows = client.query("SELECT version, name, checksum FROM migrations FINAL").result_rows
    except Exception as error:
        raise SinkError(f"cannot tell which migrations were applied: {one_line(error)}") from None
    return {version: (name, checksum) for version, name, checksum in rows}


def _compare(migration: Migration, name: str, checksum: str) -> None:
    if checksum != migration.checksum:
        raise OtherBuildError(
            f"migration {migration.name} was applied as {name} with another text "
            f"(checksum {checksum}, now {migration.checksum}); never change an applied one, add a new one"
        )


def _apply(client: Client, migration: Migration) -> None:
    for number, statement in enumerate(migration.statements, 1):
        try:
            client.command(statement)
        except Exception as error:
            raise SinkError(f"migration {migration.name}, statement {number}: {one_line(error)}") from None
    row: list[list[object]] = [[migration.version], [migration.name], [migration.checksum]]
    try:
        client.insert("migrations", row, ["version", "name", "checksum"], column_oriented=True)
    except Exception as error:
        raise SinkError(f"migration {migration.name} was applied but cannot be recorded: {one_line(error)}") from None


def _without_comments(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("--"))
