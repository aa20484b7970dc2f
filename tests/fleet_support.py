"""Incidents of jobs as the fleet stage is told of them, in few words."""

from __future__ import annotations

from typing import Any

import msgspec

from schemas.fleet import FleetReport, ReportedIncident
from streams.fleet.together import Told

SECOND = 1_000_000_000
T0 = 1_795_975_830 * SECOND
WITHIN = {"hang": 60, "crash": 30, "memory": 60, "slowdown": 150, "numerics": 60}


def at(second: float) -> int:
    return T0 + round(second * SECOND)


def reported(second: float = 100.0, node: str = "node02", **changes: Any) -> ReportedIncident:
    """A hang in loading data that began then, of one rank on that node, in a job that ran since 0."""
    symptom = changes.get("symptom", "hang")
    one = ReportedIncident(
        incident="i",
        attempt="0",
        revision=1,
        published=at(second + 30),
        started=at(changes.pop("since", 0.0)),
        onset=at(second),
        within_ns=WITHIN[symptom] * SECOND,
        symptom="hang",
        area="data",
        severity="critical",
        verdict="supported",
        reason="one stands outside communication while its peers wait",
        status="open",
        place=f"rank 5 on {node}",
        named=True,
        nodes=[node] if node else [],
    )
    return msgspec.structs.replace(one, **changes)


def told(job: str, second: float = 100.0, node: str = "node02", **changes: Any) -> Told:
    return Told(job, reported(second, node, incident=changes.pop("incident", f"of {job}"), **changes))


def crashed(job: str, second: float = 100.0, node: str = "node02", **changes: Any) -> Told:
    """A rank that died by a signal."""
    like = {"symptom": "crash", "area": "unknown", "reason": "one died by a signal that nobody here had sent"}
    return told(job, second, node, **{**like, **changes})


def report(one: Told | str, end: float, *, number: int = 0, **changes: Any) -> FleetReport:
    """What a job tells in the window that ends then: an incident, or only what ``changes`` say."""
    job, incidents = (one, []) if isinstance(one, str) else (one.job, [one.incident])
    said = FleetReport(id=f"{job}|{end}|{number}", cluster="a", job=job, end=at(end), incidents=incidents)
    return msgspec.structs.replace(said, **changes)
