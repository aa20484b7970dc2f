"""Tables of op timings as StragglerAnalysis keeps them: a Parquet file whose rows are operations, as columns.

Source: github.com/ByteDance-Seed/StragglerAnalysis, ``data/``. A row is one operation of one worker in one step:
``dp_rank, stage, rank, step, optype, start_ts, duration, seq_id, mc, mb_id, gmc``; times are in seconds from the
beginning of the step.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow
import pyarrow.parquet

from producers.rows import printable
from producers.scan import Source
from producers.times import SECOND
from schemas.identity import MOST_RANKS

MAGIC = b"PAR1"
MOST_BYTES = 256 * 1024 * 1024
MOST_UNPACKED = 1024 * 1024 * 1024
MOST_ROWS = 2_000_000
"""That are kept: those of the last steps."""
MOST_SEEN = 50_000_000
MOST_STEPS = 100_000
MOST_NAMES = 256
LONGEST_NAME = 100
LONGEST_S = 1e6
"""Seconds from the beginning of a step; nothing takes ten days."""

_WHOLE = ("dp_rank", "stage", "rank", "step")
_MEASURED = ("start_ts", "duration")
_OPTIONAL = ("mb_id", "mc")
_NUMBER = "seq_id"
"""Of an operation among those of its kind of its worker and step; read where it is a whole number."""
UNTIMED = "rows whose start or duration is no number, negative or beyond all bounds; they count without a time"
LOST = "rows without a start or anything else that tells their order; their worker's step is not played"
Numbers = npt.NDArray[np.int64]


class Timings(msgspec.Struct, frozen=True):
    """The usable rows of a table as columns, by step, rank and start; ``names`` are of ``operations``.

    ``skipped`` is how many rows could not be used, by reason. Times are in ns, ``starts`` from the step's first. Rows
    that are ``untimed`` (1) are there without a time: their durations are 0, their starts only keep their order.
    ``lost`` counts the rows by step and rank of which not even the order is known.
    """

    file: str
    names: list[str]
    columns: dict[str, Numbers]
    skipped: dict[str, int]
    lost: dict[tuple[int, int], int]

    @property
    def rows(self) -> int:
        """How many rows can be used."""
        return len(self.columns["step"])


def is_parquet(path: Path) -> bool:
    """Whether a file begins as Parquet files do. Raises OSError."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def read(source: Source) -> Timings | None:
    """The table in a file, null if it is another. Raises OSError, and ValueError with the reason."""
    if source.size > MOST_BYTES:
        raise ValueError(f"file of {source.size} bytes, more than {MOST_BYTES}")
    if source.size > len(MAGIC) and not _ends(source.path):
        raise ValueError(f"a Parquet file that was cut off: none of its rows can be read from its {source.size} bytes")
    try:
        return _read(source)
    except (pyarrow.ArrowException, UnicodeDecodeError, OverflowError, IndexError, KeyError) as error:
        raise ValueError(f"not a Parquet file that can be read: {first_line(error)}") from None
    except OSError as error:
        if error.errno is not None:
            raise
        # What Arrow itself says of files that are no Parquet all through.
        raise ValueError(f"not a Parquet file that can be read: {first_line(error)}") from None


def _ends(path: Path) -> bool:
    """Whether a file ends as Parquet files do: behind the footer that tells where its rows are."""
    with path.open("rb") as file:
        file.seek(-len(MAGIC), os.SEEK_END)
        return file.read() == MAGIC


def _read(source: Source) -> Timings | None:
    with pyarrow.parquet.ParquetFile(
        source.path, thrift_string_size_limit=MOST_BYTES // 16, thrift_container_size_limit=1_000_000
    ) as file:
        schema, told = file.schema_arrow, file.metadata
        if not {*_WHOLE, *_MEASURED, "optype"} <= set(schema.names):
            return None
        if len(set(schema.names)) < len(schema.names):
            raise ValueError("op timings with two columns of one name")
        if wrong := _wrong_types(schema):
            raise ValueError(f"op timings whose columns are of other types: {', '.join(wrong)}")
        unpacked = sum(told.row_group(at).total_byte_size for at in range(told.num_row_groups))
        if unpacked > MOST_UNPACKED:
            raise ValueError(f"holds {unpacked} bytes unpacked, more than {MOST_UNPACKED}")
        if told.num_rows > MOST_SEEN:
            raise ValueError(f"holds {told.num_rows} rows, more than {MOST_SEEN}")
        wanted = [*_WHOLE, *_MEASURED, "optype", *(name for name in _OPTIONAL if name in schema.names)]
        if _NUMBER in schema.names and pyarrow.types.is_integer(schema.field(_NUMBER).type):
            wanted.append(_NUMBER)
        first, left_out = _first_step(file)
        names: dict[str, int] = {}
        parts, taken = [], 0
        for batch in file.iter_batches(batch_size=65_536, columns=wanted):
            part = _part(batch, names)
            late = part["step"] >= first
            parts.append({name: values[late][: MOST_ROWS - taken] for name, values in part.items()})
            left_out += int(late.sum()) - len(parts[-1]["step"])
            taken += len(parts[-1]["step"])
    if not taken:
        raise ValueError("op timings without a row")
    whole = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    # Names in alphabetical order, whichever came first.
    ordered = sorted(names)
    place = np.array([*(ordered.index(name) for name in names), -1], dtype=np.int64)
    whole["optype"] = place[whole["optype"]]
    return _usable(source.file, ordered, whole, left_out)


