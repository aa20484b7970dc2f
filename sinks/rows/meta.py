"""Rows of what the pipeline says of itself."""

from __future__ import annotations

from schemas.meta import MetaAlert
from sinks.rows.common import Block, single


def meta_block(alert: MetaAlert, run_id: str) -> Block:
    """One row for each time that it is said."""
    return single(
        "meta_alerts",
        {
            "run_id": run_id,
            "cluster": alert.cluster,
            "id": alert.id,
            "name": alert.name,
            "subject": alert.subject,
            "status": alert.status,
            "severity": alert.severity,
            "since": alert.since,
            "ts": alert.time,
            "text": alert.text,
        },
    )
