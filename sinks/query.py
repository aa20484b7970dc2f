"""Asks ClickHouse and makes its answer exact and printable."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from typing import Any

from sinks.clickhouse import Client
from sinks.errors import SinkError, one_line

Answer = tuple[list[str], list[str], list[list[Any]]]
"""Names of the columns, their types, and rows."""

_HEAD = re.compile(r"(?>\s|(?:--|#)[^\n]*\n|/\*.*?\*/|\()*+(\w+)", re.DOTALL)
_OUTFILE = re.compile(r"\binto(?>/\*.*?\*/|(?:--|#)[^\n]*\n|\W)++outfile\b", re.DOTALL | re.IGNORECASE)
_STREAMED = {"select", "with", "from"}
_ANSWERED = {"show", "desc", "describe", "explain", "exists", "check"}
_TIME = re.compile(r"DateTime(?:64\((\d)[^()]*\)|\([^()]*\))?")
_WRAPPER = re.compile(r"(?:Nullable|LowCardinality|Array)\((.*)\)|SimpleAggregateFunction\(\w+, (.*)\)")
_EPOCH_DAY = date(1970, 1, 1).toordinal()


def query(client: Client, sql: str, max_rows: int) -> Answer:
    """The names and types of the columns, and up to ``max_rows`` rows of a statement that reads.

    Others are refused by their first word; open the client with ``read_only`` so that the engine refuses the rest.
    Times come as ISO text in UTC with all their digits (``2025-11-29T12:00:00.123456789Z``), also within arrays.
    Raises SinkError with what ClickHouse says, on one line.
    """
    verb = reading_verb(sql)
    sql = sql.strip().rstrip(";")
    try:
        names, types, rows = _ask(client, verb, sql, max_rows)
    except Exception as error:
        raise SinkError(one_line(error)) from None
    for position, digits in enumerate(map(_digits, types)):
        if digits is not None:
            for row in rows:
                row[position] = _times(row[position], digits)
    return names, types, rows


def reading_verb(sql: str) -> str:
    """The first word of a statement that reads, in small letters. Raises SinkError for any other.

    >>> reading_verb("/* newest */ (SELECT 1)")
    'select'
    """
    head = _HEAD.match(sql)
    if head is None:
        raise SinkError("there is no statement")
    verb = head.group(1).lower()
    if verb not in _STREAMED | _ANSWERED:
        known = ", ".join(word.upper() for word in sorted(_STREAMED | _ANSWERED))
        raise SinkError(f"{head.group(1)[:20].upper()} is refused: only statements that read are run ({known})")
    if _OUTFILE.search(sql):
        raise SinkError("INTO OUTFILE is refused: only statements that read are run")
    return verb


def iso_utc(ticks: int, digits: int = 9) -> str:
    """A time given in ticks of ``10**-digits`` seconds as ISO text in UTC; any year that ClickHouse knows.

    >>> iso_utc(1764417600123456789)
    '2025-11-29T12:00:00.123456789Z'
    """
    seconds, fraction = divmod(ticks, 10**digits)
    days, rest = divmod(seconds, 86_400)
    day = date.fromordinal(_EPOCH_DAY + days).isoformat()
    text = f"{day}T{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"
    return f"{text}.{fraction:0{digits}d}Z" if digits else f"{text}Z"


def _ask(client: Client, verb: str, sql: str, max_rows: int) -> Answer:
    if verb in _STREAMED:
        names, types, rows = _stream(client, sql, max_rows)
        return (names, types, rows) if names else (*_describe(client, sql), [])
    answer = client.query(sql, query_formats={"DateTime*": "int"})
    kinds = [kind.name for kind in answer.column_types]
    return list(answer.column_names), kinds, [list(row) for row in answer.result_rows[:max_rows]]


def _stream(client: Client, sql: str, max_rows: int) -> Answer:
    """Block by block, so that an answer without bound is not held in memory."""
    rows: list[list[Any]] = []
    bound = _row_bound(client, max(max_rows, 1))
    with client.query_row_block_stream(sql, settings=bound, query_formats={"DateTime*": "int"}) as blocks:
        names, types = list(blocks.source.column_names), [kind.name for kind in blocks.source.column_types]
        for block in blocks:
            rows.extend(list(row) for row in block[: max_rows - len(rows)])
            if len(rows) >= max_rows:
                break
    return names, types, rows


def _row_bound(client: Any, rows: int) -> dict[str, int]:
    """Settings by which ClickHouse itself ends an answer after so many rows; empty where they may not be set.

    The library reads an answer that is broken off over HTTP to its very end, if it has one. The embedded engine
    cancels it, and lets a reader set nothing; nor may a user whose profile is ``readonly = 1``.
    """
    limit = client.server_settings.get("limit") if str(client.uri).startswith("http") else None
    return {"limit": rows} if limit and not limit.readonly else {}


def _describe(client: Client, sql: str) -> tuple[list[str], list[str]]:
    """The columns of a query without rows, which the embedded engine does not name."""
    described: Sequence[Sequence[str]] = client.query(f"DESCRIBE ({sql})").result_rows
    return [row[0] for row in described], [row[1] for row in described]


def _digits(type_name: str) -> int | None:
    """Digits after the second of a type of time, also inside arrays; null for other types."""
    while wrapped := _WRAPPER.fullmatch(type_name):
        type_name = wrapped.group(1) or wrapped.group(2)
    time = _TIME.fullmatch(type_name)
    return None if time is None else int(time.group(1) or 0)


def _times(value: Any, digits: int) -> Any:
    if isinstance(value, list | tuple):
        return [_times(item, digits) for item in value]
    return iso_utc(value, digits) if isinstance(value, int) else value