def _first_step(file: Any) -> tuple[int, int]:
    """From which step on there is room for all rows, and how many rows are of steps before it."""
    counted: dict[int, int] = {}
    for batch in file.iter_batches(batch_size=65_536, columns=["step"]):
        steps, counts = np.unique(_whole_numbers(batch.column("step")), return_counts=True)
        for step, count in zip(steps.tolist(), counts.tolist(), strict=True):
            counted[step] = counted.get(step, 0) + count
        if len(counted) > MOST_STEPS:
            raise ValueError(f"op timings of more than {MOST_STEPS} steps")
    room, first = MOST_ROWS, -(2**63)
    for step in sorted(counted, reverse=True):
        room -= counted[step]
        if room < 0 and first > -(2**63):
            return first, sum(count for other, count in counted.items() if other < first)
        first = step
    return -(2**63), 0


def _wrong_types(schema: Any) -> list[str]:
    types = pyarrow.types

    def text(kind: Any) -> bool:
        value = kind.value_type if types.is_dictionary(kind) else kind
        return bool(types.is_string(value) or types.is_large_string(value))

    wrong = [name for name in (*_WHOLE, *_OPTIONAL) if name in schema.names]
    wrong = [name for name in wrong if not types.is_integer(schema.field(name).type)]
    wrong += [name for name in _MEASURED if not types.is_floating(schema.field(name).type)]
    return wrong if text(schema.field("optype").type) else [*wrong, "optype"]


def _part(batch: Any, names: dict[str, int]) -> dict[str, npt.NDArray[Any]]:
    """A batch's columns; names become numbers, -1 where there is none, and missing whole numbers -1."""
    found: dict[str, npt.NDArray[Any]] = {}
    for name in batch.schema.names:
        column = batch.column(name)
        if name == "optype":
            found[name] = _named(column, names)
        elif name in _MEASURED:
            found[name] = column.cast("float64").to_numpy(zero_copy_only=False)
        else:
            found[name] = _whole_numbers(column)
    return found


def _whole_numbers(column: Any) -> Numbers:
    return np.asarray(column.cast("int64", safe=False).fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)


def _named(column: Any, names: dict[str, int]) -> Numbers:
    encoded = column if pyarrow.types.is_dictionary(column.type) else column.dictionary_encode()
    codes = []
    for name in encoded.dictionary.to_pylist():
        text = printable(name[:LONGEST_NAME]) if name else ""
        if text and text not in names and len(names) >= MOST_NAMES:
            raise ValueError(f"op timings with more than {MOST_NAMES} kinds of operations")
        codes.append(names.setdefault(text, len(names)) if text else -1)
    indices = encoded.indices.cast("int64").fill_null(len(codes)).to_numpy(zero_copy_only=False)
    return np.asarray(np.array([*codes, -1], dtype=np.int64)[indices])


