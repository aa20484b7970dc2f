"""Opens ClickHouse: a server over HTTP, or the embedded engine in a directory or in memory.

The embedded engine holds one path per process, and one process per path. Another path can be opened after the
first was closed. A process in which it is open must not be forked.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

import clickhouse_connect

from sinks.errors import SinkError, no_answer, one_line

POLL_S = 0.05
"""How often a locked path is tried again."""

SETTINGS: dict[str, Any] = {"async_insert": 0}
"""Sent with every query: servers since 26.3 would otherwise insert asynchronously, and errors would surface late."""

READ_ONLY: dict[str, Any] = {"readonly": 1}
"""For a client that only asks: the engine itself refuses writes, files, other addresses and changes of settings."""

Pause = Callable[[float], object]
"""Lets so many seconds pass; nothing here waits by itself."""

_FORMS = "chdb:///path, chdb://, http(s)://user:password@host:port/database"
_OPTIONS = ("verify", "ca_cert", "connect_timeout", "send_receive_timeout")
_OPTION = re.compile(r"([?&#])([^=&#]*)=([^&#]*)")
_IN_MEMORY = ("", "memory", ":memory:")
_OURS = {"store", "metadata"}
"""What lies in the folder of an embedded database."""

_EMPTY = {"status", "tmp", "data"}
"""What the engine leaves in the folder of one in which nothing was made."""

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
def open_client(
    dsn: str, wait_s: float = 0.0, *, pause: Pause | None = None, read_only: bool = False
) -> Iterator[Client]:
    """A client for ``chdb:///path``, ``chdb://`` (in memory) or ``http(s)://user:password@host:port/database``.

    Waits up to ``wait_s`` seconds for another process to let go of a path, by ``pause``; without one it does not wait.
    With ``read_only`` the engine refuses whatever is more than reading. Raises SinkError if the DSN is not
    understood, the path is locked or the server does not answer; the client is closed on leaving.
    """
    check_dsn(dsn)
    settings = {**SETTINGS, **(READ_ONLY if read_only else {})}
    if _scheme(dsn) == "chdb":
        with _open_embedded(_location(dsn), settings, wait_s if pause else 0.0, pause) as client:
            yield client
    else:
        with _open_server(_server_arguments(dsn), settings) as client:
            yield client


def check_dsn(dsn: str) -> None:
    """Raise SinkError if the address has no known form; nothing is opened."""
    scheme = _scheme(dsn)
    if scheme == "chdb":
        location = _location(dsn)
        if location not in _IN_MEMORY and ("?" in location or not Path(location).is_absolute()):
            raise SinkError(
                f"{safe_dsn(dsn)}: an absolute path without '?' must follow, as in chdb:///var/lib/rankwatch"
            )
    elif scheme in ("http", "https"):
        _server_arguments(dsn)
    else:
        raise SinkError(f"unknown kind of ClickHouse address {safe_dsn(dsn)!r}; known: {_FORMS}")


def safe_dsn(dsn: str) -> str:
    """The address without its password, and without what unknown options hold.

    >>> safe_dsn("http://me:secret@host:8123/db?verify=0&password=secret")
    'http://me:***@host:8123/db?verify=0&password=***'
    """
    scheme, mark, rest = _OPTION.sub(_safe_option, dsn).partition("://")
    credentials, at, place = rest.rpartition("@")
    user, colon, _ = credentials.partition(":")
    return f"{scheme}{mark}{user}{':***' if colon else ''}{at}{place}"


def _safe_option(option: re.Match[str]) -> str:
    return option[0] if option[2] in _OPTIONS else f"{option[1]}{option[2]}=***"


def _scheme(dsn: str) -> str:
    scheme, mark, _ = dsn.partition("://")
    return scheme.lower() if mark else ""


def _location(dsn: str) -> str:
    return dsn.partition("://")[2]


@contextmanager
def _open_embedded(location: str, settings: dict[str, Any], wait_s: float, pause: Pause | None) -> Iterator[Client]:
    if location in _IN_MEMORY:
        with _closing(_connect_embedded(None, settings)) as client:
            yield client
        return
    path = Path(location)
    if path.exists() and not path.is_dir():
        raise SinkError(f"cannot open {path}: it is not a directory")
    if not _lock_of(path).exists():
        _refuse_alien(path)
    with _locked(path, wait_s, pause):
        # Asked again: whoever held the lock until now may have been about to make the database.
        _refuse_alien(path)
        with _closing(_connect_embedded(path, settings)) as client:
            yield client


def _refuse_alien(path: Path) -> None:
    """Raise SinkError for a folder that holds something, but no database: the engine would spread within it."""
    try:
        names = {entry.name for entry in path.iterdir()}
    except OSError:
        return
    if not names & _OURS and not names <= _EMPTY:
        raise SinkError(f"cannot open {path}: the folder is not empty and holds no database; name one that is new")


def _connect_embedded(path: Path | None, settings: dict[str, Any]) -> Any:
    try:
        return clickhouse_connect.get_client(interface="chdb", path=path and str(path), settings=settings)
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
def _locked(path: Path, wait_s: float, pause: Pause | None) -> Iterator[None]:
    """Hold ``<path>.lock``. The file stays behind: removing it would race with whoever waits for it."""
    lock = _lock_of(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise SinkError(f"cannot open {path}: {error.strerror}: {error.filename}") from None
    try:
        tries = int(wait_s / POLL_S)
        while not _try_lock(handle):
            if pause is None or tries < 1:
                raise SinkError(_locked_reason(path, handle, wait_s))
            tries -= 1
            pause(POLL_S)
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(handle)


def _lock_of(path: Path) -> Path:
    return path.with_name(path.name + ".lock")


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
def _open_server(arguments: dict[str, Any], settings: dict[str, Any]) -> Iterator[Client]:
    place = f"{arguments['host']}:{arguments['port']}"
    try:
        client = clickhouse_connect.get_client(**arguments)
        _apply(client, settings)
    except Exception as error:
        raise SinkError(_server_reason(place, error, arguments["password"])) from None
    with _closing(client):
        yield client


def _apply(client: Any, settings: dict[str, Any]) -> None:
    """Set what is left to set: a user whose profile only reads may set little or nothing, nor need it be set."""
    if getattr(client.server_settings.get("readonly"), "value", "0") == "0":
        for name, value in settings.items():
            client.set_client_setting(name, value)


def _server_arguments(dsn: str) -> dict[str, Any]:
    try:
        parts = urlsplit(dsn)
        port = parts.port
    except ValueError:
        # What the library says would quote the address, and a password with it that was not escaped.
        reason = "host or port are malformed; a password needs %2F for /, %3F for ?, %23 for #"
        raise SinkError(f"cannot read the ClickHouse address {safe_dsn(dsn)!r}: {reason}") from None
    try:
        return _arguments_of(parts, port)
    except ValueError as error:
        raise SinkError(f"cannot read the ClickHouse address {safe_dsn(dsn)!r}: {error}") from None


def _arguments_of(parts: SplitResult, port: int | None) -> dict[str, Any]:
    options = dict(parse_qsl(parts.query))
    unknown = sorted(set(options) - set(_OPTIONS))
    if unknown:
        raise ValueError(f"unknown option {unknown[0]}; known: {', '.join(_OPTIONS)}")
    if not parts.hostname:
        raise ValueError("it names no host")
    return {
        "interface": parts.scheme,
        "host": parts.hostname,
        "port": port or (8443 if parts.scheme == "https" else 8123),
        "username": unquote(parts.username or "default"),
        "password": unquote(parts.password or ""),
        "database": unquote(parts.path.strip("/")) or "default",
        # One session takes one query at a time; without one, a client may be shared.
        "autogenerate_session_id": False,
        **options,
    }


def _server_reason(place: str, error: Exception, password: str) -> str:
    if cause := no_answer(error):
        return f"cannot reach ClickHouse at {place}: {cause}"
    line = one_line(error)
    line = line.replace(password, "***") if password else line
    return f"ClickHouse at {place} refuses: {line}"


@contextmanager
def _closing(client: Any) -> Iterator[Client]:
    try:
        yield client
    finally:
        client.close()
