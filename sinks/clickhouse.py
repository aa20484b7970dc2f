"""Opens ClickHouse: a server over HTTP, or the embedded engine in a directory or in memory.

The embedded engine holds one path per process, and one process per path. Another path can be opened after the
first was closed. A process in which it is open must not be forked.
"""

from __future__ import annotations

import fcntl
import logging
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

import clickhouse_connect

from sinks.errors import SinkError, one_line

POLL_S = 0.05
"""How often a locked path is tried again."""

SETTINGS: dict[str, Any] = {"async_insert": 0}
"""Sent with every query: servers since 26.3 would otherwise insert asynchronously, and errors would surface late."""

_FORMS = "chdb:///path, chdb://, http(s)://user:password@host:port/database"
_OPTIONS = ("verify", "ca_cert", "connect_timeout", "send_receive_timeout")

# What the library logs it also raises; without a handler of the application's it would print it to stderr as well.
logging.getLogger("clickhouse_connect").addHandler(logging.NullHandler())


class Client(Protocol):
    """What this package asks of a ClickHouse client; clickhouse-connect's is one."""

    def command(self, cmd: str, parameters: Any = None, settings: Any = None) -> Any:
        """Run a statement without a result set."""

    def query(self, query: str, parameters: Any = None, settings: Any = None, query_formats: Any = None) -> Any:
        """Run a statement with a result set."""

    def query_row_block_stream(self, query: str, *, query_formats: Any = None) -> Any:
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
def open_client(dsn: str, wait_s: float = 0.0) -> Iterator[Client]:
    """A client for ``chdb:///path``, ``chdb://`` (in memory) or ``http(s)://user:password@host:port/database``.

    Waits up to ``wait_s`` seconds for another process to let go of a path. Raises SinkError if the DSN is not
    understood, the path is locked or the server does not answer; the client is closed on leaving.
    """
    scheme = dsn.partition("://")[0].lower()
    if scheme == "chdb":
        with _open_embedded(dsn[len("chdb://") :], wait_s) as client:
            yield client
    elif scheme in ("http", "https"):
        with _open_server(dsn) as client:
            yield client
    else:
        raise SinkError(f"unknown kind of ClickHouse address {safe_dsn(dsn)!r}; known: {_FORMS}")


def safe_dsn(dsn: str) -> str:
    """The address without its password.

    >>> safe_dsn("http://me:secret@host:8123/db")
    'http://me:***@host:8123/db'
    """
    scheme, mark, rest = dsn.partition("://")
    credentials, at, place = rest.rpartition("@")
    user, colon, _ = credentials.partition(":")
    return f"{scheme}{mark}{user}{':***' if colon else ''}{at}{place}"


@contextmanager
def _open_embedded(location: str, wait_s: float) -> Iterator[Client]:
    if location in ("", "memory", ":memory:"):
        with _closing(_connect_embedded(None)) as client:
            yield client
        return
    path = Path(location)
    if not path.is_absolute() or "?" in location:
        raise SinkError(f"chdb://{location}: an absolute path without '?' must follow, as in chdb:///var/lib/rankwatch")
    if path.exists() and not path.is_dir():
        raise SinkError(f"cannot open {path}: it is not a directory")
    with _locked(path, wait_s), _closing(_connect_embedded(path)) as client:
        yield client


def _connect_embedded(path: Path | None) -> Any:
    try:
        return clickhouse_connect.get_client(interface="chdb", path=path and str(path), settings=dict(SETTINGS))
    except Exception as error:
        raise SinkError(_embedded_reason(path, str(error), one_line(error))) from None


def _embedded_reason(path: Path | None, text: str, line: str) -> str:
    place = path or "the engine in memory"
    # The engine prints why it cannot lock its directory to stderr, and leaves the reason of its exception empty.
    if "Cannot lock file" in text or "EmbeddedServer: . (" in text:
        return f"cannot open {place}: most likely a program that is not ours has it open; close that first"
    if "already" in text and "path" in text:
        return f"cannot open {place}: this process holds another embedded database; close that first"
    return f"cannot open {place}: {line}"


@contextmanager
def _locked(path: Path, wait_s: float) -> Iterator[None]:
    """Hold ``<path>.lock``. The file stays behind: removing it would race with whoever waits for it."""
    lock = path.with_name(path.name + ".lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise SinkError(f"cannot open {path}: {error.strerror}: {error.filename}") from None
    try:
        for _ in range(int(wait_s / POLL_S)):
            if _try_lock(handle):
                break
            threading.Event().wait(POLL_S)
        else:
            if not _try_lock(handle):
                raise SinkError(_locked_reason(path, handle, wait_s))
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(handle)


def _try_lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _locked_reason(path: Path, handle: int, wait_s: float) -> str:
    owner = os.pread(handle, 32, 0).decode("ascii", "replace").strip()
    waited = f" (waited {wait_s:g} s)" if wait_s else ""
    if owner == str(os.getpid()):
        return f"{path} is already open in this process{waited}"
    who = f"process {owner}" if owner.isdigit() else "another process"
    return f"{path} is locked by {who}{waited}; the embedded database serves one process at a time"


@contextmanager
def _open_server(dsn: str) -> Iterator[Client]:
    try:
        parts = urlsplit(dsn)
        arguments = _server_arguments(parts)
    except ValueError as error:
        raise SinkError(f"cannot read the ClickHouse address {safe_dsn(dsn)!r}: {error}") from None
    place = f"{arguments['host']}:{arguments['port']}"
    try:
        client = clickhouse_connect.get_client(**arguments)
    except Exception as error:
        raise SinkError(_server_reason(place, error, arguments["password"])) from None
    with _closing(client):
        yield client


def _server_arguments(parts: SplitResult) -> dict[str, Any]:
    options = dict(parse_qsl(parts.query))
    unknown = sorted(set(options) - set(_OPTIONS))
    if unknown:
        raise ValueError(f"unknown option {unknown[0]}; known: {', '.join(_OPTIONS)}")
    if not parts.hostname:
        raise ValueError("it names no host")
    return {
        "interface": parts.scheme,
        "host": parts.hostname,
        "port": parts.port or (8443 if parts.scheme == "https" else 8123),
        "username": unquote(parts.username or "default"),
        "password": unquote(parts.password or ""),
        "database": unquote(parts.path.strip("/")) or "default",
        "settings": dict(SETTINGS),
        # One session takes one query at a time; without one, a client may be shared.
        "autogenerate_session_id": False,
        **options,
    }


def _server_reason(place: str, error: Exception, password: str) -> str:
    line = one_line(error)
    for cause in ("Connection refused", "Name or service not known", "timed out", "No route to host"):
        if cause in line:
            return f"cannot reach ClickHouse at {place}: {cause.lower()}"
    line = line.replace(password, "***") if password else line
    return f"ClickHouse at {place} refuses: {line}"


@contextmanager
def _closing(client: Any) -> Iterator[Client]:
    try:
        yield client
    finally:
        client.close()
