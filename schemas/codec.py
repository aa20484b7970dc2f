"""Records to bytes and back: JSON by msgspec, schema and version in the headers."""

from __future__ import annotations

from typing import Any

import msgspec

from schemas import events, results
from schemas.comparison import Comparison
from schemas.deployment import Deployment
from schemas.fleet import FleetReport, NodeHistory
from schemas.library import Library
from schemas.meta import MetaAlert
from schemas.silences import Silence

VERSION = "1"

BATCHES: dict[str, type[events.Event]] = {
    "log": events.Log,
    "stack": events.Stack,
    "metric": events.Metric,
    "collective": events.Collective,
    "profile": events.Profile,
    "timeline": events.Timeline,
    "alert": events.Alert,
    "heartbeat": events.Heartbeat,
    "topology": events.Topology,
    "job": events.Job,
}
"""Kinds that travel in batches, by schema name."""

SINGLES: dict[str, type[msgspec.Struct]] = {
    "tick": events.Tick,
    "window": results.Window,
    "progress": results.Progress,
    "late": results.Late,
    "template": results.Template,
    "anomaly": results.Anomaly,
    "merged_stacks": results.MergedStacks,
    "notice": results.Notice,
    "incident": results.Incident,
    "fleet_report": FleetReport,
    "node_history": NodeHistory,
    "meta": MetaAlert,
    "comparison": Comparison,
    "dead_letter": results.DeadLetter,
    "snapshot": results.Snapshot,
    "deployment": Deployment,
    "library": Library,
    "silence": Silence,
}
"""Kinds of which a log record holds one, by schema name."""


class CodecError(ValueError):
    """A record that is not what its headers say; the message says why in one line."""


def _batch_type(event: type[events.Event]) -> Any:
    return events.Batch[event]  # type: ignore[valid-type]


TYPES: dict[str, Any] = {**{kind: _batch_type(event) for kind, event in BATCHES.items()}, **SINGLES}
_DECODERS = {kind: msgspec.json.Decoder(record) for kind, record in TYPES.items()}
_ENCODER = msgspec.json.Encoder(order="deterministic")
KINDS: dict[type[msgspec.Struct], str] = {
    **{record: kind for kind, record in SINGLES.items()},
    **{event: kind for kind, event in BATCHES.items()},
}
"""Schema names of records and of the events in batches, by type."""


def encode(record: msgspec.Struct) -> bytes:
    """The record's bytes; equal records give equal bytes."""
    return _ENCODER.encode(record)


def parts_of(batch: events.Batch[Any], most_bytes: int) -> list[list[Any]]:
    """The batch's events in runs that are at most so many bytes as batches; one event alone may be more."""
    if len(batch.events) < 2 or len(encode(batch)) <= most_bytes:
        return [batch.events]
    middle = len(batch.events) // 2
    halves = (batch.events[:middle], batch.events[middle:])
    return [part for half in halves for part in parts_of(msgspec.structs.replace(batch, events=half), most_bytes)]


def headers(kind: str) -> dict[str, str]:
    """The headers that every record carries."""
    return {"schema": kind, "version": VERSION}


def kind_of(record: msgspec.Struct) -> str:
    """The schema name of a record; a batch is named after its events, so an empty one has no kind."""
    if isinstance(record, events.Batch) and not record.events:
        raise CodecError("a batch without events has no kind")
    kind = KINDS.get(type(record.events[0]) if isinstance(record, events.Batch) else type(record))
    if kind is None:
        raise CodecError(f"{type(record).__name__} is no record")
    return kind


def decode(kind: str, value: bytes) -> Any:
    """The record in ``value``; newer versions decode too, since versions only add fields.

    Raises CodecError for an unknown kind, bytes that are not JSON, and values of the wrong type.
    """
    decoder = _DECODERS.get(kind)
    if decoder is None:
        raise CodecError(f"unknown schema {kind!r}")
    try:
        return decoder.decode(value)
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError) as error:
        raise CodecError(f"not a {kind} record: {error}") from None
