"""What a run found, read back from its log: the latest revision of each incident, and the report tools rely on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from schemas.codec import decode
from schemas.jobs import JobDescription
from schemas.ports import Entry, Log
from schemas.results import Anomaly, DeadLetter, Evidence, Incident, MergedClass, Suspect, SuspiciousTemplate, Window
from streams.job_description import merged_description
from streams.memberships import memberships

_SEVERITY = {"critical": 0, "warning": 1, "info": 2}
_STATUS = {"open": 0, "resolved": 1}
_GOES_ON = frozenset({"slowdown", "numerics"})
"""Symptoms of a job that goes on; all others are of one that stands still, has failed or is about to."""
_VERDICT = {"supported": 0, "ambiguous": 1, "unavailable": 2}


def revisions(log: Log, topic: str = "incidents") -> Iterator[Incident]:
    """All revisions in the log, in order of publication; one that was appended twice comes once."""
    found: dict[tuple[str, int], Incident] = {}
    for entry in _entries(log, topic):
        incident = incident_of(entry)
        found[incident.id, incident.revision] = incident
    yield from sorted(found.values(), key=publication)


def publication(incident: Incident) -> tuple[int, str, str, int]:
    """The order in which revisions are read: by time of publication, then by job, incident and revision."""
    return incident.published, incident.job, incident.id, incident.revision


def _entries(log: Log, topic: str) -> Iterator[Entry]:
    for partition in range(log.partitions(topic)):
        yield from log.read(topic, partition, 0, log.end(topic, partition))


def incident_of(entry: Entry) -> Incident:
    """The incident in an entry of the incidents topic."""
    incident: Incident = decode("incident", entry.value)
    return incident


def descriptions(log: Log) -> dict[str, JobDescription]:
    """What is known of each job, by its name."""
    told: dict[str, list[JobDescription]] = {}
    for entry in _entries(log, "windows"):
        # Few windows tell any of it, and to decode one that has much else to tell takes time.
        if b'"described":' not in entry.value or entry.headers.get("schema") != "window":
            continue
        window: Window = decode("window", entry.value)
        if window.described is not None:
            told.setdefault(window.identity.job, []).append(window.described)
    return {job: found for job in sorted(told) if (found := merged_description(told[job])) is not None}


def description_json(description: JobDescription) -> dict[str, Any]:
    """What is known of a job, all of its keys."""
    return {
        "framework": description.framework,
        "command": description.command,
        "world_size": description.world_size,
        **description.facets,
        "differing": description.differing,
        "scattered": description.scattered,
        "left_out": description.left_out,
    }


def dead_letters(log: Log) -> list[DeadLetter]:
    """What the stages could not read or sum up, in order of origin; one that was appended twice comes once."""
    found: dict[tuple[str, int, int, bytes, str], DeadLetter] = {}
    for entry in _entries(log, "dead-letters"):
        letter: DeadLetter = decode("dead_letter", entry.value)
        # Letters on windows and records of our own share a place; what they are of tells them apart.
        origin = letter.key if letter.partition < 0 else b""
        found[letter.topic, letter.partition, letter.offset, origin, letter.stage] = letter
    return [found[place] for place in sorted(found)]


def differences(log: Log) -> list[Anomaly]:
    """What profiles show to differ that opens no incident by itself, in order; what came twice comes once."""
    found: dict[str, Anomaly] = {}
    for entry in _entries(log, "anomalies"):
        anomaly: Anomaly = decode("anomaly", entry.value)
        if anomaly.layer == "profile" and anomaly.severity == "info":
            found[anomaly.id] = anomaly
    return sorted(found.values(), key=lambda one: (one.start, one.job, one.attempt, one.id))


def difference_json(found: Anomaly) -> dict[str, Any]:
    """A difference under the keys that evidence has, and whose it is."""
    piece = Evidence(
        layer=found.layer,
        detector=found.detector,
        start=found.start,
        end=found.end,
        text=found.text,
        peers=found.peers,
    )
    whose = {"job": found.job, "attempt": found.attempt, "axis": found.axis}
    return {**whose, **_evidence_json(piece), "library": found.library}


def latest(found: Iterator[Incident]) -> list[Incident]:
    """Each incident's newest revision: those of several jobs, each before those that it is made of, then the others.

    Within these the most important first. What pages nobody, as what is no longer of several jobs, stands among others.
    """
    newest: dict[str, Incident] = {}
    for incident in found:
        newest[incident.id] = incident
    ordered = sorted(newest.values(), key=_importance)
    known = memberships(ordered)
    wholes = [one for one in ordered if one.members and one.severity != "info"]
    parts: dict[str, list[Incident]] = {one.id: [] for one in wholes}
    others: list[Incident] = []
    for one in ordered:
        if one.id not in parts:
            parts.get(known.of(one), others).append(one)
    return [*(one for whole in wholes for one in (whole, *parts[whole.id])), *others]


def _importance(one: Incident) -> tuple[int, int, bool, int, int, str]:
    """By severity; then what is open before what is over, what has stopped a job before what slows one, the sure."""
    goes_on = one.symptom in _GOES_ON
    return _SEVERITY[one.severity], _STATUS[one.status], goes_on, _VERDICT[one.verdict], one.onset, one.id


def surest(found: Sequence[Incident]) -> Incident:
    """Of the most severe ones the first of the surest; of what is open still, that may not be known yet."""
    return min(found, key=lambda one: (_SEVERITY[one.severity], _VERDICT[one.verdict]))


def moment(time: int) -> str:
    """Nanoseconds as ``2026-11-29T12:00:00.000Z``."""
    return datetime.fromtimestamp(time // 1_000_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%S") + (
        f".{time // 1_000_000 % 1000:03d}Z"
    )


def as_json(incident: Incident, fleet: str = "") -> dict[str, Any]:
    """The incident under the keys of the report (DESIGN section 7); ``fleet`` is the id of what it is part of."""
    plain: dict[str, Any] = msgspec.to_builtins(incident)
    empty = {"ranks": ""}
    return {
        **{name: plain.get(name, default) for name, default in _PLAIN.items()},
        "published": moment(incident.published),
        "onset": moment(incident.onset),
        "suspects": [_suspect_json(suspect) for suspect in incident.suspects],
        "victims": {**empty, **plain.get("victims", {})},
        "missing": {**empty, **plain.get("missing", {})},
        "unobserved": {**empty, **plain.get("unobserved", {})},
        "scope": {**_SCOPE, **plain["scope"]},
        "templates": [_template_json(template) for template in incident.templates],
        "evidence": [_evidence_json(piece) for piece in incident.evidence],
        "stacks": [_stacks_json(kind) for kind in incident.stacks],
        "fleet": fleet,
        "next_step": incident.next_step,
    }


_PLAIN: dict[str, Any] = {
    "id": "",
    "job": "",
    "attempt": "",
    "symptom": "",
    "area": "",
    "severity": "",
    "verdict": "",
    "reason": "",
    "status": "",
    "resolution": "",
    "revision": 0,
    "iteration": None,
    "phase": "",
    "summary": "",
    "library": "",
    "notification_key": "",
    "merged_into": "",
    "cluster": "",
    "labels": {},
    "recurs": 0,
    "series": "",
    "members": [],
    "clocks": [],
}
"""Keys taken over as they are, with what stands where the record leaves them out."""

_SCOPE: dict[str, Any] = {"ranks": "", "nodes": [], "devices": [], "groups": [], "switches": [], "left_out": 0}


def _suspect_json(suspect: Suspect) -> dict[str, Any]:
    names = ("rank", "node", "role", "coordinates", "device", "score", "why", "kind", "switch")
    return {name: getattr(suspect, name) for name in names}


def _stacks_json(kind: MergedClass) -> dict[str, Any]:
    return {
        **{name: getattr(kind, name) for name in ("text", "process_type", "role", "thread", "observed")},
        "unobserved": [msgspec.structs.asdict(one) for one in kind.unobserved],
        "groups": [
            {name: getattr(group, name) for name in ("ranks", "place", "activity", "minority")} for group in kind.groups
        ],
        "more_groups": {"count": kind.rest, "ranks": kind.rest_ranks},
    }


def _template_json(template: SuspiciousTemplate) -> dict[str, Any]:
    return {**msgspec.structs.asdict(template), "first_seen": moment(template.first_seen)}


def _evidence_json(piece: Evidence) -> dict[str, Any]:
    return {
        "layer": piece.layer,
        "detector": piece.detector,
        "window": [moment(piece.start), moment(piece.end)],
        "text": piece.text,
        "peers": piece.peers,
    }
