"""One cluster in the fleet stage: what its jobs have reported, the failures of several of them, its nodes' history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from schemas.fleet import FleetReport, NodeHistory, ReportedIncident, StorageComplaint
from schemas.identity import NO_JOB
from schemas.ids import stable_id
from schemas.meta import MetaAlert
from schemas.results import Incident
from streams.fleet.compose import WITHDRAWN, composed
from streams.fleet.failure import Failure
from streams.fleet.failures import failures
from streams.fleet.left_out import LeftOutState, said_left_out
from streams.fleet.seen import Seen, Span
from streams.fleet.tallies import Counted, Tallies, TalliesState
from streams.fleet.together import Told
from streams.incidents.resolution import Resolution

KEPT_NS = 3600 * 1_000_000_000
"""For so long what is over may still prove to be of one failure with what is found late."""
MOST_JOBS = 20_000
MOST_INCIDENTS = 4_096
MOST_OF_A_JOB = 16
MOST_FAILURES = 4_096
MOST_PLACES = 20_000
"""Nodes that complain of storage, and nodes whose switches are known."""
COMPLAINT_GAP_NS = 600 * 1_000_000_000
"""A storage of which nobody has complained for so long has been well in between."""


class Kept(msgspec.Struct, kw_only=True):
    """An incident of a job as last reported, at ``at`` (ns), and where it is counted in the history of nodes."""

    job: str
    incident: ReportedIncident
    at: int
    counted: Counted = Counted()


class Known(msgspec.Struct, kw_only=True):
    """A failure of several jobs: its latest revision, and which incidents it was last made of."""

    latest: Incident
    keys: list[tuple[str, str]]


class Running(msgspec.Struct, kw_only=True):
    """The nodes of a job, and when it first and last reported (ns); one that is ``gone`` counts for what is found late.

    That is one that was forgotten or runs on no node any more. One that was written down without ``since`` ran before.
    """

    nodes: list[str]
    at: int
    since: int = 0
    gone: bool = False


class ClusterState(msgspec.Struct, kw_only=True):
    """What is carried from window to window; ``dropped`` counts what there was no room for, as ``left_out`` says."""

    cluster: str
    at: int = 0
    jobs: dict[str, Running] = {}
    incidents: list[Kept] = []
    failures: list[Known] = []
    complaints: dict[str, dict[str, Span]] = {}
    switches: dict[str, str] = {}
    tallies: TalliesState = msgspec.field(default_factory=TalliesState)
    dropped: int = 0
    left_out: LeftOutState = msgspec.field(default_factory=LeftOutState)


class ClusterKeeper:
    """Takes the reports of closed windows in order; returns revisions of fleet incidents and the history of nodes."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self._incidents = {(one.job, one.incident.incident): one for one in state.incidents}
        self._tallies = Tallies(state.tallies, [job.nodes for job in state.jobs.values() if not job.gone])

    def written(self) -> ClusterState:
        """The state to write down."""
        self.state.incidents = [self._incidents[key] for key in sorted(self._incidents)]
        return self.state

    def close(self, end: int, reports: Sequence[FleetReport]) -> tuple[list[Incident], list[NodeHistory]]:
        """Take in what the jobs reported in the window that ends at ``end``."""
        self.state.at = end
        telling = False
        # What a job says in the window in which it leaves, it says before.
        for report in sorted(reports, key=lambda one: (one.job, one.end, one.left, one.id)):
            telling |= self._take(report, end)
        self._forget(end)
        revisions = self._revised(end) if telling else []
        return revisions, self._tallies.told(self.state.cluster, end)

    def left_out(self, end: int) -> list[MetaAlert]:
        """What is to be said of all for which there was no room."""
        count = self.state.dropped + self.state.tallies.left_out
        return said_left_out(self.state.left_out, self.state.cluster, count, end)

    def _take(self, report: FleetReport, end: int) -> bool:
        """Take in one report; returns whether it may change which failures there are."""
        if report.job == NO_JOB:
            for complaint in report.complaints:
                self._take_complaint(complaint)
            return bool(report.complaints)
        for one in report.incidents:
            self._take_incident(report.job, one, end)
        for complaint in report.complaints:
            self._take_complaint(complaint)
        self.state.switches.update(report.switches)
        self._take_job(report, end)
        if report.left:
            self._end_all(report.job, end)
        return bool(report.incidents or report.complaints or report.left)

    def _take_job(self, report: FleetReport, end: int) -> None:
        """Where the job runs now; of one that runs nowhere any more is kept where it ran, and until when."""
        known = self.state.jobs.get(report.job)
        before = known.nodes if known and not known.gone else []
        after = [] if report.left else before if report.nodes is None else report.nodes
        self._tallies.moved(before, after, end)
        self._tallies.grown(after, end)
        if known is not None and known.nodes and not after:
            gone_at = known.at if known.gone else end
            self.state.jobs[report.job] = msgspec.structs.replace(known, at=gone_at, gone=True)
            return
        since = known.since if known and not known.gone else end
        self.state.jobs[report.job] = Running(nodes=after, at=end, since=since, gone=report.left)

    def _take_incident(self, job: str, one: ReportedIncident, end: int) -> None:
        before = self._incidents.get((job, one.incident))
        if before is not None and before.incident.revision > one.revision:
            return
        counted = self._tallies.count(one, before.counted if before else Counted(), end)
        self._incidents[job, one.incident] = Kept(job=job, incident=one, at=end, counted=counted)

    def _take_complaint(self, said: StorageComplaint) -> None:
        nodes = self.state.complaints.setdefault(said.storage, {})
        first, last = nodes.get(said.node, (said.first, said.last))
        if said.first > last + COMPLAINT_GAP_NS:
            first = said.first
        nodes[said.node] = min(first, said.first), max(last, said.last)

    def _end_all(self, job: str, end: int) -> None:
        """The job is gone; what it left open is over."""
        for kept in self._incidents.values():
            if kept.job == job and kept.incident.status == "open":
                over = Resolution.FORGOTTEN.value
                kept.incident = msgspec.structs.replace(kept.incident, status="resolved", resolution=over)
                kept.at = end

    def _revised(self, end: int) -> list[Incident]:
        """The failures as they are to be seen now, as revisions of those that are known or as new ones."""
        told = [Told(kept.job, kept.incident) for kept in self._incidents.values()]
        seen = Seen(
            incidents=told,
            running={job: frozenset(one.nodes) for job, one in self.state.jobs.items()},
            ran={job: (one.since, one.at if one.gone else end) for job, one in self.state.jobs.items()},
            switches=self.state.switches,
            complaints=self.state.complaints,
        )
        found = failures(seen)
        revisions: list[Incident] = []
        used: set[str] = set()
        owners = self._owners()
        for failure in found:
            places = {place for key in failure.keys for place in owners.get(key, ())}
            same = [self.state.failures[at] for at in sorted(places)]
            same = [one for one in same if one.latest.id not in used]
            known, revision = self._revise(failure, same[0] if same else None, end)
            used.add(known.latest.id)
            revisions += revision
            for other in same[1:]:
                used.add(other.latest.id)
                revisions += self._close(other, end, merged_into=known.latest.id)
        for one in self.state.failures:
            if one.latest.id not in used:
                revisions += self._close(one, end)
        return revisions

    def _owners(self) -> dict[tuple[str, str], list[int]]:
        """The places of known failures by the incidents that they were made of; the oldest first."""
        owners: dict[tuple[str, str], list[int]] = {}
        for at, one in enumerate(self.state.failures):
            for key in one.keys:
                owners.setdefault(key, []).append(at)
        return owners

    def _revise(self, failure: Failure, known: Known | None, end: int) -> tuple[Known, list[Incident]]:
        # With the window that found it: what is new never has the id of one that was forgotten or is another now.
        place = (failure.kind, failure.name, *failure.members[0].key)
        incident_id = known.latest.id if known else stable_id("fleet", self.state.cluster, *place, end)
        context = self._tallies.context(failure.name, end) if failure.kind == "node" else []
        revision = composed(
            incident_id=incident_id,
            revision=known.latest.revision + 1 if known else 1,
            published=end,
            cluster=self.state.cluster,
            failure=failure,
            context=context,
        )
        keys = [member.key for member in failure.members]
        if known is None:
            known = Known(latest=revision, keys=keys)
            self.state.failures.append(known)
            return known, [revision]
        known.keys = keys
        if not _differs(known.latest, revision):
            return known, []
        known.latest = revision
        return known, [revision]

    def _close(self, known: Known, end: int, merged_into: str = "") -> list[Incident]:
        """Take a failure back that is none any more, or part of another."""
        before = known.latest
        if not before.members:
            return []
        known.latest = msgspec.structs.replace(
            before,
            revision=before.revision + 1,
            published=end,
            severity="info",
            status="resolved",
            resolution=WITHDRAWN,
            merged_into=merged_into,
            members=[],
        )
        return [known.latest]

    def _forget(self, end: int) -> None:
        """Let go of what is long over, and of what there is no room for."""
        before = end - KEPT_NS
        self.state.failures = [
            one
            for one in self.state.failures
            if one.latest.status == "open" or one.latest.published >= before or self._is_open(one)
        ]
        self._bound_failures()
        held = {key for one in self.state.failures for key in one.keys}
        self._incidents = {
            key: kept
            for key, kept in self._incidents.items()
            if kept.incident.status == "open" or kept.at >= before or key in held
        }
        self._bound_incidents()
        self._bound_complaints(before)
        self._bound_switches()
        self.state.jobs = {job: one for job, one in self.state.jobs.items() if not one.gone or one.at >= before}
        self._bound_jobs(end)

    def _bound_failures(self) -> None:
        """Those that were taken back longest ago go: of those with members there are half as many as incidents."""
        over = len(self.state.failures) - MOST_FAILURES
        if over <= 0:
            return
        order = sorted(
            self.state.failures, key=lambda one: (bool(one.latest.members), one.latest.published, one.latest.id)
        )
        gone = {one.latest.id for one in order[:over]}
        self.state.failures = [one for one in self.state.failures if one.latest.id not in gone]
        self.state.dropped += over

    def _bound_jobs(self, end: int) -> None:
        over = len(self.state.jobs) - MOST_JOBS
        if over <= 0:
            return
        for _, job in sorted((one.at, job) for job, one in self.state.jobs.items())[:over]:
            running = self.state.jobs.pop(job)
            self._tallies.moved([] if running.gone else running.nodes, [], end)
            self.state.dropped += 1

    def _is_open(self, one: Known) -> bool:
        """Whether any of its incidents is still open, so that it may be seen again."""
        return any(kept.incident.status == "open" for key in one.keys if (kept := self._incidents.get(key)))

    def _bound_incidents(self) -> None:
        jobs = Counter(job for job, _ in self._incidents)
        if len(self._incidents) <= MOST_INCIDENTS and max(jobs.values(), default=0) <= MOST_OF_A_JOB:
            return
        # Those that are over go first, then those of which least is heard.
        order = sorted((kept.incident.status == "open", kept.at, key) for key, kept in self._incidents.items())
        for _, _, key in order:
            if jobs[key[0]] > MOST_OF_A_JOB or len(self._incidents) > MOST_INCIDENTS:
                jobs[key[0]] -= 1
                del self._incidents[key]
                self.state.dropped += 1

    def _bound_switches(self) -> None:
        """Those of nodes on which no job runs go first."""
        over = len(self.state.switches) - MOST_PLACES
        if over <= 0:
            return
        busy = {node for job in self.state.jobs.values() for node in job.nodes}
        for _, node in sorted((node in busy, node) for node in self.state.switches)[:over]:
            del self.state.switches[node]
        self.state.dropped += over

    def _bound_complaints(self, before: int) -> None:
        said = [
            (span[1], storage, node, span[0])
            for storage, nodes in self.state.complaints.items()
            for node, span in nodes.items()
            if span[1] >= before
        ]
        self.state.dropped += max(len(said) - MOST_PLACES, 0)
        said = sorted(said)[-MOST_PLACES:]
        self.state.complaints = {}
        for last, storage, node, first in said:
            self.state.complaints.setdefault(storage, {})[node] = (first, last)


_TELLING = (
    "symptom",
    "area",
    "severity",
    "verdict",
    "reason",
    "status",
    "onset",
    "scope",
    "members",
    "labels",
    "merged_into",
)


def _differs(before: Incident, after: Incident) -> bool:
    """Whether a revision says anything new."""
    return any(getattr(before, name) != getattr(after, name) for name in _TELLING)
