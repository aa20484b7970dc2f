"""The incidents of one attempt: which anomalies belong together, and their revisions as windows close."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from schemas.ids import stable_id
from schemas.results import Anomaly, Incident, SuspiciousTemplate
from streams.incidents.blame import Situation, decide
from streams.incidents.compose import compose
from streams.stall import over
from streams.view import AttemptView, AttemptWindow

Suspicious = Callable[[AttemptView, int, list[int]], list[SuspiciousTemplate]]

FAMILY = {"hang": "standstill", "crash": "standstill", "memory": "standstill"}
KEPT_ANOMALIES = 60
QUIET_WINDOWS = 6
CONTEXT_NS = 30_000_000_000


class Open(msgspec.Struct, kw_only=True):
    """An incident's anomalies and its latest revision. The first anomaly is kept for good: it is the id."""

    first: str
    family: str
    anomalies: list[Anomaly]
    latest: Incident | None = None
    quiet: int = 0


class IncidentBookState(msgspec.Struct, kw_only=True):
    """Open incidents, in the order in which they began, and information that none has taken up yet."""

    incidents: list[Open] = []
    context: list[Anomaly] = []


class IncidentBook:
    """Takes the anomalies of closed windows in order; returns the revisions that they cause."""

    def __init__(self, state: IncidentBookState) -> None:
        self.state = state

    def close(
        self, view: AttemptView, window: AttemptWindow, anomalies: list[Anomaly], suspicious: Suspicious
    ) -> list[Incident]:
        """One closed window: join or open, decide anew, and say what changed."""
        for anomaly in anomalies:
            self._join(anomaly)
        revisions = []
        for incident in self.state.incidents:
            revision = self._revise(incident, view, window, suspicious)
            if revision is not None:
                incident.latest = revision
                revisions.append(revision)
        # What is resolved is published; a like finding later is a new incident.
        self.state.incidents = [one for one in self.state.incidents if not _resolved(one)]
        return revisions

    def _join(self, anomaly: Anomaly) -> None:
        family = FAMILY.get(anomaly.symptom, anomaly.symptom)
        joined = next((one for one in reversed(self.state.incidents) if one.family == family), None)
        if joined is not None:
            joined.anomalies.append(anomaly)
            del joined.anomalies[KEPT_ANOMALIES // 2 : -KEPT_ANOMALIES // 2]
            joined.quiet = 0
        elif anomaly.severity == "info":
            # Information opens nothing; it is remembered for an incident to come.
            self.state.context = [*self.state.context, anomaly][-KEPT_ANOMALIES:]
        else:
            context = [
                one
                for one in self.state.context
                if FAMILY.get(one.symptom, one.symptom) == family and one.end >= anomaly.start - CONTEXT_NS
            ]
            self.state.incidents.append(
                Open(first=anomaly.id, family=family, anomalies=[anomaly, *context[-KEPT_ANOMALIES // 4 :]])
            )

    def _revise(
        self, incident: Open, view: AttemptView, window: AttemptWindow, suspicious: Suspicious
    ) -> Incident | None:
        resolution = self._resolution(incident, view, window)
        situation = Situation(
            members={rank: view.node_of(rank) for rank in sorted(view.members)},
            now=window.end,
            window_ns=window.end - window.start,
            knows_layout=view.knows_layout,
            iterated=view.clock.time,
            step_ns=view.clock.step_ns or 0,
            exited=[rank for rank, member in sorted(view.members.items()) if member.exit is not None],
        )
        decision = decide(incident.anomalies, situation)
        ranks = [suspect.rank for suspect in decision.suspects if suspect.rank is not None]
        before = incident.latest
        composed = compose(
            incident_id=stable_id("incident", view.job, view.attempt, incident.first),
            revision=1 if before is None else before.revision + 1,
            published=window.end,
            view=view,
            decision=decision,
            anomalies=incident.anomalies,
            templates=suspicious(view, decision.onset, ranks),
            resolution=resolution,
        )
        return composed if before is None or _differs(before, composed) else None

    def _resolution(self, incident: Open, view: AttemptView, window: AttemptWindow) -> str:
        """Why the incident is over, or an empty string."""
        seen = any(anomaly.end == window.end for anomaly in incident.anomalies)
        incident.quiet = 0 if seen else incident.quiet + 1
        if view.stopped is not None:
            return "the job was stopped by its owner"
        if view.superseded is not None:
            return "a new attempt has begun"
        if incident.quiet > 0 and over(view):
            return "the attempt has ended"
        if incident.quiet >= QUIET_WINDOWS and incident.family == "slowdown":
            return "it no longer shows"
        progressed = view.clock.time is not None and view.clock.time > window.start
        if incident.quiet > 0 and incident.family == "standstill" and progressed:
            return "iterations go on"
        return ""


def _resolved(incident: Open) -> bool:
    return incident.latest is not None and incident.latest.status == "resolved"


_TELLING = (
    "verdict",
    "symptom",
    "area",
    "severity",
    "status",
    "reason",
    "onset",
    "templates",
    "unobserved",
    "missing",
    "victims",
)


def _differs(before: Incident, after: Incident) -> bool:
    """Whether a revision says anything new; evidence of one more window of the same alone does not."""
    if any(getattr(before, name) != getattr(after, name) for name in _TELLING):
        return True
    ranks = [[suspect.rank for suspect in one.suspects] for one in (before, after)]
    kinds = [{(e.layer, e.detector) for e in one.evidence} for one in (before, after)]
    return ranks[0] != ranks[1] or kinds[0] != kinds[1]
