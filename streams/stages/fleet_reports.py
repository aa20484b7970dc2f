"""What the job stage tells the fleet stage of one job: incidents that changed, storage complained of, where it runs.

Where a job runs is told when it changes and now and then, since a fleet stage that was made to forget must learn it
again. It is looked up once a minute, and whenever something is told, so that a large job costs little.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec

from schemas.fleet import FleetReport, ReportedIncident, StorageComplaint
from schemas.ids import stable_id
from schemas.results import Incident, Symptom
from streams.incidents.scope import said_place
from streams.view import AttemptView

SECOND = 1_000_000_000
LOOKED_UP_NS = 60 * SECOND
TOLD_AGAIN_NS = 600 * SECOND
COMPLAINED_AGAIN_NS = 60 * SECOND
MOST_PLACES = 8
"""An incident that concerns more nodes points at none of them."""
MOST_ERRORS = 8
MOST_COMPLAINTS = 1_000
WITHIN_S: dict[Symptom, int] = {"crash": 30, "memory": 60, "hang": 60, "numerics": 60, "slowdown": 150}
"""How far from its onset a failure may lie: errors are dated, slowdowns found over some steps."""
MOST_WITHIN_NS = 600 * SECOND
STEPS = 2
"""So many steps before a job was missed it may have stood still already."""


class ReporterState(msgspec.Struct, kw_only=True):
    """What was last told: the cluster, a hash of the nodes, when these were looked up and told, and complaints."""

    cluster: str = ""
    nodes: str = ""
    looked: int = 0
    told: int = 0
    complained: dict[str, int] = {}


class Reporter:
    """Tells of one job; ``state`` is what it carries from window to window."""

    def __init__(self, job: str, state: ReporterState | None = None) -> None:
        self.job = job
        self.state = state or ReporterState()

    def report(
        self,
        end: int,
        views: Sequence[AttemptView],
        incidents: Sequence[Incident],
        complaints: Sequence[StorageComplaint] = (),
        cluster: str = "",
    ) -> list[FleetReport]:
        """What is new in the window that ends at ``end``; ``cluster`` is that of a job of which no attempt is known.

        The switches that its nodes hang under are told with the nodes, as far as they are known.
        """
        # Of a job that falls silent nobody tells the cluster any more: it is what it was.
        cluster = max((view.cluster for view in views), default="") or cluster or self.state.cluster
        before = self.gone(end) if self.state.told and self.state.cluster != cluster else []
        if before:
            self.state = ReporterState()
        self.state.cluster = cluster
        foreign = _foreign(views, cluster) if incidents or complaints else set()
        told = [reported(one, _view_of(views, one.attempt), foreign) for one in incidents]
        said = self._new_complaints([one for one in complaints if one.node not in foreign], end, cluster)
        nodes = self._nodes(end, views, looking=bool(told or said))
        if not told and not said and nodes is None:
            return before
        self.state.told = self.state.told or end
        above = _switches(views, nodes or ())
        return [*before, self._of(end, cluster, incidents=told, complaints=said, nodes=nodes, switches=above)]

    def of_no_job(self, end: int, complaints: Mapping[str, Sequence[StorageComplaint]]) -> list[FleetReport]:
        """What nodes on which no job runs complain of, by cluster; nothing of it makes a job."""
        new = {cluster: self._new_complaints(complaints[cluster], end, cluster) for cluster in sorted(complaints)}
        return [self._of(end, cluster, complaints=said) for cluster, said in new.items() if said]

    def gone(self, end: int) -> list[FleetReport]:
        """That nothing is heard of the job any more, if anything was ever told of it."""
        return [self._of(end, self.state.cluster, left=True)] if self.state.told else []

    def _of(self, end: int, cluster: str, *, left: bool = False, **said: object) -> FleetReport:
        report_id = stable_id("fleet_report", cluster, self.job, end, "left" if left else "")
        return FleetReport(id=report_id, cluster=cluster, job=self.job, end=end, left=left, **said)  # type: ignore[arg-type]

    def _nodes(self, end: int, views: Sequence[AttemptView], *, looking: bool) -> list[str] | None:
        """All nodes on which attempts run that were not given up; null where they are as told."""
        if not looking and end - self.state.looked < LOOKED_UP_NS:
            return None
        self.state.looked = end
        running = [view for view in views if view.superseded is None]
        nodes = sorted({node for view in running for node in view.node_names} - _foreign(views, self.state.cluster))
        told = stable_id(*nodes, *_switches(views, nodes).values()) if nodes else ""
        if told == self.state.nodes and (not nodes or end - self.state.told < TOLD_AGAIN_NS):
            return None
        self.state.nodes, self.state.told = told, end
        return nodes

    def _new_complaints(self, complaints: Sequence[StorageComplaint], end: int, cluster: str) -> list[StorageComplaint]:
        """Those that the cluster was not told within the last minute."""
        found = []
        for one in complaints:
            key = f"{cluster}|{one.storage}|{one.node}"
            if end - self.state.complained.get(key, 0) >= COMPLAINED_AGAIN_NS:
                self.state.complained[key] = end
                found.append(one)
        recent = sorted((at, key) for key, at in self.state.complained.items() if end - at < COMPLAINED_AGAIN_NS)
        self.state.complained = {key: at for at, key in recent[-MOST_COMPLAINTS:]}
        return found


def _switches(views: Sequence[AttemptView], nodes: Sequence[str]) -> dict[str, str]:
    known = {node: switch for view in views for node, switch in view.switches.items()}
    return {node: known[node] for node in nodes if node in known}


def _foreign(views: Collection[AttemptView], cluster: str) -> set[str]:
    """Nodes that ranks run on in another cluster than this one, where a node of the same name may be another.

    A job over several clusters is of the last of them by name; what it says of nodes elsewhere accuses none here.
    """
    identities = (member.identity for view in views for member in view.members.values())
    return {one.node for one in identities if one.cluster not in ("", cluster)}


def _view_of(views: Collection[AttemptView], attempt: str) -> AttemptView | None:
    return next((view for view in views if view.attempt == attempt), None)


def reported(incident: Incident, view: AttemptView | None, foreign: Collection[str] = ()) -> ReportedIncident:
    """The incident in short; of an attempt that is forgotten only what the incident itself says.

    At nodes that are ``foreign`` to the cluster that is told it does not point.
    """
    steps = 0 if view is None or incident.symptom == "crash" else STEPS * (view.clock.step_ns or 0)
    return ReportedIncident(
        incident=incident.id,
        attempt=incident.attempt,
        revision=incident.revision,
        published=incident.published,
        started=incident.onset if view is None else min(view.first, incident.onset),
        onset=incident.onset,
        within_ns=min(WITHIN_S[incident.symptom] * SECOND + steps, MOST_WITHIN_NS),
        symptom=incident.symptom,
        area=incident.area,
        severity=incident.severity,
        verdict=incident.verdict,
        reason=incident.reason,
        status=incident.status,
        resolution=incident.resolution,
        merged_into=incident.merged_into,
        place=said_place(incident.scope),
        named=bool(incident.suspects),
        nodes=[node for node in pointed_at(incident) if node not in foreign],
        devices=sorted(set(incident.scope.devices))[:MOST_PLACES],
        errors=[one.id for one in incident.templates if one.axis != "cross-job" and not one.absent][:MOST_ERRORS],
        labels=incident.labels,
    )


def pointed_at(incident: Incident) -> list[str]:
    """The nodes that an incident points at: those of its suspects, or of a fault that no rank is named for."""
    nodes, scope = {suspect.node for suspect in incident.suspects}, incident.scope
    # Of a job that is its ranks' place a decision concerns everybody; one without ranks is where its faults are.
    concerned = scope.kind in ("rank", "group", "stage") or (scope.kind == "job" and scope.ranks)
    if not incident.suspects and not concerned:
        nodes = set(scope.nodes)
    nodes -= {""}
    return sorted(nodes) if len(nodes) <= MOST_PLACES else []
