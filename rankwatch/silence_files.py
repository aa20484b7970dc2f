"""Silences in a file, for use without a cluster: a JSON array, one silence a line."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import msgspec

from producers.inputs import Unused
from schemas.silences import Silence
from streams.silencing import MOST_SILENCES, SilenceError, checked, newest

MOST_BYTES = 16 * 1024 * 1024


def read_silences(path: Path) -> list[Silence]:
    """The latest version of each silence in a file, by id. Raises SilenceError, which names the file."""
    try:
        with path.open("rb") as file:
            text = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise SilenceError(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from None
    if len(text) > MOST_BYTES:
        raise SilenceError(f"{path}: larger than {MOST_BYTES} bytes, which no file of silences is")
    try:
        found = newest(map(checked, msgspec.json.decode(text, type=list[Silence])))
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError) as error:
        raise SilenceError(f"{path}: holds no silences: {' '.join(str(error).split())}") from None
    except SilenceError as error:
        raise SilenceError(f"{path}: {error}") from None
    if len(found) > MOST_SILENCES:
        raise SilenceError(f"{path}: holds more than {MOST_SILENCES} silences")
    return found


def usable_silences(path: Path | None) -> tuple[list[Silence], list[Unused]]:
    """The silences of a file, or why it has none that could be used: then nothing is silenced.

    A report that pages too much is worth more than none.
    """
    try:
        return ([] if path is None else read_silences(path)), []
    except SilenceError as error:
        why = str(error).removeprefix("cannot read ").removeprefix(f"{path}: ")
        return [], [Unused(str(path), 0, f"{why}; nothing is silenced")]


def write_silences(path: Path, silences: list[Silence]) -> None:
    """Write the file as a whole, or leave what was there. Raises SilenceError."""
    encoder = msgspec.json.Encoder(order="deterministic")
    rows = ",\n ".join(encoder.encode(one).decode() for one in silences)
    beside = path.with_name(path.name + ".part") if path.name else path
    try:
        beside.write_text(f"[\n {rows}\n]\n", encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        with suppress(OSError):
            beside.unlink()
        raise SilenceError(f"cannot write {path}: {(error.strerror or str(error)).lower()}") from None
