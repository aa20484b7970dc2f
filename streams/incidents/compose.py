"""A decision as an incident that people read: where, since when, on what evidence, how sure, what next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from schemas.identity import rank_ranges, shortened
from schemas.ids import notification_key
from schemas.results import Anomaly, Incident, MergedClass, Ranks, Severity, Suspect, SuspiciousTemplate
from streams.incidents.clocks import said_clocks
from streams.incidents.decision import LOST, Decision, Reason, most, victims_of, worst
from streams.incidents.evidence import evidence_of, support_of
from streams.incidents.next_step import next_step
from streams.incidents.resolution import goes_on
from streams.incidents.scope import scope_of
from streams.incidents.wording import said_decision
from streams.view import AttemptView

_PAGES_NOBODY = (
    Reason.SLOW_FIRST_RANK,
    Reason.SLOW_OTHER_WORK,
    Reason.SLOW_NODE,
    Reason.SLOW_EXPERTS,
    Reason.SLOW_UNSEEN,
    Reason.SLOW_UNKNOWN_LAYOUT,
    Reason.SLOW_BUT_WAITS,
    Reason.SLOW_OR_WAITS,
    Reason.SLOW_UNWITNESSED,
    Reason.SLOW_WITHIN_GROUP,
    Reason.SLOW_STAGE,
    Reason.SLOW_REPLICA,
    Reason.ROTATING,
    Reason.BUSY_ALONE,
    Reason.WHAT_IF_STAGES,
    Reason.WHAT_IF_LENGTHS,
    Reason.WHAT_IF_VARIATION,
)
LONGEST_WHY = 200
STOP_NS, LOSS_NS = 1_000_000_000, 5_000_000_000


def compose(
    *,
    incident_id: str,
    revision: int,
    published: int,
    view: AttemptView,
    decision: Decision,
    anomalies: list[Anomaly],
    templates: list[SuspiciousTemplate],
    resolution: str,
    support: Sequence[Anomaly] = (),
    hardware: Sequence[Anomaly] = (),
    unavailable: bool = False,
    library: str = "",
    stacks: Sequence[MergedClass] = (),
) -> Incident:
    """One revision. ``unavailable``: the window was closed without some partition, so nobody counts as missing.

    ``support`` are findings that decide nothing, ``hardware`` changes of hardware at the incident's place; they are
    shown behind the others. ``library`` is the version of what
    healthy jobs print, ``stacks`` where everybody stood.
    """
    ranks = [suspect.rank for suspect in decision.suspects if suspect.rank is not None]
    return Incident(
        **_decided(view, decision, anomalies, resolution),
        **_unseen(view, anomalies, ranks, unavailable),
        id=incident_id,
        revision=revision,
        published=published,
        job=view.job,
        attempt=view.attempt,
        status="resolved" if resolution else "open",
        resolution=resolution,
        templates=templates,
        evidence=[*evidence_of(anomalies), *evidence_of(hardware), *support_of(support, ranks)],
        notification_key=notification_key(view.job, view.attempt.rpartition("/")[2]),
        library=library,
        stacks=list(stacks),
        cluster=view.cluster,
        labels=dict(view.labels),
    )


def _decided(view: AttemptView, decision: Decision, anomalies: list[Anomaly], resolution: str) -> dict[str, Any]:
    """The fields that the decision gives."""
    suspects = [_described(one, view, anomalies) if one.rank is not None else one for one in decision.suspects]
    decision = msgspec.structs.replace(decision, suspects=suspects)
    scope = scope_of(view, decision)
    return {
        "severity": _severity(view, decision, anomalies),
        "summary": said_decision(decision, scope),
        "scope": scope,
        "clocks": said_clocks(view, decision, scope),
        "next_step": next_step(
            decision,
            scope,
            ended=_have_ended(view, decision, resolution),
            timed_out=_most_timed_out(view, anomalies),
        ),
        "phase": anomalies[0].phase,
        "symptom": decision.symptom,
        "area": decision.area,
        "verdict": decision.verdict,
        "reason": decision.reason.value,
        "onset": decision.onset,
        "iteration": decision.iteration,
        "suspects": decision.suspects,
        "victims": Ranks(ranks=rank_ranges(decision.victims)),
    }


def _described(suspect: Suspect, view: AttemptView, anomalies: list[Anomaly]) -> Suspect:
    """A suspect with its place and why, which a finding tells of the first of very many only (``briefly``)."""
    if suspect.why or suspect.rank is None:
        return suspect
    told = [one for one in anomalies if any(other.rank == suspect.rank for other in one.suspects)]
    why = shortened(told[-1].text, LONGEST_WHY) if told else ""
    return view.suspect(suspect.rank, suspect.score, why, suspect.kind)


def _have_ended(view: AttemptView, decision: Decision, resolution: str) -> bool:
    """Whether those who are named no longer run; of all where nobody is."""
    if resolution and not goes_on(resolution):
        return True
    named = [view.members.get(one.rank) for one in decision.suspects if one.rank is not None]
    return bool(view.members) and all(one is not None and one.has_ended for one in named or view.members.values())


def _most_timed_out(view: AttemptView, anomalies: list[Anomaly]) -> bool:
    """Whether most ranks have printed that they waited in vain."""
    return most(view.members.keys(), victims_of((one for one in anomalies if one.symptom == "hang"), LOST))


def _unseen(view: AttemptView, anomalies: list[Anomaly], named: list[int], unavailable: bool) -> dict[str, Any]:
    """The ranks that are missing, and those that could not be observed."""
    missing = [] if unavailable else sorted(view.expected - set(view.members))
    unobserved = _unobserved(anomalies, named)
    return {"missing": Ranks(ranks=rank_ranges(missing)), "unobserved": Ranks(ranks=rank_ranges(unobserved))}


def _severity(view: AttemptView, decision: Decision, anomalies: list[Anomaly]) -> Severity:
    """The worst of what the decision rests on.

    An error that the job survived and a job that its owner stopped page nobody, unless hardware is broken; nor does a
    slowdown that may be so by design or by its inputs, or in which the slow ones may only wait for another: nobody can
    do anything at once. A job that takes longer and tells no more warns as well.
    """
    # What peers lose just before belongs to it as well, where nothing else is known.
    slack = LOSS_NS if decision.reason in (Reason.ONLY_CASCADES, Reason.EXIT_CODE) else STOP_NS
    stopped = view.stopped is not None and decision.onset >= view.stopped - slack
    if stopped or (decision.reason is Reason.SURVIVED and decision.severity is None):
        return "info"
    severity = decision.severity or worst(anomalies)
    nameless = decision.reason in _PAGES_NOBODY and not decision.suspects
    return "warning" if nameless and severity == "critical" else severity


def _unobserved(anomalies: list[Anomaly], named: list[int]) -> set[int]:
    """Ranks that the latest spatial finding could not see."""
    spatial = [one for one in anomalies if one.axis == "space" and one.unobserved]
    return set(max(reversed(spatial), key=lambda one: one.end).unobserved) - set(named) if spatial else set()
