"""A library as a file: JSON that people read and compare, one template a line."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import msgspec

from schemas.codec import CodecError, decode
from schemas.library import Library
from streams.library.record import LibraryError

MOST_BYTES = 64 * 1024 * 1024


def text_of(library: Library) -> str:
    """The library as text; equal libraries give equal texts."""
    encoder = msgspec.json.Encoder(order="sorted")
    raw = {name: msgspec.Raw(encoder.encode(value)) for name, value in msgspec.structs.asdict(library).items()}
    # Those without profiles are written as they were before there were any.
    if not library.functions:
        del raw["functions"]
    for name in sorted({"jobs", "templates", "functions"} & raw.keys()):
        rows = b",\n ".join(encoder.encode(one) for one in getattr(library, name))
        raw[name] = msgspec.Raw(b"[\n " + rows + b"\n]" if rows else b"[]")
    return "{\n" + ",\n".join(f'"{name}": {bytes(value).decode()}' for name, value in raw.items()) + "\n}\n"


def library_in(text: bytes, source: str) -> Library:
    """The library in a file's bytes. Raises LibraryError, which names the file, for what is none."""
    try:
        found: Library = decode("library", text)
    except CodecError as error:
        raise LibraryError(f"{source}: {' '.join(str(error).split())}") from None
    return found


def read_library(path: Path) -> Library:
    """The library in a file. Raises LibraryError."""
    try:
        with path.open("rb") as file:
            text = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise LibraryError(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from None
    if len(text) > MOST_BYTES:
        raise LibraryError(f"{path}: larger than {MOST_BYTES} bytes, which no library is")
    return library_in(text, str(path))


def write_library(path: Path, library: Library) -> None:
    """Write the file as a whole, or leave what was there. Raises LibraryError."""
    if not path.name:
        raise LibraryError(f"cannot write {path}: is a directory")
    beside = path.with_name(path.name + ".part")
    try:
        beside.write_text(text_of(library), encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        with suppress(OSError):
            beside.unlink()
        raise LibraryError(f"cannot write {path}: {(error.strerror or str(error)).lower()}") from None
