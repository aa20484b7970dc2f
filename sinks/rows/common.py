"""Columns that all tables of workers share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from schemas.events import Batch, Event
from schemas.identity import Coordinate, Identity

Columns = dict[str, list[Any]]
"""Values by column name, all lists of one length; times are integer nanoseconds UTC."""

AXES = ("pp", "dp", "tp", "cp", "ep")
"""Coordinates that have a column of their own."""


class Block(NamedTuple):
    """Rows of one table, column by column."""

    table: str
    columns: Columns

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values()), ()))


def single(table: str, values: Mapping[str, Any]) -> Block:
    """A block of one row."""
    return Block(table, {name: [value] for name, value in values.items()})


def coordinates_text(coordinates: Mapping[str, Coordinate]) -> str:
    """Coordinates in alphabetical order.

    >>> coordinates_text({"pp": [0, 4], "dp": 1})
    'dp=1 pp=0,4'
    """
    return " ".join(
        f"{axis}={','.join(map(str, at)) if isinstance(at, list) else at}" for axis, at in sorted(coordinates.items())
    )


def axis_values(coordinates: Mapping[str, Coordinate]) -> dict[str, int | None]:
    """The coordinate of each of AXES; null where unknown or several."""
    found = {axis: coordinates.get(axis) for axis in AXES}
    return {axis: at if isinstance(at, int) else None for axis, at in found.items()}


def identity_values(identity: Identity, run_id: str) -> dict[str, Any]:
    """What every table of workers says of the worker."""
    return {
        "run_id": run_id,
        "job": identity.job,
        "attempt": identity.attempt,
        "cluster": identity.cluster,
        "node": identity.node,
        "worker": identity.worker,
        "rank": identity.rank,
        "rank_reason": identity.rank_reason,
        "local_rank": identity.local_rank,
        "process_type": identity.process_type,
        "role": identity.role,
        "worker_group": identity.group,
        **axis_values(identity.coordinates),
        "coordinates": coordinates_text(identity.coordinates),
        "device": identity.device or "",
    }


def event_columns(batch: Batch[Any], run_id: str) -> Columns:
    """What every table of events has: the worker, time, phase, iteration and where the event came from."""
    events: list[Event] = batch.events
    count = len(events)
    same = identity_values(batch.identity, run_id) | {
        "producer": batch.producer,
        "boot": batch.boot,
        "seq": batch.seq,
    }
    columns = {name: [value] * count for name, value in same.items()}
    columns["ts"] = [event.time for event in events]
    columns["time_source"] = [event.time_source for event in events]
    columns["precision_ns"] = [event.precision_ns for event in events]
    columns["phase"] = [event.phase for event in events]
    columns["iteration"] = [event.iteration for event in events]
    columns["event_index"] = list(range(count))
    return columns
