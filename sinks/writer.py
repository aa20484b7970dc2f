"""Inserts blocks, column by column, so that a repeated insert folds."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from sinks.clickhouse import SETTINGS, Client
from sinks.errors import SinkError, one_line
from sinks.fit import misfit
from sinks.rows import Block, Columns

_ENCODER = msgspec.msgpack.Encoder()


class Writer:
    """Inserts into the tables of one database; also a ``schemas.ports.RowSink``."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._types: dict[str, dict[str, str]] = {}

    def misfit(self, block: Block) -> str | None:
        """Why the block cannot be stored, naming the column, or null."""
        types = self._table_types(block.table)
        for column, values in block.columns.items():
            if reason := misfit(values, self._type(types, block.table, column)):
                return f"{block.table}.{column}: {reason}"
        return None

    def write(self, block: Block, origin: str) -> int:
        """Insert the block; returns its rows. ``origin`` says which entries of the log it was made from.

        The token holds a hash of the content beside the origin: the engine silently drops a second insert under a
        used token, whatever is in it. Raises SinkError.
        """
        types = self._table_types(block.table)
        typed = {column: self._type(types, block.table, column) for column in block.columns}
        names = [column for column in typed if not _is_default(block.columns[column], typed[column])] or list(typed)
        sent = {column: block.columns[column] for column in names}
        token = f"{block.table}:{origin}:{_content_hash(sent)}"
        try:
            self._client.insert(
                block.table,
                list(sent.values()),
                names,
                column_type_names=[typed[column] for column in names],
                column_oriented=True,
                # A batch may hold more days than a server lets into one insert by default; 0 lifts the bound.
                settings={**SETTINGS, "insert_deduplication_token": token, "max_partitions_per_insert_block": 0},
            )
        except Exception as error:
            raise SinkError(f"cannot insert into {block.table}: {one_line(error)}") from None
        return block.rows

    def insert(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> int:
        """Insert rows; equal rows inserted again fold. Returns how many. Raises SinkError."""
        values = [list(column) for column in zip(*rows, strict=True)]
        if not values:
            return 0
        block = Block(table, dict(zip(columns, values, strict=True)))
        if reason := self.misfit(block):
            raise SinkError(reason)
        return self.write(block, "rows")

    def _table_types(self, table: str) -> dict[str, str]:
        if table not in self._types:
            sql = "SELECT name, type FROM system.columns WHERE database = currentDatabase() AND table = {table:String}"
            try:
                found = self._client.query(sql, parameters={"table": table}).result_rows
            except Exception as error:
                raise SinkError(f"cannot read the columns of {table}: {one_line(error)}") from None
            if not found:
                raise SinkError(f"there is no table {table}; apply the migrations first")
            self._types[table] = dict(found)
        return self._types[table]

    @staticmethod
    def _type(types: dict[str, str], table: str, column: str) -> str:
        if column not in types:
            raise SinkError(f"table {table} has no column {column}; apply the migrations first")
        return types[column]


def _is_default(values: Sequence[Any], type_name: str) -> bool:
    """Whether a column need not be sent, since the engine fills in just these values where it is left out."""
    if "Nullable" in type_name and not type_name.startswith("Array"):
        return values.count(None) == len(values)
    return "Float" not in type_name and not any(values)


def _content_hash(columns: Columns) -> str:
    return hashlib.blake2b(_ENCODER.encode(columns), digest_size=16).hexdigest()
