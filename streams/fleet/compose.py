"""A failure of several jobs as an incident that people read: where, since when, which jobs, what next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from schemas.identity import NO_JOB, shortened
from schemas.ids import notification_key
from schemas.results import Area, Evidence, Incident, JobIncident, Scope, Severity, Symptom
from streams.fleet.failure import Failure, FleetReason
from streams.fleet.together import Told
from streams.incidents.resolution import said_status
from streams.incidents.scope import said_place

SHOWN_MEMBERS = 8
LONGEST_PLACE = 200
OVER = "the incidents of its jobs are over"
WITHDRAWN = "its incidents are no longer seen to be of one failure"
_WORST: tuple[Severity, ...] = ("critical", "warning", "info")
_SYMPTOMS: tuple[Symptom, ...] = ("hang", "crash", "memory", "slowdown", "numerics")
_NEXT = {
    "node": "look at host, storage, PCIe and links of node {name} and run its hardware checks before it is used again",
    "switch": "look at switch {name}, its ports and the links to its nodes",
    "storage": "look at {name} and its servers; the jobs' nodes only wait for it",
}
_NEXT_OF_NO_PLACE = {
    FleetReason.SAME_ERROR: "compare code, settings and data of these jobs; no node is to be moved on this evidence",
    FleetReason.CLUSTER_WIDE: "look at what all jobs share: network, storage, scheduler, power; no place is suspected",
}


def composed(
    *,
    incident_id: str,
    revision: int,
    published: int,
    cluster: str,
    failure: Failure,
    context: Sequence[str] = (),
) -> Incident:
    """One revision; ``context`` is what is known of the place's past, shown behind the members."""
    members = failure.members
    scope = scope_of(failure, cluster)
    resolved = all(member.incident.status == "resolved" for member in members)
    first = members[0].incident
    jobs = len({member.job for member in members})
    symptom = _most(([member.incident.symptom for member in members]), _SYMPTOMS)
    return Incident(
        id=incident_id,
        revision=revision,
        published=published,
        job=NO_JOB,
        attempt="",
        symptom=symptom,
        area=_area(failure),
        severity=_severity(failure),
        verdict=failure.verdict,
        reason=failure.reason.value,
        status="resolved" if resolved else "open",
        resolution=OVER if resolved else "",
        onset=first.onset,
        summary=f"{symptom} of {jobs} jobs: {said_place(scope)} ({failure.verdict}; {failure.reason.value})",
        next_step=_next_step(failure),
        scope=scope,
        evidence=evidence_of(failure, published, context),
        notification_key=notification_key(NO_JOB, incident_id),
        cluster=cluster,
        labels=labels_of(members),
        members=[
            JobIncident(job=one.job, attempt=one.incident.attempt, incident=one.incident.incident) for one in members
        ],
    )


def labels_of(members: Sequence[Told]) -> dict[str, str]:
    """The labels that all members have, and alike."""
    first, *others = [member.incident.labels for member in members]
    return {name: first[name] for name in sorted(first) if all(one.get(name) == first[name] for one in others)}


def scope_of(failure: Failure, cluster: str) -> Scope:
    """The place; several jobs without one are of the cluster."""
    if failure.kind == "storage":
        return Scope(kind="fleet", name=f"storage {failure.name}", nodes=failure.nodes)
    if failure.kind == "fleet":
        return Scope(kind="fleet", name=f"cluster {cluster}" if cluster else "the cluster")
    switches = [failure.name] if failure.kind == "switch" else []
    return Scope(kind=failure.kind, name=failure.name, nodes=failure.nodes, devices=failure.devices, switches=switches)


def _next_step(failure: Failure) -> str:
    if failure.kind in _NEXT:
        return _NEXT[failure.kind].format(name=failure.name)
    return _NEXT_OF_NO_PLACE[failure.reason]


def _most(values: Sequence[Symptom], order: Sequence[Symptom]) -> Symptom:
    """The most frequent one; of equally frequent ones that which comes first in the order."""
    found = Counter(values)
    return max(found, key=lambda value: (found[value], -order.index(value)))


def _area(failure: Failure) -> Area:
    """The area that all members with one agree on; that of the place otherwise."""
    areas = {member.incident.area for member in failure.members} - {"unknown"}
    if failure.kind == "switch":
        return "network"
    if failure.kind == "storage":
        return "checkpoint" if areas == {"checkpoint"} else "data"
    return areas.pop() if len(areas) == 1 else "unknown"


def _severity(failure: Failure) -> Severity:
    """The worst of its members: how bad it is for them. How sure it is that they are one is the verdict's to say.

    What names no place and no error warns: nobody can do more by it than by its members.
    """
    if failure.reason is FleetReason.CLUSTER_WIDE:
        return "warning"
    return min((member.incident.severity for member in failure.members), key=_WORST.index)


def evidence_of(failure: Failure, published: int, context: Sequence[str]) -> list[Evidence]:
    """How each job was hit, the earliest first; then how others fare, and what is known of the place's past."""
    shown = [_piece(one) for one in failure.members[:SHOWN_MEMBERS]]
    rest = failure.members[SHOWN_MEMBERS:]
    start = failure.members[0].incident.onset
    more = [f"{len(rest)} more incidents, of jobs {shortened(', '.join(one.job for one in rest), 300)}"] if rest else []
    others = [_others(failure)] if failure.kind in ("node", "switch") else []
    said = [
        Evidence(layer="platform", detector="fleet", start=start, end=max(published, start), text=text)
        for text in (*more, *others, *context)
    ]
    return [*shown, *said]


def _others(failure: Failure) -> str:
    hit = len({one.job for one in failure.members})
    elsewhere = f"{failure.elsewhere} others were hit alike elsewhere" if failure.elsewhere else "nobody else was"
    return f"{hit} of {failure.there} jobs that run there were hit, and {elsewhere} at that time"


def _piece(one: Told) -> Evidence:
    incident = one.incident
    status = said_status(incident.resolution)
    over = f", {status}: {incident.resolution}" if incident.resolution else ""
    return Evidence(
        layer="platform",
        detector="fleet",
        start=incident.onset,
        end=max(incident.published, incident.onset),
        text=f"job {one.job}: {incident.symptom} of {shortened(incident.place, LONGEST_PLACE)}{over}",
        peers=f"incident {incident.incident}, {incident.verdict}: {incident.reason}",
    )
