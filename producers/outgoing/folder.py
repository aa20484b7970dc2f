"""The folder of a spool: who holds it, what lies in it, and how far that was safe."""

from __future__ import annotations

import fcntl
import os
import re
from pathlib import Path

from producers.outgoing.frames import Segment
from producers.outgoing.position import Position

_NAME = re.compile(r"(\d{15})\.spool")


class SpoolError(RuntimeError):
    """A spool that somebody else holds; the message names the folder and the process."""


class Folder:
    """One folder, held by a lock on a file in it that goes with the process however it ends."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock = -1
        self.position = Position(root / "position")

    @property
    def held(self) -> bool:
        """Whether the folder is ours."""
        return self._lock >= 0

    def take(self) -> list[Segment]:
        """Make the folder ours; returns the files in it by number.

        Raises SpoolError if somebody else holds it, OSError if it cannot be made, read or written.
        """
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(self._root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _hold(lock, self._root)
            segments = self._segments()
        except BaseException:
            os.close(lock)
            raise
        self.position.load()
        self._lock = lock
        return segments

    def create(self, number: int) -> tuple[Segment, int]:
        """A new file and its descriptor for writing. Raises OSError."""
        path = self._root / f"{number:015d}.spool"
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        return Segment(number, path, 0, counted=True), file

    def said(self, error: OSError) -> str:
        """What is wrong, for people."""
        return f"spool {self._root} cannot be written: {error.strerror or error}"

    def release(self) -> None:
        """Let go of it."""
        self.position.close()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _segments(self) -> list[Segment]:
        found = []
        for path in self._root.iterdir():
            match = _NAME.fullmatch(path.name)
            if match and path.is_file():
                found.append(Segment(int(match.group(1)), path, path.stat().st_size))
        return sorted(found, key=lambda segment: segment.number)


def _hold(lock: int, root: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.pread(lock, 32, 0).decode("ascii", "replace").strip()
        who = f"process {owner}" if owner.isdigit() else "another process"
        raise SpoolError(f"spool {root} is held by {who}") from None
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
