"""Where an incident is: the smallest place that covers whom the evidence supports, and how that is said."""

from __future__ import annotations

from schemas.identity import rank_ranges
from schemas.results import Scope
from streams.incidents.decision import Decision, Reason
from streams.places import places_of
from streams.view import AttemptView


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
    several = len({view.coordinates(rank).get("pp") for rank in view.members}) > 1
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
