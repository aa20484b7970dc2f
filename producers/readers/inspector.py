"""Operations that NCCL's inspector writes down, a JSON line each: ``{header, metadata, coll_perf | p2p_perf}``.

Source: NCCL's plugins/profiler/inspector, formats v4.0 to v4.2 and its verbose form. A line is of one rank of a
communicator. Which lines are of one operation is told by the communicator's id, the kind of operation and ``coll_sn``,
which NCCL counts for each kind by itself. ``rank`` is that within the communicator.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from producers.inputs import Unused
from producers.observations import Observation, arrivals
from producers.owners import Owners
from producers.rows import Fields, Row, Rows, printable, values
from producers.scan import Source
from producers.times import possible
from schemas.events import Collective
from schemas.identity import Identity

MOST_MEMBERS = 256
"""Ranks of a communicator that are listed with each of its operations; of a larger one it would be a flood."""
_LONGEST = 200
_KINDS = (("coll_perf", "coll"), ("p2p_perf", "p2p"))
_DROPPED = ("num_dropped_coll_records", "num_dropped_p2p_records")
_LONGEST_US = 10**12


def fits(fields: Fields) -> bool:
    """Whether a row is one of the inspector's."""
    header, metadata = fields.get("header"), fields.get("metadata")
    if not isinstance(header, dict) or not isinstance(metadata, dict):
        return False
    return "id" in header and "dump_timestamp_us" in metadata


def read(source: Source) -> Rows:
    """The operations of a file; lines that are none are noted. Raises OSError."""
    rows: list[Row] = []
    unused: list[Unused] = []
    for number, value in values(source.path):
        try:
            found = _row(number, value)
        except ValueError as error:
            unused.append(Unused(source.file, number, str(error)))
            continue
        if isinstance(found, Row):
            rows.append(found)
        elif found:
            unused.append(Unused(source.file, number, "operations that the inspector has dropped", found))
    return Rows(source.file, rows, unused)


def _row(number: int, value: Any) -> Row | int:
    """An operation with the names that rows have, or how many the inspector says that it has left out."""
    if isinstance(value, ValueError):
        raise value
    if not isinstance(value, dict) or not fits(value):
        raise ValueError("not a row like the others of this file")
    header, metadata = value["header"], value["metadata"]
    stated = _whole(metadata["dump_timestamp_us"])
    if stated is None or not possible(stated * 1_000):
        raise ValueError(f"dump_timestamp_us is not a time between 2000 and 2100: {str(stated)[:40]}")
    for name, short in _KINDS:
        told = value.get(name)
        if isinstance(told, dict):
            return Row(number, stated * 1_000, _operation(header, metadata, told, short))
    dropped = value.get("dump_stats")
    if isinstance(dropped, dict):
        return sum(_whole(dropped.get(name)) or 0 for name in _DROPPED)
    raise ValueError("names no operation")


def _operation(header: Fields, metadata: Fields, told: Fields, short: str) -> Fields:
    times = told.get("event_trace_ts")
    sequence, kind = _whole(told.get(f"{short}_sn")), told.get(short)
    if sequence is None or not isinstance(kind, str):
        raise ValueError("an operation without a name or number")
    # Another tool that writes alike may count in other units; such times are left out.
    begun = _whole(times.get(f"{short}_start_ts")) if isinstance(times, dict) else None
    algorithm = [told.get(f"{short}_{part}") for part in ("algo", "proto")]
    found = {
        "node": _text(metadata.get("hostname")),
        "pid": _whole(metadata.get("pid")),
        "id": _text(header["id"]),
        "name": _text(header.get("comm_name")),
        "place": _whole(header.get("rank")),
        "size": _whole(header.get("n_ranks")),
        "operation": _text(kind),
        "sequence": sequence,
        "bytes": _whole(told.get(f"{short}_msg_size_bytes")),
        "duration": _nanoseconds(told.get(f"{short}_exec_time_us")),
        "bandwidth": _number(told.get(f"{short}_busbw_gbs")),
        "algorithm": " ".join(_text(part) for part in algorithm if isinstance(part, str)),
        "peer": _whole(told.get("p2p_peer")),
        "sends": short == "p2p",
        "created": begun * 1_000 if begun is not None and possible(begun * 1_000) else None,
        "started": _began(told, times),
    }
    return {name: value for name, value in found.items() if value not in (None, "")}


def _began(told: Fields, times: Any) -> int | None:
    """When the first channel's kernel began (ns), where the inspector was told to be verbose."""
    events = told.get("events")
    kernels = [one.get("event_trace_ts") for one in _objects(events) if one.get("event_type") == "KernelCh"]
    kernels += _objects(times.get("kernel_events")) if isinstance(times, dict) else []
    starts = [_whole(one.get("kernel_start_ts")) for one in _objects(kernels)]
    return min((time * 1_000 for time in starts if time is not None and possible(time * 1_000)), default=None)


def _objects(value: Any) -> list[Fields]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**62 else None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _LONGEST_US:
        return None
    return float(value) if math.isfinite(value) else None


def _nanoseconds(value: Any) -> int | None:
    micros = _number(value)
    return None if micros is None else round(micros * 1_000)


