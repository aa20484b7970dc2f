"""Rows of stamped events, one table per kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from schemas.events import Alert, Batch, Collective, Log, Metric, Profile, Stack, Timeline
from sinks.rows.common import Block, Columns, event_columns

_NOTHING: list[str] = []
"""Shared by the rows that have no list; nothing changes a column's values."""


def event_block(kind: str, batch: Batch[Any], run_id: str) -> Block:
    """The batch's rows, one per event. Raises KeyError for a kind that has no table."""
    table, own_columns = _TABLES[kind]
    columns = event_columns(batch, run_id)
    columns.update(own_columns(batch.events))
    if kind == "log":
        # Several write under one node's name: its launcher, its kernel.
        columns["process_type"] = [event.process_type or batch.identity.process_type for event in batch.events]
    if kind in ("metric", "alert"):
        columns["device"] = [event.device or batch.identity.device or "" for event in batch.events]
    return Block(table, columns)


def _logs(events: Sequence[Log]) -> Columns:
    return {
        "stream": [event.stream for event in events],
        "level": [event.level for event in events],
        "text": [event.text for event in events],
        "file": [event.file for event in events],
        "file_offset": [event.offset for event in events],
        "line": [event.line for event in events],
        "signature": [event.signature for event in events],
        "parameters": [list(event.parameters) if event.parameters else _NOTHING for event in events],
    }


def _stacks(events: Sequence[Stack]) -> Columns:
    return {
        # The sampled process, which need not be the worker itself.
        "process_type": [event.process_type for event in events],
        "pid": [event.pid for event in events],
        "thread": [event.thread for event in events],
        "functions": [[frame.function for frame in event.frames] for event in events],
        "files": [[frame.file for frame in event.frames] for event in events],
        "lines": [[frame.line for frame in event.frames] for event in events],
        "active": [event.active for event in events],
        "failure": [event.failure for event in events],
    }


def _metrics(events: Sequence[Metric]) -> Columns:
    return {
        "name": [event.name for event in events],
        "value": [event.value for event in events],
        "nonfinite": [event.nonfinite for event in events],
        "unit": [event.unit for event in events],
        "counter": [event.counter for event in events],
        "pid": [event.pid for event in events],
    }


def _collectives(events: Sequence[Collective]) -> Columns:
    return {
        "group_name": [event.group for event in events],
        "group_ranks": [event.ranks for event in events],
        "sequence": [event.sequence for event in events],
        "operation": [event.operation for event in events],
        "state": [event.state for event in events],
        "input_sizes": [event.input_sizes for event in events],
        "output_sizes": [event.output_sizes for event in events],
        "dtype": [event.dtype for event in events],
        "created": [event.created or None for event in events],
        "point_to_point": [event.point_to_point for event in events],
        "tool": [event.tool for event in events],
        "library": [event.library for event in events],
        "started": [event.started or None for event in events],
        "duration_ns": [event.duration or None for event in events],
        "size_bytes": [event.size or None for event in events],
        "bandwidth_gbs": [event.bandwidth for event in events],
        "algorithm": [event.algorithm for event in events],
        "peer": [event.peer for event in events],
    }


def _profiles(events: Sequence[Profile]) -> Columns:
    return {
        "name": [event.name for event in events],
        "kind": [event.kind for event in events],
        "share": [event.share for event in events],
        "mean": [event.mean for event in events],
        "spread": [event.spread for event in events],
        "count": [event.count for event in events],
        "unit": [event.unit for event in events],
        "typical": [event.typical for event in events],
        "unrest": [event.unrest for event in events],
        "duration_ns": [event.duration or None for event in events],
        "steps": [event.steps for event in events],
        "first_step": [event.first_step for event in events],
        "world_size": [event.world_size for event in events],
        "unlisted": [event.unlisted for event in events],
        "recorded": [event.recorded for event in events],
    }


def _timelines(events: Sequence[Timeline]) -> Columns:
    return {
        "operations": [[event.names[place] for place in event.operations] for event in events],
        "starts_ns": [event.starts for event in events],
        "durations_ns": [_durations(event) for event in events],
        "microbatches": [event.microbatches or [-1] * len(event.operations) for event in events],
        "chunks": [event.chunks or [-1] * len(event.operations) for event in events],
        "left_out": [event.left_out for event in events],
    }


def _durations(event: Timeline) -> list[int]:
    """-1 where it is not known."""
    found = list(event.durations) if event.untimed else event.durations
    for place in event.untimed:
        found[place] = -1
    return found


def _alerts(events: Sequence[Alert]) -> Columns:
    return {
        "name": [event.name for event in events],
        "text": [event.text for event in events],
        "severity": [event.severity for event in events],
        "switch": [event.switch for event in events],
        "storage": [event.storage for event in events],
        "source": [event.source for event in events],
        "status": [event.status for event in events],
        "since": [event.time if event.since is None else event.since for event in events],
    }


_TABLES: dict[str, tuple[str, Callable[[Sequence[Any]], Columns]]] = {
    "log": ("logs", _logs),
    "stack": ("stacks", _stacks),
    "metric": ("metrics", _metrics),
    "collective": ("collectives", _collectives),
    "profile": ("profiles", _profiles),
    "timeline": ("timelines", _timelines),
    "alert": ("alerts", _alerts),
}

EVENT_KINDS = frozenset(_TABLES)
"""Kinds of events that have a table."""
