"""The incidents of one attempt: which anomalies belong together, and their revisions as windows close."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from schemas.ids import stable_id
from schemas.results import Anomaly, Axis, Exit, Incident, MergedStacks, SuspiciousTemplate
from streams.detectors.registry import is_supporting
from streams.incidents.blame import GROWTH, decide
from streams.incidents.compose import compose
from streams.incidents.decision import Decision, Reason, ranks_of
from streams.incidents.hardware_beside import beside, kept, stands_beside, working
from streams.incidents.resolution import Resolution, stopped_for
from streams.incidents.situation import Situation, margin_ns
from streams.incidents.stacks_seen import StacksSeen, apart, before_failures, with_those
from streams.regular_lines import Regular, repeated_by, with_printed
from streams.stall import StallRule, over, silence_ns
from streams.timers import kind_of_timer
from streams.view import AttemptView, AttemptWindow

Suspicious = Callable[[AttemptView, int, list[int], Mapping[str, Axis]], list[SuspiciousTemplate]]
"""Suspicious templates by view, onset and suspects; last, signatures that supporting findings point at."""

FAMILY = {"hang": "standstill", "crash": "standstill", "memory": "standstill"}
KEPT_ANOMALIES = 60
KEPT_SUPPORT = 20
CONTEXT_NS = 30_000_000_000
STANDING_WINDOWS = 9
MOST_LULLED = 8
LULLS = 2
"""For so many times as long as it once did not show a slowdown is not over."""
MOST_HEARD = 32
"""Of more ranks that are suspected nobody is named by what one of them prints."""


class Open(msgspec.Struct, kw_only=True):
    """An incident's anomalies and its latest revision. The first anomaly is kept for good: it is the id.

    ``support`` are findings of supporting detectors from shortly before it on, of whatever family; ``stacks`` is what
    stacks said first and of late; ``repeated`` when those whom it suspects last printed what they had printed before,
    ``told`` the end of the window in which they last said how long their own work takes. ``lull`` is how long it once
    did not show and was not over (ns).
    """

    first: str
    family: str
    anomalies: list[Anomaly]
    support: list[Anomaly] = []
    stacks: list[StacksSeen] = []
    repeated: dict[int, int] = {}
    told: dict[int, int] = {}
    latest: Incident | None = None
    quiet: int = 0
    lull: int = 0


class IncidentBookState(msgspec.Struct, kw_only=True):
    """Open incidents, in the order in which they began, and information that none has taken up yet.

    ``support`` are the latest findings of supporting detectors, for an incident to come; ``hardware`` are changes of
    hardware, which may be some minutes older than what they lead to. ``lulled`` are slowdowns that no longer showed:
    what is slow now and then may not be over. ``timed`` is the end of the last window in which
    most ranks said how long their own work takes; ``regular`` are the lines that the attempt prints in a rhythm.
    """

    incidents: list[Open] = []
    context: list[Anomaly] = []
    support: list[Anomaly] = []
    hardware: list[Anomaly] = []
    lulled: list[Open] = []
    timed: int = 0
    regular: dict[str, Regular] = {}


class IncidentBook:
    """Takes the anomalies of closed windows in order; returns the revisions that they cause."""

    def __init__(self, state: IncidentBookState) -> None:
        self.state = state

    def close(
        self,
        view: AttemptView,
        window: AttemptWindow,
        anomalies: list[Anomaly],
        suspicious: Suspicious,
        stacks: MergedStacks | None = None,
    ) -> list[Incident]:
        """One closed window: join or open, decide anew, and say what changed.

        ``stacks`` is where everybody is, while the attempt stands still.
        """
        for anomaly in anomalies:
            if not is_supporting(anomaly.detector) and not stands_beside(anomaly):
                self._join(anomaly)
        if _has_timers(view, window):
            self.state.timed = window.end
        self.state.hardware = kept(self.state.hardware, anomalies)
        self.state.regular = with_printed(self.state.regular, window.printed)
        self._support([anomaly for anomaly in anomalies if is_supporting(anomaly.detector)])
        for incident in self.state.incidents:
            if stacks is not None and incident.family == "standstill":
                incident.stacks = with_those(incident.stacks, stacks, incident.anomalies)
        revisions = []
        for incident in self.state.incidents:
            revision = self._revise(incident, view, window, suspicious)
            if revision is not None:
                incident.latest = revision
                revisions.append(revision)
        # What is resolved is published; a like finding later is a new incident, unless it began in this one.
        quiet = [one for one in self.state.incidents if _resolved(one) and _is_lulled(one)]
        self.state.lulled = [*self.state.lulled, *quiet][-MOST_LULLED:]
        self.state.incidents = [one for one in self.state.incidents if not _resolved(one)]
        return revisions

    def _join(self, anomaly: Anomaly) -> None:
        family = FAMILY.get(anomaly.symptom, anomaly.symptom)
        joined = next((one for one in reversed(self.state.incidents) if one.family == family), None)
        joined = joined or self._again(anomaly)
        if joined is not None:
            joined.anomalies = _trimmed([*joined.anomalies, anomaly], KEPT_ANOMALIES)
        elif anomaly.severity == "info":
            # Information opens nothing; it is remembered for an incident to come.
            self.state.context = [*self.state.context, anomaly][-KEPT_ANOMALIES:]
        else:
            context = [
                one
                for one in self.state.context
                if FAMILY.get(one.symptom, one.symptom) == family and one.end >= anomaly.start - CONTEXT_NS
            ]
            support = [one for one in self.state.support if one.end >= anomaly.start - _context_ns(one)]
            anomalies = [anomaly, *context[-KEPT_ANOMALIES // 4 :]]
            self.state.incidents.append(
                Open(first=anomaly.id, family=family, anomalies=anomalies, support=support),
            )

    def _again(self, anomaly: Anomaly) -> Open | None:
        """The slowdown of the same ranks that no longer showed, where this finding began before that was said."""
        for one in self.state.lulled if anomaly.severity != "info" else ():
            ranks = ranks_of(one.latest.suspects) if one.latest else set()
            if one.latest and ranks & ranks_of(anomaly.suspects) and anomaly.onset < one.latest.published:
                shown = max(other.end for other in one.anomalies if other.severity != "info")
                one.lull = max(one.lull, anomaly.end - shown)
                self.state.lulled = [other for other in self.state.lulled if other is not one]
                self.state.incidents.append(one)
                return one
        return None

    def _support(self, found: list[Anomaly]) -> None:
        """Every open incident takes up what may explain it; whether it does is for people to judge."""
        for incident in self.state.incidents:
            incident.support = _trimmed([*incident.support, *found], KEPT_SUPPORT)
        self.state.support = [*self.state.support, *found][-KEPT_SUPPORT:]

    def _revise(
        self, incident: Open, view: AttemptView, window: AttemptWindow, suspicious: Suspicious, *, ending: bool = False
    ) -> Incident | None:
        situation = self._situation(incident, view, window)
        resolution = Resolution.FORGOTTEN if ending else self._resolution(incident, view, window, situation)
        decision = _begun(decide(incident.anomalies, situation), incident)
        if resolution is None and decision.reason is Reason.SURVIVED and view.iterated is None and incident.quiet > 0:
            resolution = Resolution.GOES_ON
        ranks = [suspect.rank for suspect in decision.suspects if suspect.rank is not None]
        backed = {signature: one.axis for one in incident.support for signature in one.templates}
        before = incident.latest
        composed = compose(
            incident_id=stable_id("incident", view.job, view.attempt, incident.first),
            revision=1 if before is None else before.revision + 1,
            published=window.end,
            view=view,
            decision=decision,
            anomalies=incident.anomalies,
            support=_around(incident.support, decision.onset),
            hardware=beside(self.state.hardware, incident.anomalies, decision, margin_ns(situation.step_ns)),
            templates=suspicious(view, decision.onset, ranks, backed),
            resolution=resolution.value if resolution else "",
            unavailable=window.unavailable,
            library=window.contrast.library if window.contrast else "",
            stacks=before_failures(incident.stacks, incident.anomalies),
        )
        return composed if before is None or _differs(before, composed) else None

    def _situation(self, incident: Open, view: AttemptView, window: AttemptWindow) -> Situation:
        """What blame must know of the attempt; what is known of those whom the incident suspects is noted first."""
        suspected = {suspect.rank for one in incident.anomalies for suspect in one.suspects if suspect.rank is not None}
        concerned = {rank: view.members[rank] for rank in sorted(suspected) if rank in view.members}
        if incident.family == "standstill" and len(concerned) <= MOST_HEARD:
            told = {rank: time for rank in concerned if (time := repeated_by(rank, window)) is not None}
            incident.repeated = incident.repeated | told
        if incident.family == "slowdown" and concerned:
            incident.told = incident.told | dict.fromkeys(sorted(concerned.keys() & _telling(window)), window.end)
        situation = Situation(
            members={rank: view.node_of(rank) for rank in sorted(view.members)},
            now=window.end,
            window_ns=window.end - window.start,
            knows_layout=view.knows_stages_beside(suspected),
            iterated=view.iterated,
            step_ns=view.clock.step_ns or 0,
            silence_ns=silence_ns(view.clock, StallRule()),
            expected=view.world_size,
            exited={rank: end.time for rank, end in _failed_ends(view)},
            living=[rank for rank, one in sorted(view.members.items()) if one.last_life > window.start],
            unobserved=view.unobserved_since(window.start),
            finished=view.finished,
            regular=self.state.regular,
            spoke={rank: one.spoke for rank, one in concerned.items()},
            repeated=incident.repeated,
            told=incident.told,
            leading=any(one.grounds == "frontier" for one in incident.support),
            working=working(self.state.hardware),
        )
        timed = window.end - self.state.timed <= situation.quiet_ns
        return msgspec.structs.replace(situation, timed=timed)

    def _resolution(
        self, incident: Open, view: AttemptView, window: AttemptWindow, situation: Situation
    ) -> Resolution | None:
        """Why the incident is over, or null where it is not."""
        # Memory that goes on growing does not keep a standstill open that is over.
        telling = [one for one in incident.anomalies if one.grounds not in GROWTH]
        stands = incident.family == "standstill" and bool(telling)
        # Information opens nothing, so it keeps nothing open either that is over once it no longer shows.
        showing = [one for one in telling or incident.anomalies if stands or one.severity != "info"]
        seen = any(anomaly.end == window.end for anomaly in showing)
        incident.quiet = 0 if seen else incident.quiet + 1
        settled = (incident.latest.onset if incident.latest else 0) + margin_ns(view.clock.step_ns or 0)
        progressed = view.iterated is not None and view.iterated > max(window.start, settled)
        patience = max(situation.quiet_ns, LULLS * incident.lull)
        for holds, resolution in (
            (view.stopped is not None, stopped_for(view.stops.said)),
            (view.superseded is not None, Resolution.SUPERSEDED),
            (incident.quiet > 0 and over(view), Resolution.ENDED),
            (stands and incident.quiet > 0 and progressed, Resolution.ITERATES),
            (not stands and incident.quiet * situation.window_ns >= patience, Resolution.QUIET),
        ):
            if holds:
                return resolution
        return None

    def end(self, view: AttemptView, window: AttemptWindow, suspicious: Suspicious) -> list[Incident]:
        """The attempt is forgotten: its open incidents end, since nothing is heard of it any more."""
        ended = []
        for incident in self.state.incidents:
            revision = self._revise(incident, view, window, suspicious, ending=True)
            if revision is not None:
                ended.append(revision)
        self.state.incidents = []
        return ended


def _begun(decision: Decision, incident: Open) -> Decision:
    """A slowdown of the same ranks, or of nobody for the same reason, began when it was first found to have begun.

    Of what was found in between only some is kept.
    """
    before = incident.latest
    if before is None or incident.family != "slowdown" or before.onset >= decision.onset:
        return decision
    was, now = ranks_of(before.suspects), ranks_of(decision.suspects)
    same = was & now or (not was and not now and before.reason == decision.reason.value)
    return msgspec.structs.replace(decision, onset=before.onset, iteration=before.iteration) if same else decision


def _has_timers(view: AttemptView, window: AttemptWindow) -> bool:
    """Whether most ranks say in this window how long their own work takes."""
    return 2 * len(_telling(window)) > len(view.members)


def _telling(window: AttemptWindow) -> set[int]:
    """Who says in this window how long its own work takes."""
    return {rank for name, told in window.series.items() if kind_of_timer(name) == "own" for rank in told.ranks}


def _context_ns(one: Anomaly) -> int:
    """How long before an incident a supporting finding may lie; what is about ranks is said again while it holds."""
    return STANDING_WINDOWS * (one.end - one.start) if one.about else CONTEXT_NS


def _around(support: list[Anomaly], onset: int) -> list[Anomaly]:
    """What may explain an incident: what tells the job from healthy ones is told of all its life."""
    return [one for one in support if one.axis != "cross-job" or abs(one.onset - onset) <= CONTEXT_NS]


def _failed_ends(view: AttemptView) -> list[tuple[int, Exit]]:
    """Ranks whose end with a code other than 0 is known."""
    ends = [(rank, member.exit) for rank, member in sorted(view.members.items())]
    return [(rank, end) for rank, end in ends if end is not None and end.code != 0]


def _trimmed(anomalies: list[Anomaly], most: int) -> list[Anomaly]:
    """At most so many, but of every detector's every ground the first and the latest: verdicts rest on them."""
    if len(anomalies) <= most:
        return anomalies
    by_grounds: dict[tuple[str, str], list[int]] = {}
    for index, one in enumerate(anomalies):
        by_grounds.setdefault((one.detector, one.grounds), []).append(index)
    kept = {0} | {found[0] for found in by_grounds.values()} | {found[-1] for found in by_grounds.values()}
    room = most - len(kept)
    for index in range(len(anomalies) - 1, -1, -1):
        if room <= 0:
            break
        room -= index not in kept
        kept.add(index)
    return [anomalies[index] for index in sorted(kept)]


def _is_lulled(incident: Open) -> bool:
    last = incident.latest
    return incident.family == "slowdown" and last is not None and last.resolution == Resolution.QUIET.value


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
    # Where somebody stands apart may change with each sample, who does so does not.
    moved = apart(before.stacks) != apart(after.stacks)
    return ranks[0] != ranks[1] or kinds[0] != kinds[1] or moved
