"""Who has an embedded database open: one process at a time, by a lock on a file beside it.

The lock is the system's (flock) and ends with its holder, however that ends. What the file says is only for people:
the holder's process id, its host and its command.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from socket import gethostname

import msgspec

from sinks.errors import SinkError

POLL_S = 0.05
"""How often a locked path is tried again."""

REMEDY = "the embedded database serves one process at a time: stop that one first, or use a ClickHouse server"

_MOST = 200
"""Bytes of the file that are read; anybody may have written it."""


def _nothing(_: float | str) -> None:
    """Nobody waits, and nobody is told."""


class Wait(msgspec.Struct, frozen=True, kw_only=True):
    """Up to ``seconds``, by ``pause``, for whoever has the database open; ``say`` is told once who that is."""

    seconds: float = 0.0
    pause: Callable[[float], object] = _nothing
    say: Callable[[str], object] = _nothing


def lock_of(path: Path) -> Path:
    """The file beside a database."""
    return path.with_name(path.name + ".lock")


@contextmanager
def locked(path: Path, wait: Wait, who: str) -> Iterator[None]:
    """Hold ``<path>.lock`` as ``who``, a few words. Raises SinkError if another keeps it.

    The file stays behind: removing it would race with whoever waits for it.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(lock_of(path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise SinkError(f"cannot open {path}: {error.strerror}: {error.filename}") from None
    try:
        _acquire(path, handle, wait)
        _introduce(handle, who)
        _OURS.add(path)
        try:
            yield
        finally:
            _OURS.discard(path)
    finally:
        os.close(handle)


_OURS: set[Path] = set()
"""What this process has open."""


def _introduce(handle: int, who: str) -> None:
    # Only people read it: a disk that is full must not keep anybody from the database.
    with suppress(OSError):
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()} {gethostname()} {who}\n".encode(), 0)


def _acquire(path: Path, handle: int, wait: Wait) -> None:
    if path in _OURS:
        raise SinkError(f"{path} is already open in this process")
    if _try_lock(path, handle):
        return
    tries = int(wait.seconds / POLL_S)
    if tries:
        wait.say(f"{path} is open in {_holder(handle)}; waiting {wait.seconds:g} s for it")
    while not _try_lock(path, handle):
        if tries < 1:
            raise SinkError(f"{path} is open in {_holder(handle)}; {REMEDY}")
        tries -= 1
        wait.pause(POLL_S)


def _try_lock(path: Path, handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise SinkError(f"cannot lock {path}: {error.strerror}; the embedded database needs a local disk") from None
    return True


def _read(handle: int) -> tuple[int, str, str]:
    """Process id (0 for none), host and command as the file says, printable and on one line."""
    text = os.pread(handle, _MOST, 0).decode("utf-8", "replace").partition("\n")[0]
    number, _, rest = "".join(char if char.isprintable() else "?" for char in text).partition(" ")
    host, _, who = rest.partition(" ")
    return int(number) if number.isascii() and number.isdecimal() and len(number) < 10 else 0, host, who.strip()


def _holder(handle: int) -> str:
    pid, host, who = _read(handle)
    if host != gethostname():
        # Process ids mean nothing in another container or on another machine.
        return f"another process, {who} on {host}" if host and who else "another process"
    if not _lives(pid):
        return "another process"
    return f"process {pid} ({who})" if who else f"process {pid}"


def _lives(pid: int) -> bool:
    if pid < 1:
        return False
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return True