def _text(value: Any) -> str:
    return printable(value[:_LONGEST]) if isinstance(value, str) else ""


class _Process(msgspec.Struct, frozen=True):
    """A process as the inspector names it, in the job that the file belongs to."""

    home: str
    node: str
    pid: int


class _Members:
    """Which rank each process is, and which rank has which place in each communicator."""

    def __init__(self, tables: Sequence[Rows], owners: Owners) -> None:
        self._owners = owners
        self._ranks: dict[_Process, int] = {}
        self._places: dict[tuple[str, str], dict[int, _Process]] = defaultdict(dict)
        self._sizes: dict[tuple[str, str], int] = {}
        self._listed: dict[tuple[str, str], list[int]] = {}
        hosts: dict[str, set[str]] = defaultdict(set)
        for table in tables:
            home = owners.home(table.file)
            hosts[home].update(row.text("node") for row in table.rows)
        for table in tables:
            for row in table.rows:
                self._learn(table.file, row, len(hosts[owners.home(table.file)]) == 1)
        self._by_place()

    def _learn(self, file: str, row: Row, alone: bool) -> None:
        process, place = self._process(file, row), row.integer("place")
        if process is None:
            return
        key = (process.home, row.text("id"))
        if place is not None:
            self._places[key][place] = process
            self._sizes[key] = row.integer("size") or 0
        if process not in self._ranks:
            rank = self._by_pid(file, process, row.time, alone)
            if rank is not None:
                self._ranks[process] = rank

    def _process(self, file: str, row: Row) -> _Process | None:
        pid = row.integer("pid")
        return None if pid is None else _Process(self._owners.home(file), row.text("node"), pid)

    def _by_pid(self, file: str, process: _Process, time: int, alone: bool) -> int | None:
        """The rank of a process that is known; where no node is known only if all of it ran on one."""
        for node in dict.fromkeys((process.node, process.node.partition(".")[0])):
            worker = self._owners.of_process(file, node, process.pid, time)
            if worker is not None and (worker.node == node or (alone and not worker.node)):
                return worker.rank
        return None

    def _by_place(self) -> None:
        """In a communicator of all ranks the place is the rank, unless a process that is known says otherwise."""
        worlds = {home: self._owners.world(home) for home, _ in self._places}
        for (home, name), places in sorted(self._places.items()):
            size = self._sizes[home, name]
            told = {place: self._ranks[process] for place, process in places.items() if process in self._ranks}
            if size < 1 or worlds[home] != size or any(place != rank for place, rank in told.items()):
                continue
            for place, process in places.items():
                if place < size:
                    self._ranks.setdefault(process, place)

    def rank(self, file: str, row: Row) -> int | None:
        """The global rank that a row is of."""
        process = self._process(file, row)
        return None if process is None else self._ranks.get(process)

    def at(self, file: str, row: Row, place: int | None) -> int | None:
        """The rank that has a place in the communicator of a row."""
        process = self._places[self._owners.home(file), row.text("id")].get(-1 if place is None else place)
        return None if process is None else self._ranks.get(process)

    def members(self, file: str, row: Row) -> list[int]:
        """The ranks of a communicator in order of their places; empty unless all are known."""
        key = self._owners.home(file), row.text("id")
        if key not in self._listed:
            size = self._sizes.get(key, 0)
            ranks = [self.at(file, row, place) for place in range(size if size <= MOST_MEMBERS else 0)]
            known = [rank for rank in ranks if rank is not None]
            self._listed[key] = known if len(known) == size else []
        return self._listed[key]


def observe(tables: Sequence[Rows], owners: Owners) -> Iterable[Observation]:
    """The operations of all files, each of its rank where that is known."""
    members = _Members(tables, owners)
    for table in tables:
        for row, arrival in arrivals(table.rows):
            rank = members.rank(table.file, row)
            yield Observation(
                _identity(owners, table.file, row, rank),
                arrival,
                _event(members, table.file, row),
                table.file,
                row.line,
            )


def _identity(owners: Owners, file: str, row: Row, rank: int | None) -> Identity:
    if rank is not None:
        return owners.of_rank(file, rank, row.time)
    node = row.text("node")
    reason = f"nothing tells which rank process {row.integer('pid')} of {node or 'its node'} is"
    return Identity(job=owners.job(file, node), node=node, rank_reason=reason)


def _event(members: _Members, file: str, row: Row) -> Collective:
    bandwidth = row.fields.get("bandwidth")
    name, operation = row.text("name"), row.text("operation")
    return Collective(
        time=row.time,
        group=f"{name or 'communicator'} {row.text('id')}",
        ranks=members.members(file, row),
        sequence=row.integer("sequence") or 0,
        operation=operation,
        state="completed",
        created=row.integer("created") or 0,
        started=row.integer("started") or 0,
        duration=row.integer("duration") or 0,
        size=row.integer("bytes") or 0,
        bandwidth=bandwidth if isinstance(bandwidth, float) else None,
        algorithm=row.text("algorithm"),
        point_to_point=row.fields.get("sends") is True,
        peer=members.at(file, row, row.integer("peer")),
        tool="inspector",
    )
