"""Samples of processes and nodes: ``{ts, node, rank, pid, cpu_percent, …, status}`` a row."""

from __future__ import annotations

import math
from collections import defaultdict

from producers.observations import Observation, arrivals
from producers.owners import Owners
from producers.rows import Fields, Row, Rows, is_number, printable, read_rows
from producers.scan import Source
from producers.times import SECOND
from schemas.events import Heartbeat, Metric, Nonfinite, finite
from schemas.identity import Identity
from schemas.measures import based, is_blank, measure_of

_NOT_MEASURED = {"ts", "node", "rank", "local_rank", "pid", "attempt", "device", "gpu", "world_size"}
_UNITS = {
    "percent": "percent",
    "bytes": "bytes",
    "seconds": "s",
    "s": "s",
    "ms": "ms",
    "us": "us",
    "watts": "W",
    "celsius": "C",
    "mhz": "MHz",
    "ratio": "ratio",
}
"""By the last word of a name. Values stay in the size that their name says; only what ``measures`` knows is based."""
_STATES = {"process_running": "running", "process_disk_sleep": "disk-sleep", "process_zombie": "zombie"}


def fits(fields: Fields) -> bool:
    """Whether a row is a sample: it has a time and a process or node, and measures something."""
    measured = any(is_number(value) for name, value in fields.items() if name not in _NOT_MEASURED)
    return "ts" in fields and bool({"node", "rank", "pid"} & fields.keys()) and (measured or "status" in fields)


def read(source: Source) -> Rows:
    """The samples of a file. Raises OSError."""
    return read_rows(source, fits)


def alive(row: Row) -> bool:
    """Whether the sampled process still ran; a zombie has ended and only waits to be reaped."""
    return row.text("status") not in ("zombie", "dead")


def observe(table: Rows, owners: Owners) -> list[Observation]:
    """Metrics of every row, and a heartbeat for every node and round of sampling."""
    found: list[Observation] = []
    for row, arrival in arrivals(table.rows):
        identity = _identity(table.file, row, owners)
        events = [*_measured(row), *_states(row)]
        found.extend(Observation(identity, arrival, event, table.file, row.line) for event in events)
    return found + _heartbeats(table, owners)


def _identity(file: str, row: Row, owners: Owners) -> Identity:
    if row.integer("rank") is None and row.integer("pid") is None:
        return _sampler(file, row.text("node"), owners)
    return owners.identity(file, row)


def _sampler(file: str, node: str, owners: Owners) -> Identity:
    """A node as such, whoever runs on it."""
    return Identity(job=owners.job(file, node), node=node, rank_reason="node", process_type="sampler")


def _measured(row: Row) -> list[Metric]:
    device = row.fields.get("device", row.fields.get("gpu"))
    named = None if device is None or isinstance(device, dict | list) else printable(str(device))
    found = []
    for name, value in sorted(row.fields.items()):
        if name in _NOT_MEASURED or not is_number(value):
            continue
        number, reason = _finite(value)
        unit = _UNITS.get(name.rsplit("_", 1)[-1].lower(), "count")
        measure = measure_of(name)
        # What stands for no value stays as it is: scaled it would pass for one.
        if measure is not None and (number is None or not is_blank(name, number)):
            number, unit = (number, measure.unit) if number is None else based(number, "", measure)
        found.append(
            Metric(
                time=row.time,
                name=printable(name),
                value=number,
                nonfinite=reason,
                unit=unit,
                device=named,
                pid=row.integer("pid"),
                counter=measure is not None and measure.counter,
            )
        )
    return found


def _finite(value: float) -> tuple[float | None, Nonfinite]:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf if value > 0 else -math.inf
    return finite(number)


def _states(row: Row) -> list[Metric]:
    status = row.text("status")
    if not status:
        return []
    told = [
        Metric(time=row.time, name=name, value=float(status == state), unit="", pid=row.integer("pid"))
        for name, state in _STATES.items()
    ]
    if status == "stopped":
        # Few processes ever are, so it is told only of those.
        told.append(Metric(time=row.time, name="process_stopped", value=1.0, unit="", pid=row.integer("pid")))
    return told


def _heartbeats(table: Rows, owners: Owners) -> list[Observation]:
    rounds: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in table.rows:
        rounds[row.text("node"), row.time // SECOND].append(row)
    found = []
    for (node, _), rows in sorted(rounds.items()):
        # A process that has ended is no longer seen, though its entry lingers.
        pids = sorted({pid for row in rows if alive(row) and (pid := row.integer("pid")) is not None})
        time = max(row.time for row in rows)
        identity, event = _sampler(table.file, node, owners), Heartbeat(time=time, pids=pids)
        found.append(Observation(identity, time, event, table.file, max(row.line for row in rows)))
    return found
