"""The one place that ranks share, and nobody else: a node, a tensor-parallel group, a replica of the model, a stage."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from schemas.identity import rank_ranges
from streams.view import AttemptView

PlaceKind = Literal["node", "tensor", "stage", "replica"]


class Place(msgspec.Struct, frozen=True):
    """A place and what people call it."""

    kind: PlaceKind
    name: str


_SHARED: tuple[tuple[PlaceKind, tuple[str, ...], str], ...] = (
    ("tensor", ("pp", "dp", "cp"), "tensor-parallel group of ranks {ranks}"),
    ("stage", ("pp",), "pipeline stage {at}"),
    ("replica", ("dp",), "data-parallel replica {at}"),
)
"""Kinds, the coordinates that all ranks of such a place share, and their names."""


def place_of(view: AttemptView, ranks: Iterable[int], among: Iterable[int]) -> Place | None:
    """What two or more of the ranks ``among`` have in common that none of the others has; null where nothing is."""
    inside, everybody = set(ranks), {*among, *ranks}
    if len(inside) < 2 or inside == everybody:
        return None
    nodes = {view.node_of(rank) for rank in inside}
    if len(nodes) == 1 and "" not in nodes and inside == {one for one in everybody if view.node_of(one) in nodes}:
        return Place("node", nodes.pop())
    for kind, axes, name in _SHARED:
        shared = {_at(view, rank, axes) for rank in inside}
        if len(shared) == 1 and "" not in shared and inside == {r for r in everybody if _at(view, r, axes) in shared}:
            return Place(kind, name.format(ranks=rank_ranges(inside), at=shared.pop()))
    return None


def _at(view: AttemptView, rank: int, axes: tuple[str, ...]) -> str:
    """The rank's coordinates on the axes; empty where the first of them is not known."""
    coordinates = view.coordinates(rank)
    return " ".join(str(coordinates.get(axis, 0)) for axis in axes) if axes[0] in coordinates else ""
