"""Tables of worker starts: ``{rank, local_rank, node, pid, ts[, role, attempt]}`` a row."""

from __future__ import annotations

from collections import defaultdict

import msgspec

from producers.inputs import Unused
from producers.observations import Observation, arrivals
from producers.owners import Owners
from producers.rows import Fields, Row, Rows, printable, read_rows
from producers.scan import Source
from producers.times import SECOND
from producers.workers import FIRST_PID, Worker
from schemas.events import Topology

_REUSED = 10 * SECOND
"""How far apart two starts under one process id must lie to be of two processes; no id comes back sooner."""
_FEWEST = 3
"""How many ranks under one process id are no contradiction between two rows, but processes of their own."""
_MEASURED = ("_percent", "_bytes", "_switches", "status", "threads")


def fits(fields: Fields) -> bool:
    """Whether a row announces a worker: it names rank, local rank and process, and measures nothing."""
    return {"rank", "local_rank", "pid"} <= fields.keys() and not any(name.endswith(_MEASURED) for name in fields)


class Start(msgspec.Struct, frozen=True):
    """One worker start as its row states it; ``attempt`` is counted where the row does not say."""

    row: Row
    rank: int
    local_rank: int
    node: str
    pid: int
    attempt: str
    role: str


def read(source: Source) -> Rows:
    """The rows of a table; those without usable numbers are left aside. Raises OSError."""
    table = read_rows(source, fits)
    bad = [row for row in table.rows if None in (row.integer("rank"), row.integer("local_rank"), row.integer("pid"))]
    notes = [Unused(source.file, row.line, "rank, local_rank and pid must be whole numbers") for row in bad]
    lines = {row.line for row in bad}
    return Rows(table.file, [row for row in table.rows if row.line not in lines], table.unused + notes)


def starts(tables: list[Rows]) -> list[Start]:
    """All worker starts of one job in order of time, each process once."""
    rows = sorted((row for table in tables for row in table.rows), key=_order)
    found: list[Start] = []
    shared = _shared(rows)
    latest: dict[tuple[str, int, int], Start] = {}
    counted: dict[tuple[str, int, int], int] = {}
    for row in rows:
        node, pid = row.text("node"), row.integer("pid") or 0
        rank = row.integer("rank") or 0
        # Under an id that is that of several, each rank is a process of its own.
        apart = rank if (node, pid) in shared else -1
        before = latest.get((node, pid, apart))
        if before is not None and not _reused(before.row, row):
            continue
        local_rank = row.integer("local_rank") or 0
        count = counted.get((node, local_rank, apart), 0)
        counted[node, local_rank, apart] = count + 1
        stated = row.fields.get("attempt")
        attempt = printable(str(stated))[:64] if isinstance(stated, int | str) and str(stated) else str(count)
        latest[node, pid, apart] = Start(row, rank, local_rank, node, pid, attempt, row.text("role"))
        found.append(latest[node, pid, apart])
    return found


def _shared(rows: list[Row]) -> set[tuple[str, int]]:
    """The nodes and process ids that several ranks have: each container counts its processes from 1."""
    ranks: dict[tuple[str, int], set[int]] = defaultdict(set)
    for row in rows:
        ranks[row.text("node"), row.integer("pid") or 0].add(row.integer("rank") or 0)
    return {place for place, own in ranks.items() if len(own) >= (_FEWEST if place[1] != FIRST_PID else 2)}


def _reused(before: Row, row: Row) -> bool:
    """Whether a row announces another process under the id of one before it, not the same again."""
    attempts = before.fields.get("attempt"), row.fields.get("attempt")
    if None not in attempts:
        return attempts[0] != attempts[1]
    return before.integer("rank") != row.integer("rank") and row.time > before.time + _REUSED


def _order(row: Row) -> tuple[int, str, int]:
    return row.time, row.text("node"), row.integer("pid") or 0


def worker(start: Start, job: str) -> Worker:
    """The worker that a start announces."""
    return Worker(
        job=job,
        attempt=start.attempt,
        node=start.node,
        local_rank=start.local_rank,
        rank=start.rank,
        pid=start.pid,
        role=start.role,
        start=start.row.time,
    )


def observe(table: Rows, owners: Owners) -> list[Observation]:
    """A topology event for every start."""
    found = []
    for row, arrival in arrivals(table.rows):
        pid = row.integer("pid") or 0
        identity = owners.identity(table.file, row)
        event = Topology(time=row.time, pid=pid, world_size=row.integer("world_size"))
        found.append(Observation(identity, arrival, event, table.file, row.line))
    return found
