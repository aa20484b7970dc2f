"""Timings of all operations of training steps as StragglerAnalysis keeps them: a Parquet table and a YAML beside it.

Source: github.com/ByteDance-Seed/StragglerAnalysis, ``data/``. A row is one operation of one worker in one step:
``dp_rank, stage, rank, step, optype, start_ts, duration, seq_id, mc, mb_id, gmc``; times are in seconds from the
beginning of the step. One worker stands for its tensor-parallel group. The YAML names the trial and the sizes of its
parallel layout.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow
import pyarrow.parquet
import yaml

from producers.captures import Captures
from producers.inputs import Unused
from producers.observations import Observation
from producers.owners import Owners
from producers.rows import printable
from producers.scan import Source
from producers.times import SECOND, Moment
from producers.workers import NO_RUN
from schemas.events import Job, Timeline
from schemas.identity import MOST_RANKS, Identity

MAGIC = b"PAR1"
MOST_BYTES = 256 * 1024 * 1024
MOST_UNPACKED = 1024 * 1024 * 1024
MOST_ROWS = 2_000_000
"""That are kept: those of the last steps."""
MOST_TIMELINES = 200_000
MOST_SEEN = 50_000_000
MOST_STEPS = 100_000
MOST_NAMES = 256
LONGEST_NAME = 100
MOST_OPERATIONS = 8_192
"""Of one worker in one step; of more the first ones are kept."""
MOST_LAYOUT_BYTES = 16_384
LONGEST_S = 1e6
"""Seconds from the beginning of a step; nothing takes ten days."""
NO_LAYOUT = "no YAML of its parallel layout was found; sizes are those of its own columns"
NO_TRACE = "a parallel layout, but no op timings beside it that it belongs to"

_WHOLE = ("dp_rank", "stage", "rank", "step")
_MEASURED = ("start_ts", "duration")
_OPTIONAL = ("mb_id", "mc")
_SIZES = {"tp_size": "tp", "dp_size": "dp", "pp_size": "pp", "dsp_size": "dsp", "vpp_size": "vpp"}
_LAYOUT = re.compile(rb"^(?:pp|dp)_size:", re.MULTILINE)
_REFERENCES = re.compile(rb"[&*]\S|<<")
_Numbers = npt.NDArray[np.int64]


class Layout(msgspec.Struct, frozen=True):
    """What a YAML says: whose the layout is, and the sizes by axis."""

    file: str
    trial: str
    sizes: dict[str, int]


class Timings(msgspec.Struct, frozen=True):
    """The usable rows of a table as columns, by step, rank and start; ``names`` are of ``operations``.

    ``skipped`` is how many rows could not be used, by reason. Times are in ns, ``starts`` from the step's first.
    """

    file: str
    names: list[str]
    columns: dict[str, _Numbers]
    skipped: dict[str, int]

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
    try:
        return _read(source)
    except (pyarrow.ArrowException, UnicodeDecodeError, OverflowError, IndexError, KeyError) as error:
        raise ValueError(f"not a Parquet file that can be read: {_first_line(error)}") from None
    except OSError as error:
        if error.errno is not None:
            raise
        # What Arrow itself says of files that are no Parquet all through.
        raise ValueError(f"not a Parquet file that can be read: {_first_line(error)}") from None


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


def _whole_numbers(column: Any) -> _Numbers:
    return np.asarray(column.cast("int64", safe=False).fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)


def _named(column: Any, names: dict[str, int]) -> _Numbers:
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
    start, duration = whole["start_ts"], whole["duration"]
    with np.errstate(invalid="ignore"):
        timed = (np.abs(start) <= LONGEST_S) & (duration >= 0) & (duration <= LONGEST_S)
    placed = whole["optype"] >= 0
    for name in ("dp_rank", "stage", "rank"):
        placed &= (whole[name] >= 0) & (whole[name] < MOST_RANKS)
    placed &= (whole["step"] >= 0) & (whole["step"] < 2**62)
    for reason, good in (
        ("rows whose times are no numbers, negative or beyond all bounds", timed),
        ("rows without a rank, step or operation", placed | ~timed),
        ("rows of a rank that is also said to be elsewhere in the layout", _at_one_place(whole) | ~(placed & timed)),
    ):
        if not good.all():
            skipped[reason] = int((~good).sum())
    good = timed & placed & _at_one_place(whole)
    kept = {name: values[good] for name, values in whole.items()}
    starts = np.rint(kept.pop("start_ts") * SECOND).astype(np.int64)
    durations = np.rint(kept.pop("duration") * SECOND).astype(np.int64)
    columns = {"starts": starts, "durations": durations, "operations": kept.pop("optype"), **kept}
    columns.setdefault("mb_id", np.full(len(starts), -1))
    columns.setdefault("mc", np.full(len(starts), -1))
    ties = [columns[name] for name in ("mc", "mb_id", "durations", "operations")]
    order = np.lexsort((*ties, starts, columns["rank"], columns["step"]))
    columns = {name: values[order] for name, values in columns.items()}
    if len(order):
        _, of = np.unique(columns["step"], return_inverse=True)
        first = np.full(of.max() + 1, np.iinfo(np.int64).max)
        np.minimum.at(first, of, columns["starts"])
        columns["starts"] = columns["starts"] - first[of]
    return Timings(file, names, columns, skipped)


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


def is_layout(source: Source) -> bool:
    """Whether a file is a small YAML that gives sizes of a parallel layout. Raises OSError."""
    if not source.file.lower().endswith((".yaml", ".yml")) or source.size > MOST_LAYOUT_BYTES:
        return False
    return _LAYOUT.search(source.path.read_bytes()) is not None


def read_layout(source: Source) -> Layout:
    """The layout that a YAML holds. Raises OSError, and ValueError with the reason."""
    raw = source.path.read_bytes()
    if _REFERENCES.search(raw):
        # A small text with references may stand for a huge value.
        raise ValueError("a layout with references between its parts, which are not followed")
    try:
        value = yaml.safe_load(raw)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ValueError(f"not a YAML that can be read: {_first_line(error)}") from None
    known = value if isinstance(value, dict) else {}
    sizes = {axis: known[name] for name, axis in _SIZES.items() if _is_size(known.get(name))}
    if not sizes:
        raise ValueError("a layout whose sizes are no numbers of ranks")
    trial = known.get("trial_name")
    return Layout(source.file, printable(str(trial)[:LONGEST_NAME]) if isinstance(trial, str | int) else "", sizes)


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MOST_RANKS


def _first_line(error: Exception) -> str:
    return printable(str(error).partition("\n")[0][:200])


def layout_of(found: Timings, layouts: Sequence[Layout], tables: int) -> Layout | None:
    """The layout whose trial the file is named after, or the only one beside the only table; null if none fits it."""
    words = set(re.split(r"[^A-Za-z0-9]+", found.file.rpartition("/")[2]))
    named = [one for one in layouts if one.trial and set(re.split(r"[^A-Za-z0-9]+", one.trial)) <= words]
    fitting = named or (list(layouts) if tables == 1 else [])
    fitting = [one for one in fitting if _fits(found, one)]
    return fitting[0] if len(fitting) == 1 else None


def _fits(found: Timings, layout: Layout) -> bool:
    """Whether all replicas and stages of the table are within the sizes."""
    largest = {axis: int(found.columns[name].max(initial=-1)) for axis, name in (("dp", "dp_rank"), ("pp", "stage"))}
    return all(layout.sizes.get(axis, MOST_RANKS) > most for axis, most in largest.items())


def job_of(found: Timings, layouts: Sequence[Layout], tables: int) -> str:
    """What the table's job is called where nothing else tells: its trial; of several tables without, its file."""
    layout = layout_of(found, layouts, tables)
    if layout is not None and layout.trial:
        return layout.trial
    return NO_RUN if tables == 1 else found.file.rpartition("/")[2].removesuffix(".parquet")


