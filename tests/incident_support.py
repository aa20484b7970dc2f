"""Builders of incidents as they stand, for the decisions that hold them against each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from detection_support import at

from schemas.results import Anomaly, Incident, Scope, Severity, Suspect, Symptom
from streams.incidents.decision import Reason
from streams.incidents.proving import Told


def told(
    name: str,
    family: str,
    ranks: Sequence[int] = (),
    *,
    onset: float = 0,
    shown: float = 100,
    symptom: Symptom | None = None,
    severity: Severity = "critical",
    reason: Reason = Reason.OWN_ERROR,
    nodes: Sequence[str] = (),
    area: str = "unknown",
    anomalies: Sequence[Anomaly] = (),
) -> Told:
    symptoms: dict[str, Symptom] = {"standstill": "crash", "slowdown": "slowdown", "memory": "memory"}
    says: dict[str, Any] = {
        "id": name,
        "revision": 1,
        "published": at(shown),
        "job": "j",
        "attempt": "0",
        "symptom": symptom or symptoms.get(family, "numerics"),
        "area": area,
        "severity": severity,
        "verdict": "supported" if ranks else "ambiguous",
        "reason": reason.value,
        "status": "open",
        "onset": at(onset),
        "summary": "",
        "next_step": "",
        "scope": Scope(kind="job", name="j", nodes=list(nodes)),
        "suspects": [Suspect(rank=rank, node=f"node{rank // 2:02d}", score=0.9, why="") for rank in ranks],
    }
    return Told(
        id=name, family=family, says=Incident(**says), anomalies=anomalies, shown=at(shown), first=at(onset + 10)
    )
