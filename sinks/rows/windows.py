"""Rows of windows, and of the ranks and jobs that windows speak of."""

from __future__ import annotations

from typing import Any

from schemas import codec
from schemas.identity import NO_JOB, is_node
from schemas.results import Window
from sinks.rows.common import Block, axis_values, coordinates_text, identity_values, single
from sinks.rows.jobs import fact_block


def window_blocks(window: Window, run_id: str) -> list[Block]:
    """The window itself, its rank unless it is a node's, and its attempt and job unless the node is idle."""
    blocks = [single("windows", _window(window, run_id))]
    if not is_node(window.identity.worker):
        blocks.append(single("ranks", _rank(window, run_id)))
    if window.identity.job != NO_JOB:
        blocks.append(single("jobs", _job(window, run_id)))
        if window.described is not None and (facts := fact_block(window, window.described, run_id)).rows:
            blocks.append(facts)
    return blocks


def _window(window: Window, run_id: str) -> dict[str, Any]:
    return {
        **identity_values(window.identity, run_id),
        "id": window.id,
        "ts": window.start,
        "window_end": window.end,
        "phase": window.phase,
        "iteration": window.iteration,
        "iteration_time": window.iteration_time,
        "total_iterations": window.total_iterations,
        "log_records": window.log_records,
        "last_log": window.last_log,
        "heartbeats": window.heartbeats,
        "pids": window.pids,
        "world_size": window.world_size,
        "dropped": window.dropped,
        "stopped": window.stopped,
        "finished": window.finished,
        **_observations(window),
        "json": codec.encode(window).decode(),
    }


def _observations(window: Window) -> dict[str, Any]:
    reported, measured = window.reported, window.measured
    return {
        "signatures": [seen.signature for seen in window.signatures],
        "signature_counts": [seen.count for seen in window.signatures],
        "series_names": [series.name for series in reported],
        "series_last": [series.values[-1] if series.values else None for series in reported],
        "gauge_names": measured.names,
        "gauge_means": measured.means,
        "stack_activities": [span.activity for span in window.stacks],
        "stack_places": [span.frames[-1].function if span.frames else span.failure for span in window.stacks],
        "fatal_rules": [fatal.rule for fatal in window.fatals],
        "fatal_texts": [fatal.text for fatal in window.fatals],
        "fatal_times": [fatal.time for fatal in window.fatals],
        "fatal_templates": [fatal.template for fatal in window.fatals],
        "fatal_roles": [fatal.role for fatal in window.fatals],
        "fatal_process_types": [fatal.process_type for fatal in window.fatals],
        "fatal_values": [fatal.values for fatal in window.fatals],
        "exit_codes": [end.code for end in window.exits],
        "drift_metrics": [drift.metric for drift in window.drifts],
    }


def _rank(window: Window, run_id: str) -> dict[str, Any]:
    identity = window.identity
    return {
        "run_id": run_id,
        "job": identity.job,
        "attempt": identity.attempt,
        "worker": identity.worker,
        "rank": identity.rank,
        "local_rank": identity.local_rank,
        "node": identity.node,
        "cluster": identity.cluster,
        "process_type": identity.process_type,
        "role": identity.role,
        **axis_values(identity.coordinates),
        "coordinates": coordinates_text(identity.coordinates),
        "device": identity.device or "",
        "first_seen": window.start,
        "last_seen": window.end,
        "iteration": window.iteration,
    }


def _job(window: Window, run_id: str) -> dict[str, Any]:
    return {
        "run_id": run_id,
        "job": window.identity.job,
        "attempt": window.identity.attempt,
        "cluster": window.identity.cluster,
        "world_size": window.world_size,
        "iteration": window.iteration,
        "total_iterations": window.total_iterations,
        "layout": " ".join(f"{axis}={size}" for axis, size in sorted(window.layout.items())),
        "first_seen": window.start,
        "last_seen": window.end,
    }