def notes(tables: Sequence[Timings], layouts: Sequence[Layout]) -> Iterable[Unused]:
    """What of tables and layouts could not be used."""
    chosen = [layout_of(found, layouts, len(tables)) for found in tables]
    for found, layout in zip(tables, chosen, strict=True):
        if layout is None:
            yield Unused(found.file, 0, NO_LAYOUT)
        for reason, count in found.skipped.items():
            yield Unused(found.file, 0, reason, count)
    for one in layouts:
        if one not in chosen:
            yield Unused(one.file, 0, NO_TRACE)


def observe(
    tables: Sequence[Timings],
    layouts: Sequence[Layout],
    captures: Captures,
    owners: Owners,
    span: tuple[int, int],
) -> Iterable[Observation | Unused]:
    """A timeline for each worker and step, and the layout; all is observed when the trace was taken.

    Where nothing tells when that was it is the end of ``span`` (ns), which is all that the recording covers.
    """
    for found in tables:
        layout = layout_of(found, layouts, len(tables))
        told = max((row.time for row in captures.of(found.file)), default=None)
        moment = Moment(told, "captured", 0) if told else Moment(span[1], "inferred", span[1] - span[0])
        yield from _observe(found, layout, owners, job_of(found, layouts, len(tables)), moment)


def _observe(
    found: Timings, layout: Layout | None, owners: Owners, job: str, moment: Moment
) -> Iterable[Observation | Unused]:
    columns = found.columns
    identities: dict[int, Identity] = {}
    parts = _workers_steps(columns)
    if len(parts) > MOST_TIMELINES:
        yield Unused(found.file, 0, f"workers' steps before the last {MOST_TIMELINES}", len(parts) - MOST_TIMELINES)
    for place, part in enumerate(parts[-MOST_TIMELINES:]):
        rank = int(columns["rank"][part.start])
        if rank not in identities:
            at = {"dp": int(columns["dp_rank"][part.start]), "pp": int(columns["stage"][part.start])}
            identities[rank] = _identity(found.file, rank, at, owners, job, moment.time)
        kept = slice(part.start, min(part.stop, part.start + MOST_OPERATIONS))
        used, operations = np.unique(columns["operations"][kept], return_inverse=True)
        event = Timeline(
            time=moment.time,
            time_source=moment.source,
            precision_ns=moment.precision,
            iteration=int(columns["step"][part.start]),
            names=[found.names[code] for code in used.tolist()],
            operations=operations.tolist(),
            starts=columns["starts"][kept].tolist(),
            durations=columns["durations"][kept].tolist(),
            microbatches=np.clip(columns["mb_id"][kept], -1, 2**31 - 1).tolist(),
            chunks=np.clip(columns["mc"][kept], -1, 2**31 - 1).tolist(),
            left_out=part.stop - kept.stop,
        )
        yield Observation(identities[rank], moment.time, event, found.file, place)
    if identities:
        sizes = layout.sizes if layout else {}
        own = {axis: int(columns[name].max()) + 1 for axis, name in (("dp", "dp_rank"), ("pp", "stage"))}
        told = Job(time=moment.time, time_source=moment.source, precision_ns=moment.precision, layout=own | sizes)
        yield Observation(identities[min(identities)], moment.time, told, found.file, 0)


def _identity(file: str, rank: int, at: dict[str, int], owners: Owners, job: str, time: int) -> Identity:
    known = owners.of_rank(file, rank, time)
    own = owners.home(file) or owners.workers.job
    coordinates = {**known.coordinates, **at}
    return msgspec.structs.replace(known, job=known.job if own != NO_RUN else job, coordinates=coordinates)


def _workers_steps(columns: dict[str, _Numbers]) -> list[slice]:
    """The runs of rows of one step and rank."""
    changes = (np.diff(columns["step"]) != 0) | (np.diff(columns["rank"]) != 0)
    edges = [0, *(np.flatnonzero(changes) + 1).tolist(), len(columns["step"])]
    return [slice(first, last) for first, last in pairwise(edges) if last > first]
