"""Runs statements in the embedded engine the way a ClickHouse server runs those of HTTP requests without sessions.

Every statement has a connection of its own, so neither database nor settings outlive it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import chdb

BLOCK_INFO_REVISION = 51903
"""From this revision of the protocol on, blocks of the native format begin with what they are part of."""

_BLOCK_INFO = b"\x01\x00\x02\xff\xff\xff\xff\x00"
_CODE = re.compile(r"Code: (\d+)\. .*", re.DOTALL)
_INSERT = re.compile(
    rb"\s*(INSERT\s+INTO\s+[^\s(]+\s*(?:\([^)]*\))?\s*(?:SETTINGS\s[^\n]*?)?)\s*\bFORMAT\s+(\w+)[ \t]*(?:\r?\n)?(.*)",
    re.DOTALL | re.IGNORECASE,
)
_FORMAT = re.compile(r"\bFORMAT\s+(\w+)\s*;?\s*$", re.IGNORECASE)
_NOT_STREAMED = "Streaming query is not supported"


class EngineError(Exception):
    """What the engine refuses; the text begins with ``Code: N. DB::Exception:`` and ends with the version."""

    def __init__(self, text: str, version: str) -> None:
        found = _CODE.search(text)
        said = found[0].strip() if found else f"Code: 1001. DB::Exception: {text}"
        self.code = int(found[1]) if found else 1001
        # A server names its build behind every exception, the embedded engine behind some.
        super().__init__(said if said.endswith(")") and "(version " in said else f"{said} (version {version})")


@dataclass(frozen=True)
class Statement:
    """SQL, and where and how it runs: ``profile`` is what the user is bound to, ``settings`` what the request asks."""

    body: bytes
    database: str
    profile: Mapping[str, str]
    settings: Mapping[str, str]
    parameters: Mapping[str, str]
    reads_only: bool = False
    revision: int = 0
    default_format: str = ""


@dataclass
class Answer:
    """Bytes in ``format``, which is null where a statement has no result; ``summary`` counts what is known so far."""

    format: str | None
    chunks: Iterator[bytes]
    summary: dict[str, int] = field(default_factory=dict)


class Engine:
    """The engine over one directory. Open it in one process only."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        # The engine goes down with its last connection.
        self._held = chdb.connect(self._path)
        version, self.timezone = self._held.query("SELECT version(), timezone()", "TabSeparated").bytes().split()
        self.version = f"{version.decode()} (embedded build)"

    def close(self) -> None:
        """Let go of the directory."""
        self._held.close()

    def execute(self, sql: str) -> None:
        """Run a statement of the front's own, without result."""
        self._held.query(sql)

    @contextmanager
    def run(self, statement: Statement) -> Iterator[Answer]:
        """The answer, to be read before leaving. Raises EngineError, also while it is read."""
        connection = chdb.connect(self._path)
        try:
            with self._refusals():
                _prepare(connection, statement)
                answer = _answer(connection, statement)
            answer.chunks = self._checked(answer.chunks)
            yield answer
        finally:
            connection.close()

    def _checked(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        with self._refusals():
            yield from chunks

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            raise EngineError(str(error), self.version) from None
        except chdb.ChdbError as error:
            raise EngineError(str(error), self.version) from None


def _prepare(connection: Any, statement: Statement) -> None:
    connection.query(f"USE `{statement.database}`")
    _set(connection, statement.profile)
    if statement.reads_only and "readonly" not in statement.profile:
        _set(connection, {"readonly": "2"})
    # All at once, as a server does it: `readonly` among them must not forbid the others.
    _set(connection, statement.settings)


def _set(connection: Any, settings: Mapping[str, str]) -> None:
    if settings:
        connection.query("SET " + ", ".join(f"`{name}` = {_quoted(value)}" for name, value in settings.items()))


def _quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _answer(connection: Any, statement: Statement) -> Answer:
    insert = _INSERT.fullmatch(statement.body)
    if insert:
        return _insert(connection, insert[1].decode(), insert[2].decode(), insert[3])
    sql = statement.body.decode()
    named = _FORMAT.search(sql)
    wanted = named[1] if named else statement.default_format
    if wanted == "Native":
        return _native(connection, sql, statement)
    parameters = dict(statement.parameters)
    if wanted:
        result = connection.query(sql, wanted, params=parameters)
        return Answer(wanted, iter([result.bytes()]), _counts(result))
    # With names, whatever has a result prints at least a line; that tells a result without rows from none.
    result = connection.query(sql, "TabSeparatedWithNames", params=parameters)
    names, line, rows = result.bytes().partition(b"\n")
    return Answer("TabSeparated" if line else None, iter([rows if line else names]), _counts(result))


def _insert(connection: Any, head: str, name: str, data: bytes) -> Answer:
    with connection.send_insert(head, name) as insert:
        insert.append(data)
        written = insert.finish()
    return Answer(None, iter(()), {"written_rows": written.rows_written, "written_bytes": written.bytes_written})


def _native(connection: Any, sql: str, statement: Statement) -> Answer:
    """Block by block where the engine can: only so it is known where a block begins."""
    prefix = _BLOCK_INFO if statement.revision >= BLOCK_INFO_REVISION else b""
    parameters = dict(statement.parameters)
    try:
        stream = connection.send_query(sql, "Native", params=parameters)
    except (RuntimeError, chdb.ChdbError) as error:
        if _NOT_STREAMED not in str(error):
            raise
        # SHOW, DESCRIBE and the like: few rows, one block.
        data = connection.query(sql, "Native", params=parameters).bytes()
        return Answer("Native", iter([prefix + data] if data else []))
    return Answer("Native", _blocks(stream, prefix))


def _blocks(stream: Any, prefix: bytes) -> Iterator[bytes]:
    try:
        for block in stream:
            yield prefix + block.bytes()
    finally:
        stream.close()


def _counts(result: Any) -> dict[str, int]:
    return {"read_rows": result.rows_read(), "read_bytes": result.bytes_read()}
