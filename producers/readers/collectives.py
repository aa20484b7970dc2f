"""Flight-recorder dumps of PyTorch in their JSON form, and the table that says when they were captured."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from producers.inputs import Unused
from producers.observations import Observation
from producers.owners import Owners
from producers.rows import Fields, Row, Rows, parse, printable, read_rows
from producers.scan import Source
from producers.times import possible
from schemas.events import Collective, TimeSource

MOST_BYTES = 256 * 1024 * 1024
_KEPT = 50
_MOST_KEPT = 200
_TRAILING_NUMBER = re.compile(r"(\d{1,9})\D{0,8}$")
State = Literal["enqueued", "started", "completed"]


class Dump(msgspec.Struct, frozen=True):
    """One dump: its file, the entries that are objects, and the ranks of each group as far as they are known."""

    file: str
    entries: list[Fields]
    groups: dict[str, list[int]]
    skipped: int


def is_dump(value: Any) -> bool:
    """Whether a JSON value is a flight-recorder dump."""
    known = isinstance(value, dict) and isinstance(value.get("entries"), list)
    return known and bool({"pg_status", "pg_config", "version"} & value.keys())


def fits_table(fields: Fields) -> bool:
    """Whether a row says when a dump was captured."""
    return {"file", "captured"} <= fields.keys()


def read_table(source: Source) -> Rows:
    """The rows of a table of capture times. Raises OSError."""
    return read_rows(source, fits_table, clock="captured")


def read(source: Source) -> Dump | None:
    """The dump in a file, null if it is another kind of JSON. Raises OSError, and ValueError with the reason."""
    if source.size > MOST_BYTES:
        raise ValueError(f"JSON file of {source.size} bytes, more than {MOST_BYTES}")
    value = parse(source.path.read_bytes())
    if not is_dump(value):
        return None
    entries = [entry for entry in value["entries"] if _usable(entry)]
    return Dump(source.file, entries, _groups(value.get("pg_config")), len(value["entries"]) - len(entries))


def _usable(entry: Any) -> bool:
    return isinstance(entry, dict) and _integer(entry.get("collective_seq_id")) is not None


def _integer(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**62 else None


def _groups(config: Any) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for key, group in sorted(config.items()) if isinstance(config, dict) else []:
        listed = group.get("ranks") if isinstance(group, dict) else None
        if isinstance(listed, str):
            listed = [int(rank) for rank in re.findall(r"\d{1,9}", listed)]
        if isinstance(listed, list):
            # Gloo leaves the name empty; what it lists there are the ranks of the default group.
            found[str(key) or "0"] = [rank for rank in listed if _integer(rank) is not None]
    return found


def notes(dump: Dump) -> list[Unused]:
    """What of the dump could not be read."""
    found = [Unused(dump.file, 0, "entries without a sequence number", dump.skipped)] if dump.skipped else []
    if dump.entries and not any(_created(entry) for entry in dump.entries):
        found.append(Unused(dump.file, 0, "no entry has a time; used only if a table gives the capture time"))
    return found


def observe(dump: Dump, tables: Sequence[Rows], owners: Owners) -> list[Observation]:
    """The last operations of every group and all that are not completed, observed when the dump was captured."""
    rank, captured = _capture(dump.file, [table for table in tables if owners.beside(table.file, dump.file)])
    created = [time for entry in dump.entries if (time := _created(entry))]
    time = captured or max(created, default=0)
    time_source: TimeSource = "captured" if captured else "inferred"
    if not time:
        return []
    identity = owners.of_rank(dump.file, rank, time)
    return [
        Observation(identity, time, _event(entry, dump.groups, time, time_source), dump.file, place)
        for place, entry in enumerate(_kept(dump.entries))
    ]


def _capture(file: str, tables: Sequence[Rows]) -> tuple[int | None, int | None]:
    """Rank and capture time of a dump; a table speaks of the files beside and below it, the nearest one counts."""
    name = file.rpartition("/")[2]
    trailing = _TRAILING_NUMBER.search(name)
    rank = int(trailing.group(1)) if trailing else None
    found: list[tuple[int, Row]] = []
    for table in tables:
        beside = table.file.rpartition("/")[0]
        if not beside or file.startswith(f"{beside}/"):
            names = (name, file[len(beside) + 1 :] if beside else file)
            found += [(len(beside), row) for row in table.rows if row.text("file") in names]
    nearest = max((depth for depth, _ in found), default=0)
    best: int | None = None
    for row in (row for depth, row in found if depth == nearest):
        stated = row.integer("rank")
        rank = rank if stated is None else stated
        best = row.time if best is None else max(best, row.time)
    return rank, best


def _created(entry: Fields) -> int:
    time = _integer(entry.get("time_created_ns")) or 0
    return time if possible(time) else 0


def _group(entry: Fields) -> tuple[str, str]:
    group = entry.get("process_group")
    parts = [printable(str(part)) for part in group] if isinstance(group, list) else []
    return (parts[0] if parts else "", parts[1] if len(parts) > 1 else "")


def _kept(entries: list[Fields]) -> list[Fields]:
    groups: dict[tuple[str, str], list[Fields]] = defaultdict(list)
    for entry in entries:
        groups[_group(entry)].append(entry)
    kept: list[Fields] = []
    for _, own in sorted(groups.items(), key=lambda item: item[0]):
        first = len(own) - _KEPT
        chosen = [entry for at, entry in enumerate(own) if at >= first or _state(entry) != "completed"]
        kept.extend(chosen[-_MOST_KEPT:])
    return kept


def _state(entry: Fields) -> State:
    if entry.get("retired") is True or entry.get("time_discovered_completed_ns") or entry.get("state") == "completed":
        return "completed"
    return "started" if entry.get("state") == "started" else "enqueued"


def _sizes(value: Any) -> list[list[int]]:
    rows = value if isinstance(value, list) else []
    return [[size for size in row if _integer(size) is not None] for row in rows if isinstance(row, list)]


def _event(entry: Fields, groups: dict[str, list[int]], time: int, time_source: TimeSource) -> Collective:
    name, description = _group(entry)
    dtypes = entry.get("input_dtypes")
    point_to_point = entry.get("is_p2p") is True
    sequence = _integer(entry.get("p2p_seq_id")) if point_to_point else None
    return Collective(
        time=time,
        time_source=time_source,
        group=f"{name}:{description}",
        ranks=groups.get(name, []),
        sequence=max(_integer(entry["collective_seq_id"]) or 0, 0) if sequence is None else max(sequence, 0),
        operation=printable(str(entry.get("profiling_name") or "")).rpartition(":")[2],
        state=_state(entry),
        input_sizes=_sizes(entry.get("input_sizes")),
        output_sizes=_sizes(entry.get("output_sizes")),
        dtype=printable(str(dtypes[0])) if isinstance(dtypes, list) and dtypes else "",
        created=_created(entry),
        point_to_point=point_to_point,
    )
