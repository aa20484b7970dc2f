"""Writes pictures into a folder, and never over what somebody else put there."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from rankwatch.errors import UsageError
from rankwatch.stackviews import flame, folded, speedscope, svg
from rankwatch.stackviews.picture import Picture, one_line

MARK = ".rankwatch-stacks.json"
"""Has a hash of each file that was written: what is still the same may be replaced."""

FORMATS: dict[str, tuple[str, Callable[[Picture], str]]] = {
    "svg": (".svg", svg.render),
    "folded": (".folded", folded.render),
    "speedscope": (".speedscope.json", speedscope.render),
    "flame": (".flame.txt", flame.render),
}
"""The formats by name: the end of the file's name, and what makes it."""

_STRANGE = re.compile(r"[^A-Za-z0-9._-]+")


def safe_name(text: str) -> str:
    """The text as a file's name that needs no quotes and leads to no other folder; empty if nothing of it is left."""
    return _STRANGE.sub("-", text).strip("-.")[:100]


def write(folder: Path, texts: Mapping[str, str], shows: str) -> tuple[list[Path], list[Path]]:
    """Write each text under its name into ``folder``, which is made if it is not there; returns what was written.

    What an earlier call wrote there is replaced. What shows something else than ``shows``, which stands for all that is
    seen, and is not written again, is removed and returned too. Raises UsageError for a file that is not from here or
    was changed since, before anything is written, and where nothing can be written.
    """
    try:
        return _written(folder, texts, _digest(shows.encode()))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"cannot write into {one_line(str(folder))}: {reason}; give another folder by --out") from None


def _written(folder: Path, texts: Mapping[str, str], shown: str) -> tuple[list[Path], list[Path]]:
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{one_line(str(folder))} is no folder; --out names the one that the files go into")
    before = _mark_of(folder)
    for name in texts:
        _check(folder / name, before.files.get(name))
    folder.mkdir(parents=True, exist_ok=True)
    kept = {name: digest for name, digest in before.files.items() if name not in texts and before.shows == shown}
    removed = []
    for name, digest in before.files.items():
        if name not in texts and name not in kept and _digest_of(folder / name) == digest:
            (folder / name).unlink()
            removed.append(folder / name)
    for name, text in texts.items():
        _replace(folder / name, text)
    mark = _Mark(shown, {**kept, **{name: _digest(text.encode()) for name, text in texts.items()}})
    _replace(folder / MARK, msgspec.json.encode(mark).decode() + "\n")
    return [folder / name for name in texts], removed


class _Mark(msgspec.Struct, frozen=True):
    """What lies in the file that marks a folder: hashes of what is shown, and of what each file held."""

    shows: str = ""
    files: dict[str, str] = {}


def _check(file: Path, digest: str | None) -> None:
    if os.path.lexists(file) and (digest is None or _digest_of(file) != digest):
        name = one_line(str(file))
        raise UsageError(f"{name} is not what rankwatch wrote there; move it away, or give another folder by --out")


def _mark_of(folder: Path) -> _Mark:
    """What an earlier call wrote, by name; nothing where that cannot be told."""
    try:
        mark = msgspec.json.decode((folder / MARK).read_bytes(), type=_Mark)
    except (OSError, msgspec.MsgspecError):
        return _Mark()
    return _Mark(mark.shows, {name: mark.files[name] for name in sorted(mark.files) if safe_name(name) == name})


def _digest_of(file: Path) -> str | None:
    """The hash of a file's content, null if it is none or is a link to one elsewhere."""
    if file.is_symlink() or not file.is_file():
        return None
    return _digest(file.read_bytes())


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _replace(file: Path, text: str) -> None:
    """Write the whole file or nothing of it."""
    beside = file.with_name(f".{file.name}.new")
    beside.unlink(missing_ok=True)
    with beside.open("x", encoding="utf-8", newline="\n") as stream:
        stream.write(text)
    beside.replace(file)
