"""The incidents of one attempt: their findings, and their revisions as windows close.

Which finding belongs to which incident, which two prove one, which is a former one that shows again, and when one is
over are decisions of modules of their own; here they are asked in order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from schemas.ids import stable_id
from schemas.results import Anomaly, Axis, Incident, MergedStacks, SuspiciousTemplate
from streams.attempt_window import AttemptWindow
from streams.detectors.registry import is_supporting
from streams.incidents.blame import decide
from streams.incidents.compose import compose
from streams.incidents.decision import Decision, ranks_of
from streams.incidents.flaps import AGAIN, again, reopened, rested
from streams.incidents.hardware_beside import beside, kept, stands_beside
from streams.incidents.joining import MEMORY, OPENS, STANDSTILL, Why, beside_of, family_of, joined
from streams.incidents.merging import merged_revisions
from streams.incidents.opened import KEPT_ANOMALIES, KEPT_SUPPORT, IncidentBookState, Open, trimmed
from streams.incidents.resolution import Resolution, resolution_of
from streams.incidents.revising import Draft, differs
from streams.incidents.second_fault import MAY_BE_SECOND, SECOND, second_fault
from streams.incidents.situated import course_of, has_passed, has_timers, held, situation_of, stands
from streams.incidents.situation import margin_ns
from streams.incidents.stacks_seen import before_failures, with_those
from streams.incidents.standstill import CONTEXT_NS as LOOK_BACK_NS
from streams.regular_lines import with_printed
from streams.view import AttemptView

Suspicious = Callable[[AttemptView, int, list[int], Mapping[str, Axis]], list[SuspiciousTemplate]]
"""Suspicious templates by view, onset and suspects; last, signatures that supporting findings point at."""

InSeries = Callable[[Incident, Sequence[str]], Incident]
"""A revision as one of a series, by it and the signatures of what those printed who failed."""

CONTEXT_NS = 30_000_000_000
STANDING_WINDOWS = 9
_KIN = {STANDSTILL: (STANDSTILL, MEMORY), MEMORY: (STANDSTILL, MEMORY)}
"""Information of which families is context of an incident; that of all others is of their own."""


def _alone(says: Incident, errors: Sequence[str]) -> Incident:
    return says


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
        return self.publish(self.drafts(view, window, anomalies, suspicious, stacks), window)

    def drafts(
        self,
        view: AttemptView,
        window: AttemptWindow,
        anomalies: list[Anomaly],
        suspicious: Suspicious,
        stacks: MergedStacks | None = None,
    ) -> list[Draft]:
        """Join or open, and decide anew: what would be said of each incident if it were the only one."""
        self._join([one for one in anomalies if not is_supporting(one.detector) and not stands_beside(one)], view)
        if has_timers(view, window):
            self.state.timed = window.end
        self.state.hardware = kept(self.state.hardware, anomalies)
        self.state.regular = with_printed(self.state.regular, window.printed)
        self._support([anomaly for anomaly in anomalies if is_supporting(anomaly.detector)])
        for incident in self.state.incidents:
            if stacks is not None and incident.family == STANDSTILL:
                incident.stacks = with_those(incident.stacks, stacks, incident.anomalies)
        resumed = [self._resumed(one, view, window) for one in list(self.state.incidents)]
        for one in resumed:
            self._set_beside(one, view, window)
        return [self._draft(one, view, window, suspicious) for one in self.state.incidents]

    def end(
        self, view: AttemptView, window: AttemptWindow, suspicious: Suspicious, in_series: InSeries = _alone
    ) -> list[Incident]:
        """The attempt is forgotten: its open incidents end, since nothing is heard of it any more."""
        drafts = [self._draft(one, view, window, suspicious, ending=True) for one in list(self.state.incidents)]
        revisions = self.publish(drafts, window, in_series)
        self.state.incidents = []
        return revisions

    def _join(self, anomalies: list[Anomaly], view: AttemptView) -> None:
        """Each finding joins an open incident, opens one, or is kept as information for one to come."""
        if not anomalies:
            return
        together = beside_of(anomalies, view.clock.step_ns or 0)
        stands = [held(one) for one in self.state.incidents]
        for anomaly in anomalies:
            decided = joined(anomaly, stands, together)
            if decided.into is not None:
                incident = self.state.incidents[decided.into]
                incident.join([anomaly])
                if decided.why is Why.ITS_MEMORY:
                    incident.family = STANDSTILL
                stands[decided.into] = held(incident)
            elif decided.why in OPENS:
                self.state.incidents.append(self._new(anomaly))
                stands.append(held(self.state.incidents[-1]))
            else:
                self.state.context = [*self.state.context, anomaly][-KEPT_ANOMALIES:]

    def _new(self, anomaly: Anomaly) -> Open:
        """An incident that begins with a finding, with what was found before and may have to do with it."""
        family = family_of(anomaly)
        near = [one for one in self.state.context if one.end >= anomaly.start - CONTEXT_NS]
        context = [one for one in near if family_of(one) in _KIN.get(family, (family,))][-KEPT_ANOMALIES // 4 :]
        if family == STANDSTILL:
            # What the job has lived through may say where to look.
            passed = [found for one in self.state.incidents if one.family == family for found in one.anomalies]
            context += [one for one in passed if one.end >= anomaly.onset - LOOK_BACK_NS][-KEPT_ANOMALIES // 4 :]
        support = [one for one in self.state.support if one.end >= anomaly.start - _context_ns(one)]
        return Open(first=anomaly.id, family=family, anomalies=[anomaly, *context], support=support)

    def _support(self, found: list[Anomaly]) -> None:
        """Every open incident takes up what may explain it; whether it does is for people to judge."""
        for incident in self.state.incidents:
            incident.support = trimmed([*incident.support, *found], KEPT_SUPPORT)
        self.state.support = [*self.state.support, *found][-KEPT_SUPPORT:]

    def _resumed(self, incident: Open, view: AttemptView, window: AttemptWindow) -> Open:
        """The incident, or the former one that it is, which then goes on in its place."""
        if incident.latest is not None or not self.state.rested:
            return incident
        situation = situation_of(incident, self.state, view, window)
        decision = decide(incident.anomalies, situation)
        for former in reversed(self.state.rested):
            if again(incident, decision, former, window.end, situation.quiet_ns) in AGAIN:
                resumed = reopened(former, incident, window.end)
                self.state.rested = [one for one in self.state.rested if one is not former]
                self.state.incidents = [resumed if one is incident else one for one in self.state.incidents]
                return resumed
        return incident

    def _set_beside(self, incident: Open, view: AttemptView, window: AttemptWindow) -> None:
        """Give what a standstill holds of another fault an incident of its own, beside which it stays evidence."""
        if incident.family != STANDSTILL or incident.beside:
            return
        may_be = [one for one in incident.anomalies if one.grounds in MAY_BE_SECOND]
        if not may_be:
            return
        # What the job lived through before may have been taken up from an incident that is known by it.
        others = [one for one in [*self.state.incidents, *self.state.rested] if one is not incident]
        known = {
            *incident.second,
            *(one.first for one in others),
            *(each.id for one in others for each in one.anomalies),
        }
        situation = situation_of(incident, self.state, view, window)
        says, among, first = decide(incident.anomalies, situation), incident.anomalies, incident.first
        asked = [one for one in may_be if one.id not in known]
        found = [one for one in asked if second_fault(one, among, first, says, situation) in SECOND]
        incident.second = [one.id for one in may_be if one.id in known or one in found]
        if not found:
            return
        other = next((one for one in self.state.incidents if one.beside == first), None)
        if other is None:
            other = Open(first=found[0].id, family=STANDSTILL, anomalies=[], beside=first)
            self.state.incidents.append(other)
        other.join(found)

    def _draft(
        self, incident: Open, view: AttemptView, window: AttemptWindow, suspicious: Suspicious, *, ending: bool = False
    ) -> Draft:
        """What would be said of the incident if it were the only one."""
        situation = situation_of(incident, self.state, view, window)
        decision = _begun(decide(incident.anomalies, situation), incident)
        elsewhere = any(one is not incident and stands(one) for one in self.state.incidents)
        course = course_of(incident, decision, situation, view, window, elsewhere=elsewhere)
        resolution = resolution_of(course)
        resolution = Resolution.FORGOTTEN if ending else resolution
        incident.passed = has_passed(incident, situation)
        if decision.reason.value not in incident.reasons:
            incident.reasons = [*incident.reasons, decision.reason.value]
        ranks = [suspect.rank for suspect in decision.suspects if suspect.rank is not None]
        backed = {signature: one.axis for one in incident.support for signature in one.templates}
        composed = compose(
            incident_id=stable_id("incident", view.job, view.attempt, incident.first),
            revision=1 if incident.latest is None else incident.latest.revision + 1,
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
        return Draft(incident=incident, says=self._keyed(incident, composed), near_ns=situation.quiet_ns)

    def _keyed(self, incident: Open, says: Incident) -> Incident:
        """Under the key under which staff were told of it, if they were.

        Else under the attempt's, which notices have, if it is the first that stands still or fails, or under its own.
        """
        if incident.latest is not None:
            return msgspec.structs.replace(says, notification_key=incident.latest.notification_key)
        if not self.state.announced and incident.family == STANDSTILL:
            self.state.announced = incident.first
        if self.state.announced == incident.first:
            return says
        return msgspec.structs.replace(says, notification_key=stable_id("notification", says.job, says.id))

    def publish(self, drafts: Sequence[Draft], window: AttemptWindow, in_series: InSeries = _alone) -> list[Incident]:
        """Say what changed once it is known which of them prove one; what is over is no longer kept as open."""
        revisions: list[Incident] = []
        for incident, says in merged_revisions(drafts, self.state.rested):
            if incident.latest is None or differs(incident.latest, says):
                incident.latest = says
                incident.latest = in_series(says, incident.errors)
                revisions.append(incident.latest)
        over = [one.incident for one in drafts if one.is_over]
        self.state.incidents = [one for one in self.state.incidents if one not in over]
        if drafts or self.state.rested:
            stands_ns = max((one.near_ns for one in drafts), default=0)
            window_ns = window.end - window.start
            self.state.rested = rested(self.state.rested, over, window.end, window_ns, stands_ns)
        return revisions


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


def _context_ns(one: Anomaly) -> int:
    """How long before an incident a supporting finding may lie; what is about ranks is said again while it holds."""
    return STANDING_WINDOWS * (one.end - one.start) if one.about else CONTEXT_NS


def _around(support: list[Anomaly], onset: int) -> list[Anomaly]:
    """What may explain an incident: what tells the job from healthy ones is told of all its life."""
    return [one for one in support if one.axis != "cross-job" or abs(one.onset - onset) <= CONTEXT_NS]
