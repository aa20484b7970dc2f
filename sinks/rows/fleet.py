"""Rows of what is said across jobs: the history of nodes."""

from __future__ import annotations

from schemas.fleet import NodeHistory
from sinks.rows.common import Block, single


def node_history_block(history: NodeHistory, run_id: str) -> Block:
    """One row for this change."""
    return single(
        "node_history",
        {
            "run_id": run_id,
            "cluster": history.cluster,
            "node": history.node,
            "ts": history.published,
            "incidents": history.incidents,
            "node_days": history.node_days,
            "rate": history.rate,
            "cluster_rate": history.cluster_rate,
            "score": history.score,
            "counted": history.counted,
            "last": history.last,
        },
    )
