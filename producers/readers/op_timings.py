"""Timings of all operations of training steps as StragglerAnalysis keeps them: a Parquet table and a YAML beside it.

One worker stands for its tensor-parallel group. The YAML names the trial and the sizes of its parallel layout.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import msgspec
import numpy as np

from producers.captures import Captures
from producers.inputs import Unused
from producers.observations import Observation
from producers.owners import Owners
from producers.readers.op_layouts import Layout, layout_of
from producers.readers.op_tables import Numbers, Timings
from producers.times import Moment
from producers.workers import NO_RUN
from schemas.events import Job, Timeline
from schemas.identity import Identity

MOST_TIMELINES = 200_000
MOST_OPERATIONS = 8_192
"""Of one worker in one step; of more the first ones are kept."""
NO_LAYOUT = "no YAML of its parallel layout was found; sizes are those of its own columns"
NO_TRACE = "a parallel layout, but no op timings beside it that it belongs to"


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
            left_out=part.stop - kept.stop + found.lost.get((int(columns["step"][part.start]), rank), 0),
            untimed=np.flatnonzero(columns["untimed"][kept]).tolist(),
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


def _workers_steps(columns: dict[str, Numbers]) -> list[slice]:
    """The runs of rows of one step and rank."""
    changes = (np.diff(columns["step"]) != 0) | (np.diff(columns["rank"]) != 0)
    edges = [0, *(np.flatnonzero(changes) + 1).tolist(), len(columns["step"])]
    return [slice(first, last) for first, last in pairwise(edges) if last > first]
