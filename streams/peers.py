"""Whom a rank can be compared with: who has its role, its pipeline stage and its experts, as far as these are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

from schemas.identity import Identity
from streams.member import Member

Coordinates = dict[str, int | list[int]]


def role_of(identity: Identity) -> tuple[str, str]:
    """The process type and the role: what differs in these is no peer."""
    return identity.process_type, identity.role


def peers_of(members: Mapping[int, Member], coordinates: Callable[[int], Coordinates]) -> list[list[int]]:
    """Ranks of the same process type, role, pipeline stage and expert group, in canonical order."""
    groups: dict[tuple[str, str, str, str, str], list[int]] = {}
    for rank in sorted(members):
        identity = members[rank].identity
        at = coordinates(rank)
        key = (*role_of(identity), identity.group, str(at.get("pp")), str(at.get("ep")))
        groups.setdefault(key, []).append(rank)
    return [groups[key] for key in sorted(groups, key="|".join)]


def has_one_stage(layout: Mapping[str, int], world_size: int | None) -> bool:
    """Whether the layout tells one stage; where it tells all sizes they must fit the world."""
    whole = prod(layout.get(axis, 1) for axis in ("dp", "cp", "tp"))
    fits = "dp" not in layout or layout.get("world", world_size) in (None, whole)
    return layout.get("pp") == 1 and fits
