"""The one place that ranks share, and nobody else: a node, a tensor-parallel group, a replica of the model, a stage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from schemas.identity import rank_ranges
from streams.view import AttemptView

PlaceKind = Literal["node", "tensor", "stage", "experts", "replica"]


class Place(msgspec.Struct, frozen=True):
    """A place and what people call it."""

    kind: PlaceKind
    name: str


_TENSOR = ("pp", "dp", "cp")
_SHARED: tuple[tuple[PlaceKind, tuple[str, ...], str], ...] = (
    ("tensor", _TENSOR, "tensor-parallel group of ranks {ranks}"),
    ("stage", ("pp",), "pipeline stage {at}"),
    ("experts", ("ep",), "expert group {at}"),
    ("replica", ("dp",), "data-parallel replica {at}"),
)
"""Kinds, the coordinates that all ranks of such a place share, and their names."""


def places_of(view: AttemptView, ranks: Iterable[int], among: Iterable[int]) -> list[Place]:
    """What two or more of the ranks ``among`` have in common that none of the others has; empty where nothing is."""
    inside, everybody = set(ranks), {*among, *ranks}
    if len(inside) < 2 or inside == everybody:
        return []
    found = []
    nodes = {view.node_of(rank) for rank in inside}
    if len(nodes) == 1 and "" not in nodes and inside == {one for one in everybody if view.node_of(one) in nodes}:
        found.append(Place("node", nodes.pop()))
    for kind, axes, name in _SHARED:
        shared = {_at(view, rank, axes) for rank in inside}
        if len(shared) == 1 and "" not in shared and inside == {r for r in everybody if _at(view, r, axes) in shared}:
            found.append(Place(kind, name.format(ranks=rank_ranges(inside), at=shared.pop())))
    return found


def beside(view: AttemptView, rank: int, among: Iterable[int]) -> set[int]:
    """The ranks that wait for each other within what each of them calls own work: the rank's tensor-parallel group."""
    place = _at(view, rank, _TENSOR)
    return {rank} | {one for one in among if place and _at(view, one, _TENSOR) == place}


def stage_of_replica(view: AttemptView, rank: int) -> str:
    """Which stage of which replica the rank computes; empty where that is not known."""
    at = view.coordinates(rank)
    known = "pp" in at and at.keys() & {"tp", "cp", "dp"}
    return " ".join(str(at.get(axis)) for axis in ("pp", "dp", "ep")) if known else ""


def are_of_several_replicas(view: AttemptView, ranks: Iterable[int]) -> bool:
    """Whether the ranks surely are of more than one replica, so that none of their inputs explains them all."""
    return len({_at(view, rank, ("dp",)) for rank in ranks} - {""}) > 1


def replica_elsewhere(view: AttemptView, ranks: Iterable[int], among: Iterable[int]) -> set[int]:
    """Those of other stages of the one replica that all the ranks belong to; empty where they are of several."""
    stages = {_at(view, rank, ("pp",)) for rank in ranks}
    replicas = {_at(view, rank, ("dp", "cp")) for rank in ranks}
    if len(replicas) != 1 or "" in stages | replicas:
        return set()
    inside = {one for one in among if _at(view, one, ("dp", "cp")) in replicas}
    return inside if len(stages) > 1 else {one for one in inside if _at(view, one, ("pp",)) not in stages}


def replicas_elsewhere(view: AttemptView, ranks: Iterable[int], among: Iterable[int]) -> dict[int, set[int]]:
    """``replica_elsewhere`` of each of the ranks by itself, asked of everybody once."""
    replicas: dict[str, dict[str, set[int]]] = {}
    for one in among:
        replicas.setdefault(_at(view, one, ("dp", "cp")), {}).setdefault(_at(view, one, ("pp",)), set()).add(one)
    found = {}
    for rank in ranks:
        stage, replica = _at(view, rank, ("pp",)), _at(view, rank, ("dp", "cp"))
        stages = replicas.get(replica, {}) if stage and replica else {}
        found[rank] = set().union(*(own for other, own in stages.items() if other != stage))
    return found


def is_by_position(view: AttemptView, ranks: Iterable[int], among: Iterable[int]) -> bool:
    """Whether the ranks may always have done more than others because of where they stand.

    Rank 0 logs and saves, the last rank logs losses; the first of a tensor-parallel group, of a context-parallel one or
    of a node often loads the data of all. Of those that share such a position in their stages half are enough.
    """
    inside, everybody = set(ranks), {*among, *ranks}
    if inside <= each_by_position(view, everybody):
        return True
    if len(inside) < 2:
        return False
    stages = {_at(view, rank, ("pp",)) for rank in inside}
    others = {rank for rank in everybody if _at(view, rank, ("pp",)) in stages}
    positions = [_on_nodes(view), *({rank: _at(view, rank, (axis,)) for rank in others} for axis in ("tp", "cp"))]
    return any(_share_most(inside, others, position) for position in positions)


def each_by_position(view: AttemptView, among: Iterable[int]) -> set[int]:
    """Those who may always have done more by themselves: rank 0, the last rank, and who shares tensors with them."""
    everybody = set(among)
    last = max([*view.members, (view.world_size or 0) - 1])
    return beside(view, 0, everybody) | beside(view, last, everybody)


def may_be_their_nodes(view: AttemptView, ranks: Iterable[int], among: Iterable[int]) -> bool:
    """Whether what these ranks always were may be what their nodes are, as of an older kind.

    So it is where each node has several ranks and none of those ``among`` is another than these.
    """
    inside, nodes = set(ranks), {view.node_of(rank) for rank in ranks}
    others = [rank for rank in among if rank not in inside and view.node_of(rank) in nodes]
    there = Counter(view.node_of(rank) for rank in view.members)
    return "" not in nodes and not others and all(there[node] > 1 for node in nodes) and len(there) > len(nodes)


def _share_most(inside: set[int], others: set[int], position: Mapping[int, str]) -> bool:
    """Whether those inside are at one position, half of all that are there, and others are elsewhere."""
    shared = {position.get(rank, "") for rank in inside}
    alike = {rank for rank in others if position.get(rank, "") in shared}
    return len(shared) == 1 and "" not in shared and alike != others and 2 * len(inside) >= len(alike)


def _on_nodes(view: AttemptView) -> dict[int, str]:
    """Each rank's number on its node."""
    nodes: dict[str, list[int]] = {}
    for rank in sorted(view.members):
        nodes.setdefault(view.node_of(rank), []).append(rank)
    nodes.pop("", None)
    told = {rank: view.members[rank].identity.local_rank for own in nodes.values() for rank in own}
    counted = {rank: number for own in nodes.values() for number, rank in enumerate(own)}
    return {rank: str(number if (local := told[rank]) is None else local) for rank, number in counted.items()}


def _at(view: AttemptView, rank: int, axes: tuple[str, ...]) -> str:
    """The rank's coordinates on the axes; empty where the first of them is not known."""
    coordinates = view.coordinates(rank)
    return " ".join(str(coordinates.get(axis, 0)) for axis in axes) if axes[0] in coordinates else ""
