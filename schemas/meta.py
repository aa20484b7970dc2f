"""What the pipeline says of itself: who is no longer heard, what is left out, who is behind, and that it lives."""

from __future__ import annotations

from typing import Literal

from schemas.ids import stable_id
from schemas.results import Record, Severity

WATCHDOG = "watchdog"
"""The alert that always fires: whoever no longer hears it knows that the pipeline is silent."""

Status = Literal["firing", "resolved"]


class MetaAlert(Record, frozen=True, omit_defaults=True, kw_only=True):
    """An alert about the pipeline, never about a job: that it begins (firing), or that it is over (resolved).

    ``name`` is what is wrong, a stable word, ``subject`` whose it is: a job and node, a partition, a worker. Both
    records of one alert have the same ``id`` and ``since``; ``time`` is when it is said. The ``watchdog`` fires about
    once a minute of event time for each partition of the job stage, and never resolves.
    """

    id: str
    name: str
    subject: str
    status: Status
    severity: Severity
    since: int
    time: int
    text: str
    cluster: str = ""


def meta_id(name: str, subject: str, since: int) -> str:
    """The id of the alert of that name and subject that began at ``since`` (ns).

    Not of its cluster, which may become known only while it fires.
    """
    return stable_id("meta", name, subject, since)
