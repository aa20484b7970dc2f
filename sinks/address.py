"""Addresses of databases: which are understood, what they say, and how they are shown without their password."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from sinks.errors import SinkError

IN_MEMORY = ("", "memory", ":memory:")
"""Locations of the embedded engine that are no path."""

_FORMS = "chdb:///path, chdb://, http(s)://user:password@host:port/database"
_OPTIONS = ("verify", "ca_cert", "connect_timeout", "send_receive_timeout")
_OPTION = re.compile(r"([?&#])([^=&#]*)=([^&#]*)")


def check_dsn(dsn: str) -> None:
    """Raise SinkError if the address has no known form; nothing is opened."""
    kind = scheme(dsn)
    if kind == "chdb":
        place = location(dsn)
        if place not in IN_MEMORY and ("?" in place or not Path(place).is_absolute() or not Path(place).name):
            raise SinkError(
                f"{safe_dsn(dsn)}: an absolute path without '?' must follow, as in chdb:///var/lib/rankwatch"
            )
    elif kind in ("http", "https"):
        server_arguments(dsn)
    else:
        raise SinkError(f"unknown kind of ClickHouse address {safe_dsn(dsn)!r}; known: {_FORMS}")


def safe_dsn(dsn: str) -> str:
    """The address without its password, and without what unknown options hold.

    >>> safe_dsn("http://me:secret@host:8123/db?verify=0&password=secret")
    'http://me:***@host:8123/db?verify=0&password=***'
    """
    # A password may hold what looks like an option or a path, and an address may be malformed anywhere.
    head, at, place = dsn.rpartition("@")
    kind, mark, credentials = head.partition("://") if "://" in head else ("", "", head)
    user, colon, _ = credentials.partition(":")
    if colon and _OPTION.search(credentials):
        # The sign may belong to a password or to an option's value: nothing behind the colon is safe to show.
        return f"{kind}{mark}{user}:***"
    return _OPTION.sub(_safe_option, f"{kind}{mark}{user}{':***' if colon else ''}{at}{place}")


def _safe_option(option: re.Match[str]) -> str:
    return option[0] if option[2] in _OPTIONS else f"{option[1]}{option[2]}=***"


def scheme(dsn: str) -> str:
    """What stands before ``://``, in small letters; empty without it."""
    kind, mark, _ = dsn.partition("://")
    return kind.lower() if mark else ""


def location(dsn: str) -> str:
    """What stands behind ``://``."""
    return dsn.partition("://")[2]


def server_arguments(dsn: str) -> dict[str, Any]:
    """What the address of a server says, under the names of clickhouse-connect. Raises SinkError."""
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
