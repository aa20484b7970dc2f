"""Failures of a node: incidents of several jobs that each point at it."""

from __future__ import annotations

from streams.fleet.bundles import alike_together, bundles, by_place
from streams.fleet.failure import Failure, FleetReason, verdict_of
from streams.fleet.seen import Seen
from streams.fleet.standing_out import hit_elsewhere, stands_out
from streams.fleet.together import Told, is_own


def of_nodes(seen: Seen, free: list[Told]) -> list[Failure]:
    """Those of nodes that stand out; errors that jobs brought along are told without the node."""
    found: list[Failure] = []
    taken: set[tuple[str, str]] = set()
    for place, told in by_place((place, one) for one in free for place in _places_of(one)):
        node, _, _ = place.partition(_BETWEEN)
        rest = [one for one in told if one.key not in taken]
        for members in bundles(rest, alike_together, 2 * seen.widest):
            failure = _at_node(seen, node, members)
            if failure is not None:
                found.append(failure)
                taken |= failure.keys
    return found


_BETWEEN = "\0"


def _places_of(one: Told) -> list[str]:
    """The nodes that it points at; what a job brings along is told apart by its errors, too."""
    nodes = one.incident.nodes
    if not is_own(one.incident):
        return nodes
    return [f"{node}{_BETWEEN}{error}" for node in nodes for error in one.incident.errors or [one.incident.reason]]


def _at_node(seen: Seen, node: str, members: list[Told]) -> Failure | None:
    """The failure of a node; null where it does not stand out among others that are hit at that time."""
    if is_own(members[0].incident):
        reason = FleetReason.SAME_ERROR
        return Failure(reason=reason, kind="fleet", name="", members=members, verdict="ambiguous")
    seed = members[0].incident
    there = seen.on([node], seed.onset, seed.within_ns) | {one.job for one in members}
    elsewhere = hit_elsewhere(seen, members, [node], there)
    apart = stands_out(seen, members, {node}, there, elsewhere)
    if elsewhere and not apart:
        return None
    devices = set.intersection(*(set(one.incident.devices) for one in members))
    reason = FleetReason.SAME_DEVICE if devices else FleetReason.SAME_NODE
    return Failure(
        reason=reason if apart else FleetReason.ONLY_NODE,
        kind="node",
        name=node,
        members=members,
        verdict=verdict_of(members) if apart else "ambiguous",
        nodes=[node],
        devices=sorted(devices),
        there=len(there),
        elsewhere=len(elsewhere),
    )
