"""Where an incident is: the smallest place that covers whom the evidence supports, and how that is said."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from schemas.identity import rank_ranges
from schemas.results import Scope, ScopeKind, Suspect
from streams.groups import groups_of, in_stage, ranks_on, said_stages, tensor_group
from streams.incidents.decision import Decision, Reason
from streams.places import places_of
from streams.switches import only_under
from streams.view import AttemptView

MOST_LISTED = 16
"""Of devices, groups and switches each."""
MOST_SAID = 4
_OF_NODES = frozenset({Reason.ONE_NODE})
"""Reasons by which the fault is the node's, whoever of it is told."""
_PORT = re.compile(
    r"(?:mlx\d|bnxt_|hfi1_|irdma|efa|ib|eth|en[opsx]|bond|roce|rdma)[\w.]{0,40}(?::\d{1,3})?|nic\b.{0,60}"
)
"""How adapters and their ports are called."""


def scope_of(view: AttemptView, decision: Decision) -> Scope:
    """The smallest place that covers the suspects; where nobody is named that of a fault, else the job.

    A node covers all its ranks, a tensor-parallel group or another one its members, a switch several whole nodes where
    others hang elsewhere, a stage more than those who are told of it; ranks that nothing joins are their own place.
    """
    if decision.places and not decision.suspects:
        return _place_of(view, decision, decision.places)
    ranks = sorted(suspect.rank for suspect in decision.suspects if suspect.rank is not None) or decision.among
    told = {suspect.node for suspect in decision.suspects} or {view.node_of(rank) for rank in ranks}
    nodes = sorted(told - {""})
    if not ranks:
        return _place_of(view, decision, decision.suspects) if nodes else Scope(kind="job", name=view.job)
    kind, name = next(_fitting(view, decision, ranks, nodes))
    return _filled(view, kind, name, ranks, nodes, _devices_of(view, decision.suspects, ranks))


def is_port(device: str) -> bool:
    """Whether a device is a network adapter or a port of one, by its name."""
    return _PORT.fullmatch(device) is not None


def _fitting(
    view: AttemptView, decision: Decision, ranks: Sequence[int], nodes: Sequence[str]
) -> Iterator[tuple[ScopeKind, str]]:
    """Kind and name of each place that fits these ranks, from the smallest on."""
    if len(ranks) == 1:
        yield "rank", f"rank {ranks[0]}"
    inside = set(ranks)
    if len(nodes) == 1 and (decision.reason in _OF_NODES or ranks_on(view, nodes[0]) == inside):
        yield "node", nodes[0]
    if name := tensor_group(view, inside):
        yield "group", name
    switch = _switch_of(view, inside, nodes)
    if switch and decision.area == "network":
        yield "switch", switch
    stages, in_it = in_stage(view, ranks)
    if in_it == inside:
        yield "stage", said_stages(stages)
    for place in places_of(view, inside, view.members):
        if place.kind in ("experts", "replica"):
            yield "group", place.name
    if switch:
        yield "switch", switch
    if inside == set(view.members):
        groups = {member.identity.group for member in view.members.values()} - {""}
        yield ("group", f"worker group {groups.pop()}") if len(groups) == 1 else ("job", view.job)
    if stages:
        yield "stage", said_stages(stages)
    yield "group", f"ranks {rank_ranges(ranks)}"


def _switch_of(view: AttemptView, ranks: Collection[int], nodes: Sequence[str]) -> str:
    """The lowest switch above these nodes and no others, where all ranks of these are told."""
    if not view.switches or sum(len(ranks_on(view, node)) for node in nodes) != len(ranks):
        return ""
    return only_under(view.switches, nodes, view.node_names)


