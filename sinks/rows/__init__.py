"""Records to rows: pure functions, one file per family of tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sinks.rows.common import Block, Columns
from sinks.rows.comparisons import comparison_block
from sinks.rows.events import EVENT_KINDS, event_block
from sinks.rows.failures import dead_letter_block, late_block
from sinks.rows.findings import anomaly_block, incident_block, library_block, silence_block, template_block
from sinks.rows.fleet import node_history_block
from sinks.rows.meta import meta_block
from sinks.rows.stacks import merged_block
from sinks.rows.windows import window_blocks

__all__ = ["Block", "Columns", "blocks_of", "dead_letter_block"]


def blocks_of(kind: str, record: Any, run_id: str, sent: int) -> list[Block]:
    """The rows of a decoded record of schema ``kind``; none for a kind that is not stored.

    ``sent`` is the send time of the log record in nanoseconds.
    """
    if kind in EVENT_KINDS:
        return [event_block(kind, record, run_id)] if record.events else []
    if kind == "window":
        return window_blocks(record, run_id)
    if kind == "dead_letter":
        return [dead_letter_block(record, run_id, sent)]
    if kind == "merged_stacks":
        return [merged_block(record, run_id)] if record.classes else []
    if kind == "library":
        return [library_block(record, run_id)] if record.templates else []
    single_block = _SINGLES.get(kind)
    return [single_block(record, run_id)] if single_block else []


_SINGLES: dict[str, Callable[[Any, str], Block]] = {
    "late": late_block,
    "template": template_block,
    "anomaly": anomaly_block,
    "incident": incident_block,
    "node_history": node_history_block,
    "meta": meta_block,
    "silence": silence_block,
    "comparison": comparison_block,
}
