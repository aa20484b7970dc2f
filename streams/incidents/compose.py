"""A decision as an incident that people read: where, since when, on what evidence, how sure, what next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from schemas.identity import rank_ranges
from schemas.ids import notification_key
from schemas.results import (
    Anomaly,
    Evidence,
    Incident,
    MergedClass,
    Ranks,
    Scope,
    Severity,
    Suspect,
    SuspiciousTemplate,
    Symptom,
)
from streams.incidents.decision import Decision, Reason, worst
from streams.incidents.hardware_beside import GROUNDS
from streams.places import places_of
from streams.view import AttemptView

SHOWN_EVIDENCE = 8
SHOWN_SUPPORT = 4
_EACH = ("own_error", "own_death", "unplaced_error", "unplaced_besides", "rank_fault", "node_fault", *GROUNDS)
"""Grounds whose every finding is a piece of evidence of its own."""
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
STOP_NS = 1_000_000_000


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
        **_decided(view, decision, anomalies),
        **_unseen(view, anomalies, ranks, unavailable),
        id=incident_id,
        revision=revision,
        published=published,
        job=view.job,
        attempt=view.attempt,
        status="resolved" if resolution else "open",
        resolution=resolution,
        templates=templates,
        evidence=[*evidence_of(anomalies), *evidence_of(hardware), *_support_of(support, ranks)],
        notification_key=notification_key(view.job, view.attempt.rpartition("/")[2]),
        library=library,
        stacks=list(stacks),
        cluster=view.cluster,
    )


def _decided(view: AttemptView, decision: Decision, anomalies: list[Anomaly]) -> dict[str, Any]:
    """The fields that the decision gives."""
    scope = scope_of(view, decision)
    return {
        "severity": _severity(view, decision, anomalies),
        "summary": _summary(view, decision, scope),
        "scope": scope,
        "next_step": _next_step(decision, scope),
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
    stopped = view.stopped is not None and decision.onset >= view.stopped - STOP_NS
    if stopped or (decision.reason is Reason.SURVIVED and decision.severity is None):
        return "info"
    severity = decision.severity or worst(anomalies)
    nameless = decision.reason in _PAGES_NOBODY and not decision.suspects
    return "warning" if nameless and severity == "critical" else severity


def _unobserved(anomalies: list[Anomaly], named: list[int]) -> set[int]:
    """Ranks that the latest spatial finding could not see."""
    spatial = [one for one in anomalies if one.axis == "space" and one.unobserved]
    return set(max(reversed(spatial), key=lambda one: one.end).unobserved) - set(named) if spatial else set()


def _support_of(support: Sequence[Anomaly], named: list[int]) -> list[Evidence]:
    """What supports an incident, first what speaks of those whom it names."""
    of_them = [one for one in support if set(one.about) & set(named)]
    others = [one for one in support if one not in of_them]
    return [*evidence_of(of_them), *evidence_of(others)][:SHOWN_SUPPORT]


def evidence_of(anomalies: Sequence[Anomaly]) -> list[Evidence]:
    """One piece for each detector and ground, from its first window to its latest, with its latest words.

    Errors, ends, cascades and differences to healthy jobs are pieces of their own, and so is what is about other ranks:
    what a later window saw does not cover who was seen before. What is said on several grounds in the same words is
    said once. Cascades come last: they show the damage, not its beginning.
    """
    pieces: dict[tuple[bool, str, str, str], list[Anomaly]] = {}
    for one in anomalies:
        late = one.grounds in ("cascade", "told_to_end")
        subject = one.text if late or one.grounds in _EACH or one.axis == "cross-job" else rank_ranges(one.about)
        pieces.setdefault((late, one.detector, one.grounds, subject), []).append(one)
    ordered = sorted(pieces.items(), key=lambda item: (item[0][0], item[1][0].end, item[0]))
    told: dict[tuple[str, str, str], Evidence] = {}
    for _, found in ordered:
        piece = _piece(found)
        same = told.get((piece.detector, piece.text, piece.peers), piece)
        span = {"start": min(same.start, piece.start), "end": max(same.end, piece.end)}
        told[piece.detector, piece.text, piece.peers] = msgspec.structs.replace(same, **span)
    return list(told.values())[:SHOWN_EVIDENCE]


def _piece(found: list[Anomaly]) -> Evidence:
    last = max(reversed(found), key=lambda one: one.end)
    return Evidence(
        layer=found[0].layer,
        detector=found[0].detector,
        start=min(one.start for one in found),
        end=max(one.end for one in found),
        text=last.text,
        peers=last.peers,
    )


def scope_of(view: AttemptView, decision: Decision) -> Scope:
    """The smallest place that covers the suspects; where nobody is named that of a fault, else the job."""
    if decision.places and not decision.suspects:
        return _place_of(view, decision)
    ranks = sorted(suspect.rank for suspect in decision.suspects if suspect.rank is not None) or decision.among
    told = {suspect.node for suspect in decision.suspects} or {view.node_of(rank) for rank in ranks}
    nodes = sorted(told - {""})
    shown = rank_ranges(ranks)
    if not ranks:
        return Scope(kind="job", name=view.job)
    if len(ranks) == 1:
        faulty = decision.reason is Reason.RANK_FAULT
        devices = sorted({suspect.device for suspect in decision.suspects if faulty and suspect.device})
        return Scope(kind="rank", name=f"rank {ranks[0]}", ranks=shown, nodes=nodes, devices=devices)
    if len(nodes) == 1 and {rank for rank in view.members if view.node_of(rank) == nodes[0]} == set(ranks):
        return Scope(kind="node", name=nodes[0], ranks=shown, nodes=nodes)
    stages = {str(view.coordinates(rank).get("pp")) for rank in ranks}
    places = [one for one in places_of(view, ranks, view.members) if one.kind not in ("node", "stage")]
    # The only stage of a job is all of it.
    several = len({str(view.coordinates(rank).get("pp")) for rank in view.members}) > 1
    if len(stages) == 1 and several and "None" not in stages and not places:
        return Scope(kind="stage", name=f"pipeline stage {stages.pop()}", ranks=shown, nodes=nodes)
    return Scope(kind="group", name=places[0].name if places else f"ranks {shown}", ranks=shown, nodes=nodes)


def _place_of(view: AttemptView, decision: Decision) -> Scope:
    nodes = sorted({place.node for place in decision.places if place.node})
    devices = sorted({place.device for place in decision.places if place.device})
    if len(nodes) != 1:
        return Scope(kind="job", name=view.job, nodes=nodes, devices=devices)
    if len(devices) != 1:
        return Scope(kind="node", name=nodes[0], nodes=nodes, devices=devices)
    return Scope(kind="device", name=f"device {devices[0]}", nodes=nodes, devices=devices)


def said_place(scope: Scope) -> str:
    """The scope in words: ``job run-7``, ``node gpu3``, ``rank 5 on gpu3``."""
    if scope.kind in ("job", "node"):
        return f"{scope.kind} {scope.name}"
    return f"{scope.name} on {', '.join(scope.nodes) or 'an unknown node'}"


def said_symptom(symptom: Symptom, reason: str, scope: Scope) -> str:
    """What happened in a word: what a job lived through was neither a hang nor a crash of it."""
    if reason != Reason.SURVIVED.value:
        return symptom
    return "fault" if scope.nodes else "error"


def said_reason(reason: str, suspects: Sequence[Suspect]) -> str:
    """The reason in words: what is said of one is said of each where there are several."""
    return f"each of these {reason.removeprefix('one ')}" if len(suspects) > 1 and reason.startswith("one ") else reason


def since_iteration(symptom: Symptom, iteration: int | None) -> str:
    """The iteration in words: the last one done before a standstill, the first one that is slow or no number."""
    if iteration is None:
        return ""
    if symptom in ("slowdown", "numerics"):
        return f"from iteration {iteration} on"
    return f"after iteration {iteration}"


def _summary(view: AttemptView, decision: Decision, scope: Scope) -> str:
    where = said_place(scope)
    what = said_symptom(decision.symptom, decision.reason.value, scope)
    head = f"{what} {since_iteration(decision.symptom, decision.iteration)}".rstrip()
    reason = said_reason(decision.reason.value, decision.suspects)
    return f"{head}: {where} ({decision.verdict}; {reason})"


_NEXT = {
    "data": "look at the suspect's data loader and the storage that its shard lies on",
    "checkpoint": "look at the checkpoint storage as the suspect's node sees it",
    "memory": "look at the suspect's memory use and the kernel log of its node for an out-of-memory kill",
    "hardware": "drain the suspect's node and run its hardware checks before it is used again",
    "compute": "compare the suspect's clocks, temperature and host load with its peers', then move it to another node",
    "configuration": "check the launch configuration: every rank reads the same",
    "network": "look at the network between the nodes that lost each other",
    "code": "read the suspect's traceback; its peers only lost it",
    "collectives": "compare the collectives of the suspect's code at that iteration, and their sizes, with its peers'",
}


_NEXT_OF_NOBODY: dict[Symptom, str] = {
    "numerics": "check data and learning rate around the onset; per-rank losses before the reduction would tell who",
    "slowdown": "compare input lengths and stages before any hardware; nobody is to be moved on this evidence",
    "memory": "look for what the job keeps from step to step, and compare the memory of all ranks",
    "hang": "take stacks and flight-recorder dumps of all ranks at once; the missing ones matter most",
}


def _next_step(decision: Decision, scope: Scope) -> str:
    if decision.places and not decision.suspects and decision.reason is not Reason.DEVICE_MEMORY_GROWS:
        where = f"node {', '.join(scope.nodes)}" if scope.nodes else "the nodes"
        more = "run its hardware checks" if decision.area == "hardware" else "compare it with the other nodes"
        return f"read the kernel log of {where} around the onset and {more} before it is used again"
    if not decision.suspects and decision.area != "configuration":
        return _NEXT_OF_NOBODY.get(decision.symptom, _NEXT_OF_NOBODY["hang"])
    if scope.kind == "node":
        return f"look at host, storage, PCIe and loader of node {scope.name}"
    area = "collectives" if (decision.symptom, decision.area) == ("hang", "code") else decision.area
    return _NEXT.get(area, "take stacks of the suspect and one of its peers and compare them")
