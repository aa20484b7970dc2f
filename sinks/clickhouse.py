"""Opens ClickHouse: a server over HTTP, or the embedded engine in a directory or in memory."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any, Protocol

import clickhouse_connect

from sinks.address import check_dsn, location, scheme, server_arguments
from sinks.embedded import open_embedded
from sinks.errors import SinkError, no_answer, one_line
from sinks.lock import Wait

SETTINGS: dict[str, Any] = {"async_insert": 0}
"""Sent with every query: servers since 26.3 would otherwise insert asynchronously, and errors would surface late."""

READ_ONCE: dict[str, Any] = {"final": 1, "do_not_merge_across_partitions_select_final": 1}
"""For a client that only asks: rows that were stored twice are shown once, whether or not the query says FINAL.

All copies of a row lie in one partition, since a table's partition is a function of its sort key.
"""

READ_ONLY: dict[str, Any] = {"readonly": 1}
"""For a client that only asks: the engine itself refuses writes, files, other addresses and changes of settings."""

# What the library logs it also raises; without a handler of the application's it would print it to stderr as well.
logging.getLogger("clickhouse_connect").addHandler(logging.NullHandler())


class Client(Protocol):
    """What this package asks of a ClickHouse client; clickhouse-connect's is one."""

    def command(self, cmd: str, parameters: Any = None, settings: Any = None) -> Any:
        """Run a statement without a result set."""

    def query(self, query: str, parameters: Any = None, settings: Any = None, query_formats: Any = None) -> Any:
        """Run a statement with a result set."""

    def query_row_block_stream(self, query: str, *, settings: Any = None, query_formats: Any = None) -> Any:
        """Run a statement and read its result set block by block."""

    def insert(
        self,
        table: str,
        data: Sequence[Sequence[Any]],
        column_names: Sequence[str],
        *,
        column_type_names: Sequence[str] | None = None,
        column_oriented: bool = False,
        settings: dict[str, Any] | None = None,
    ) -> Any:
        """Insert columns."""


@contextmanager
def open_client(dsn: str, *, wait: Wait | None = None, who: str = "", read_only: bool = False) -> Iterator[Client]:
    """A client for ``chdb:///path``, ``chdb://`` (in memory) or ``http(s)://user:password@host:port/database``.

    ``wait`` is for another process that has a path open; without it none is waited for. ``who`` is what others are
    told meanwhile. With ``read_only`` the engine refuses whatever is more than reading, and shows rows once. Raises
    SinkError if the DSN is not understood, the path is locked or the server does not answer; the client is closed on
    leaving.
    """
    check_dsn(dsn)
    settings = {**SETTINGS, **(READ_ONCE | READ_ONLY if read_only else {})}
    if scheme(dsn) == "chdb":
        with open_embedded(location(dsn), settings, wait or Wait(), who, make=not read_only) as client:
            yield client
    else:
        with _open_server(server_arguments(dsn), settings) as client:
            yield client


@contextmanager
def _open_server(arguments: dict[str, Any], settings: Mapping[str, Any]) -> Iterator[Any]:
    place = f"{arguments['host']}:{arguments['port']}"
    try:
        client = clickhouse_connect.get_client(**arguments)
        _apply(client, settings)
    except Exception as error:
        raise SinkError(_server_reason(place, error, arguments["password"])) from None
    with closing(client):
        yield client


def _apply(client: Any, settings: Mapping[str, Any]) -> None:
    """Set what is left to set: a user whose profile only reads may set nothing (1), or all but that (2)."""
    profile = str(getattr(client.server_settings.get("readonly"), "value", "0"))
    for name, value in settings.items():
        if profile == "0" or (profile == "2" and name in READ_ONCE):
            client.set_client_setting(name, value)


def _server_reason(place: str, error: Exception, password: str) -> str:
    if cause := no_answer(error):
        return f"cannot reach ClickHouse at {place}: {cause}"
    line = one_line(error)
    line = line.replace(password, "***") if password else line
    return f"ClickHouse at {place} refuses: {line}"
