"""What a run found, read back from its log: the latest revision of each incident, and the report tools rely on."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec

from schemas.codec import decode
from schemas.ports import Entry, Log
from schemas.results import Incident

_SEVERITY = {"critical": 0, "warning": 1, "info": 2}
_VERDICT = {"supported": 0, "ambiguous": 1, "unavailable": 2}


def revisions(log: Log, topic: str = "incidents") -> Iterator[Incident]:
    """All revisions in the log, in order of publication; one that was appended twice comes once."""
    found: dict[tuple[str, int], Incident] = {}
    for partition in range(log.partitions(topic)):
        for entry in log.read(topic, partition, 0, log.end(topic, partition)):
            incident = incident_of(entry)
            found[incident.id, incident.revision] = incident
    yield from sorted(found.values(), key=lambda one: (one.published, one.job, one.id, one.revision))


def incident_of(entry: Entry) -> Incident:
    """The incident in an entry of the incidents topic."""
    incident: Incident = decode("incident", entry.value)
    return incident


def latest(found: Iterator[Incident]) -> list[Incident]:
    """Each incident's newest revision, the most important first."""
    newest: dict[str, Incident] = {}
    for incident in found:
        newest[incident.id] = incident
    return sorted(newest.values(), key=lambda one: (_SEVERITY[one.severity], _VERDICT[one.verdict], one.onset, one.id))


def moment(time: int) -> str:
    """Nanoseconds as ``2026-11-29T12:00:00.000Z``."""
    return datetime.fromtimestamp(time // 1_000_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%S") + (
        f".{time // 1_000_000 % 1000:03d}Z"
    )


def as_json(incident: Incident) -> dict[str, Any]:
    """The incident under the keys of the report (DESIGN section 7)."""
    plain: dict[str, Any] = msgspec.to_builtins(incident)
    return {
        "id": incident.id,
        "job": incident.job,
        "attempt": incident.attempt,
        "symptom": incident.symptom,
        "area": incident.area,
        "severity": incident.severity,
        "verdict": incident.verdict,
        "reason": incident.reason,
        "status": incident.status,
        "resolution": incident.resolution,
        "revision": incident.revision,
        "published": moment(incident.published),
        "onset": moment(incident.onset),
        "iteration": incident.iteration,
        "phase": incident.phase,
        "summary": incident.summary,
        "suspects": [
            {
                "rank": suspect.rank,
                "node": suspect.node,
                "role": suspect.role,
                "coordinates": suspect.coordinates,
                "device": suspect.device,
                "score": suspect.score,
                "why": suspect.why,
            }
            for suspect in incident.suspects
        ],
        "victims": {"ranks": incident.victims.ranks},
        "missing": {"ranks": incident.missing.ranks},
        "unobserved": {"ranks": incident.unobserved.ranks},
        "scope": {"ranks": "", "nodes": [], "devices": [], "groups": [], **plain["scope"]},
        "templates": [
            {
                "id": template.id,
                "text": template.text,
                "first_seen": moment(template.first_seen),
                "ranks": template.ranks,
                "axis": template.axis,
            }
            for template in incident.templates
        ],
        "evidence": [
            {
                "layer": piece.layer,
                "detector": piece.detector,
                "window": [moment(piece.start), moment(piece.end)],
                "text": piece.text,
                "peers": piece.peers,
            }
            for piece in incident.evidence
        ],
        "next_step": incident.next_step,
    }