def _usable(file: str, names: list[str], whole: dict[str, npt.NDArray[Any]], left_out: int) -> Timings:
    """The rows that make sense, in canonical order."""
    skipped = {f"rows beyond the {MOST_ROWS} of the last steps": left_out} if left_out else {}
    placed = whole["optype"] >= 0
    for name in ("dp_rank", "stage", "rank"):
        placed &= (whole[name] >= 0) & (whole[name] < MOST_RANKS)
    placed &= (whole["step"] >= 0) & (whole["step"] < 2**62)
    alone = _at_one_place(whole)
    starts, began = _starts(whole)
    with np.errstate(invalid="ignore"):
        ended = (whole["duration"] >= 0) & (whole["duration"] <= LONGEST_S)
    ordered = began | (starts >= 0)
    for reason, wrong in (
        (UNTIMED, placed & alone & ordered & ~(began & ended)),
        (LOST, placed & alone & ~ordered),
        ("rows without a rank, step or operation", ~placed),
        ("rows of a rank that is also said to be elsewhere in the layout", placed & ~alone),
    ):
        if wrong.any():
            skipped[reason] = int(wrong.sum())
    lost = Counter(zip(*(whole[name][placed & alone & ~ordered].tolist() for name in ("step", "rank")), strict=True))
    good = placed & alone & ordered
    timed = (began & ended)[good]
    kept = {name: values[good] for name, values in whole.items() if name not in ("start_ts", _NUMBER)}
    durations = np.rint(np.where(timed, kept.pop("duration"), 0.0) * SECOND).astype(np.int64)
    columns = {"starts": starts[good], "durations": durations, "operations": kept.pop("optype"), **kept}
    columns["untimed"] = (~timed).astype(np.int64)
    columns.setdefault("mb_id", np.full(len(durations), -1))
    columns.setdefault("mc", np.full(len(durations), -1))
    ties = [columns[name] for name in ("mc", "mb_id", "durations", "untimed", "operations")]
    order = np.lexsort((*ties, columns["starts"], columns["rank"], columns["step"]))
    columns = {name: values[order] for name, values in columns.items()}
    if len(order):
        _, of = np.unique(columns["step"], return_inverse=True)
        first = np.full(of.max() + 1, np.iinfo(np.int64).max)
        np.minimum.at(first, of, columns["starts"])
        columns["starts"] = columns["starts"] - first[of]
    return Timings(file, names, columns, skipped, dict(lost))


def _starts(whole: dict[str, npt.NDArray[Any]]) -> tuple[Numbers, npt.NDArray[np.bool_]]:
    """Starts in ns, and whether a row told its own.

    One that did not begins just behind the one before it of its worker, step and kind, by their sequence numbers, or
    just before the one after it; where there is none, when the same one of another worker of the stage begins; else -1.
    """
    with np.errstate(invalid="ignore"):
        began = np.abs(whole["start_ts"]) <= LONGEST_S
    # From a moment that no start lies before: -1 is none.
    starts = np.rint(np.where(began, whole["start_ts"], 0.0) * SECOND).astype(np.int64) + int(LONGEST_S * SECOND)
    starts[~began] = -1
    if began.all() or _NUMBER not in whole:
        return starts, began
    for names in ((_NUMBER, "optype", "rank", "step"), ("rank", _NUMBER, "optype", "stage", "step")):
        _fill(starts, [whole[name] for name in names], whole[_NUMBER] >= 0)
    return starts, began


def _fill(starts: Numbers, keys: list[Numbers], numbered: npt.NDArray[np.bool_]) -> None:
    """Put starts in for those that are -1, from the nearest one by the first key where all others are the same."""
    order = np.lexsort(keys)
    known = starts[order] >= 0
    group = np.concatenate([[0], np.cumsum(np.any([np.diff(key[order]) != 0 for key in keys[1:]], axis=0))])
    places = np.arange(len(order))
    before = np.maximum.accumulate(np.where(known, places, -1))
    after = np.minimum.accumulate(np.where(known, places, len(order))[::-1])[::-1]
    for near, some in ((after, after < len(order)), (before, before >= 0)):
        at = np.clip(near, 0, len(order) - 1)
        found = ~known & some & (group[at] == group) & numbered[order]
        starts[order[found]] = starts[order[at[found]]] + (places - at)[found]


def _at_one_place(whole: dict[str, npt.NDArray[Any]]) -> npt.NDArray[np.bool_]:
    """Of each row whether its rank has the same replica and stage in all rows."""
    ranks, of = np.unique(whole["rank"], return_inverse=True)
    alone = np.ones(len(ranks), dtype=bool)
    for name in ("dp_rank", "stage"):
        low = np.full(len(ranks), np.iinfo(np.int64).max)
        high = np.full(len(ranks), np.iinfo(np.int64).min)
        np.minimum.at(low, of, whole[name])
        np.maximum.at(high, of, whole[name])
        alone &= low == high
    return np.asarray(alone[of])


def first_line(error: Exception) -> str:
    """The first line of what a library says went wrong, cut where it is long."""
    return printable(str(error).partition("\n")[0][:200])
