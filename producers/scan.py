"""The files of a folder, in an order that no file system decides."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import msgspec

from producers.inputs import UnreadableRecording, Unused


class Source(msgspec.Struct, frozen=True):
    """One regular file: where it lies, and its posix path below the root that names it in results."""

    path: Path
    file: str
    size: int

    @property
    def parts(self) -> list[str]:
        """The components of the path below the root."""
        return self.file.split("/")


def scan(root: Path) -> tuple[list[Source], list[Unused]]:
    """All regular files below ``root``, sorted, and what cannot be read.

    Links are never followed: what a link inside the root points to is read where it lies, and what lies outside is
    not part of the recording. Pipes, sockets and devices are never opened. Raises UnreadableRecording if ``root`` is
    no folder.
    """
    if not root.exists():
        raise UnreadableRecording(f"no such folder: {root}")
    if not root.is_dir():
        raise UnreadableRecording(f"not a folder: {root}")
    sources: list[Source] = []
    unused: list[Unused] = []
    pending = [(root, "")]
    while pending:
        folder, prefix = pending.pop()
        for entry in _entries(folder, prefix, unused):
            file = prefix + _printable(entry.name)
            mode = _mode(entry, file, unused)
            if stat.S_ISDIR(mode):
                pending.append((Path(entry.path), f"{file}/"))
            elif stat.S_ISREG(mode):
                sources.append(Source(path=Path(entry.path), file=file, size=entry.stat(follow_symlinks=False).st_size))
            elif mode:
                unused.append(Unused(file, 0, _odd(mode)))
    return sorted(sources, key=lambda source: source.parts), unused


def _printable(name: str) -> str:
    # A name need not be UTF-8, but results must be.
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def _entries(folder: Path, prefix: str, unused: list[Unused]) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return sorted(found, key=lambda entry: entry.name)
    except OSError as error:
        if not prefix:
            raise UnreadableRecording(f"cannot read the folder {folder}: {error.strerror}") from None
        unused.append(Unused(prefix.rstrip("/"), 0, f"cannot be read: {error.strerror}"))
        return []


def _mode(entry: os.DirEntry[str], file: str, unused: list[Unused]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_mode
    except OSError as error:
        unused.append(Unused(file, 0, f"cannot be read: {error.strerror}"))
        return 0


def _odd(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "symbolic link, not followed"
    if stat.S_ISFIFO(mode):
        return "named pipe, not opened"
    if stat.S_ISSOCK(mode):
        return "socket, not opened"
    return "device, not opened"
