"""Opens the embedded engine, in a directory or in memory.

It holds one path per process, and one process per path. Another path can be opened after the first was closed. A
process in which it is open must not be forked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import clickhouse_connect

from sinks.address import IN_MEMORY
from sinks.errors import SinkError, one_line
from sinks.lock import Wait, lock_of, locked

_OURS = {"store", "metadata"}
"""What lies in the folder of an embedded database."""

_EMPTY = {"status", "tmp", "data"}
"""What the engine leaves in the folder of one in which nothing was made."""


@contextmanager
def open_embedded(location: str, settings: Mapping[str, Any], wait: Wait, who: str, *, make: bool) -> Iterator[Any]:
    """A client of clickhouse-connect over ``location``, locked as ``who``; a new database only to ``make`` one.

    Raises SinkError.
    """
    if location in IN_MEMORY:
        with closing(_connect(None, settings)) as client:
            yield client
        return
    path = Path(location)
    if path.exists() and not path.is_dir():
        raise SinkError(f"cannot open {path}: it is not a directory")
    if not make and not path.exists():
        raise SinkError(f"there is no database at {path}: `rankwatch diagnose` or `rankwatch sink` make one")
    if not lock_of(path).exists():
        _refuse_alien(path)
    with locked(path, wait, who):
        # Asked again: whoever held the lock until now may have been about to make the database.
        _refuse_alien(path)
        with closing(_connect(path, settings)) as client:
            yield client


def _refuse_alien(path: Path) -> None:
    """Raise SinkError for a folder that holds something, but no database: the engine would spread within it."""
    try:
        names = {entry.name for entry in path.iterdir()}
    except OSError:
        return
    if not names & _OURS and not names <= _EMPTY:
        raise SinkError(f"cannot open {path}: the folder is not empty and holds no database; name one that is new")


def _connect(path: Path | None, settings: Mapping[str, Any]) -> Any:
    try:
        return clickhouse_connect.get_client(interface="chdb", path=path and str(path), settings=dict(settings))
    except Exception as error:
        raise SinkError(_reason(path, str(error), one_line(error))) from None


def _reason(path: Path | None, text: str, line: str) -> str:
    place = path or "the engine in memory"
    # The engine prints why it cannot lock its directory to stderr, and leaves the reason of its exception empty.
    if "Cannot lock file" in text or "EmbeddedServer: . (" in text:
        return f"cannot open {place}: most likely a program that is not ours has it open; close that first"
    if "already" in text and "path" in text:
        return f"cannot open {place}: this process holds another embedded database; close that first"
    return f"cannot open {place}: {line}"