def _place_of(view: AttemptView, decision: Decision, places: Sequence[Suspect]) -> Scope:
    """The place of faults of which nobody knows whom they hit; what fails of the network is an adapter."""
    nodes = sorted({place.node for place in places if place.node})
    devices = sorted({place.device for place in places if place.device})
    ranks = [rank for node in nodes for rank in sorted(ranks_on(view, node))]
    if len(nodes) == 1 and len(devices) == 1:
        port = is_port(devices[0]) or decision.area == "network"
        return _filled(
            view, "nic" if port else "device", f"{'port' if port else 'device'} {devices[0]}", [], nodes, devices
        )
    if len(nodes) == 1:
        return _filled(view, "node", nodes[0], ranks, nodes, devices)
    switch = only_under(view.switches, nodes, view.node_names) if view.switches else ""
    if switch:
        return _filled(view, "switch", switch, ranks, nodes, devices)
    return _filled(view, "job", view.job, [], nodes, devices)


def _filled(
    view: AttemptView, kind: ScopeKind, name: str, ranks: Sequence[int], nodes: Sequence[str], devices: Sequence[str]
) -> Scope:
    """The scope with all that is known of it; groups are those of its ranks, but for the job's, which are all."""
    groups = groups_of(view, ranks) if ranks and kind != "job" else []
    switches = sorted({switch for node in nodes if (switch := view.switch_of(node))}) if kind != "job" else []
    listed = (devices, groups, switches)
    return Scope(
        kind=kind,
        name=name,
        ranks=rank_ranges(ranks),
        nodes=list(nodes),
        devices=list(devices[:MOST_LISTED]),
        groups=groups[:MOST_LISTED],
        switches=switches[:MOST_LISTED],
        left_out=sum(max(len(one) - MOST_LISTED, 0) for one in listed),
    )


def _devices_of(view: AttemptView, suspects: Sequence[Suspect], ranks: Sequence[int]) -> list[str]:
    """The devices of those who are named: told with them, else the only one that their lines told."""
    found = set()
    told = {suspect.rank: suspect.device for suspect in suspects if suspect.device}
    for rank in ranks if suspects else ():
        member = view.members.get(rank)
        own = member.devices if member is not None and len(member.devices) == 1 else []
        found.update([told[rank]] if rank in told else own)
    return sorted(found)


def said_place(scope: Scope) -> str:
    """The scope in words: ``job run-7``, ``node gpu3``, ``rank 5 on gpu3``, ``switch s0.leaf3 (n1, n2)``."""
    if scope.kind in ("job", "node"):
        return f"{scope.kind} {scope.name}"
    if scope.kind == "fleet":
        return scope.name
    if scope.kind == "switch":
        return f"switch {scope.name} with {said_some(scope.nodes)}"
    return f"{scope.name} on {said_some(scope.nodes) or 'an unknown node'}"


def said_more(scope: Scope) -> str:
    """What else is known of the place: ranks, device, groups and switches that its name does not say."""
    ranks = said_ranks_of(scope.ranks)
    parts = [ranks] if ranks and ranks not in scope.name and scope.kind != "rank" else []
    devices = [device for device in scope.devices if device not in scope.name]
    parts += [f"device{'s' if len(devices) > 1 else ''} {said_some(devices)}"] if devices else []
    groups = [group for group in scope.groups if group != scope.name]
    parts += [said_some(groups, "; ")] if groups else []
    switches = [one for one in scope.switches if one != scope.name]
    parts += [f"switch{'es' if len(switches) > 1 else ''} {said_some(switches)}"] if switches else []
    return "; ".join(parts)


def said_ranks_of(ranges: str) -> str:
    """``rank 5``, ``ranks 0-4,6``; empty for none."""
    return "" if not ranges else f"rank {ranges}" if ranges.isdecimal() else f"ranks {ranges}"


def said_some(names: Sequence[str], between: str = ", ") -> str:
    """The first of the names, and how many more there are."""
    more = len(names) - MOST_SAID
    shown = between.join(names[:MOST_SAID])
    return f"{shown} and {more} more" if more > 0 else shown
