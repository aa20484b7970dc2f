"""Failures of a switch: trouble of the network of several jobs on several nodes under it.

Switches are told as paths, and each switch of a path is a place: what all hangs under one leaf is that leaf's, what
hangs under several leaves of one spine the spine's.
"""

from __future__ import annotations

from streams.fleet.bundles import alike_together, bundles, by_place
from streams.fleet.failure import LEAST_JOBS, Failure, FleetReason, verdict_of
from streams.fleet.seen import Seen
from streams.fleet.standing_out import hit_elsewhere, stands_out
from streams.fleet.together import Told
from streams.switches import above, parts_of


def of_switches(seen: Seen, free: list[Told]) -> list[Failure]:
    """Those of switches that stand out, the lowest first; one under which all nodes hang is none of them."""
    network = [one for one in free if one.incident.area == "network"]
    places = by_place((switch, one) for one in network for switch in _switches_above(seen, one))
    found: list[Failure] = []
    taken: set[tuple[str, str]] = set()
    for switch, told in sorted(places, key=lambda place: -len(parts_of(place[0]))):
        rest = [one for one in told if one.key not in taken]
        for members in bundles(rest, alike_together, 2 * seen.widest):
            failure = _at_switch(seen, switch, members)
            if failure is not None:
                found.append(failure)
                taken |= failure.keys
    return found


def _switches_above(seen: Seen, one: Told) -> list[str]:
    """All switches above the nodes that it points at."""
    return sorted({switch for node in one.incident.nodes for switch in above(seen.switches.get(node, ""))})


def _at_switch(seen: Seen, switch: str, members: list[Told]) -> Failure | None:
    """The failure of a switch; null where it does not stand out, or where what hangs below it may be it as well."""
    nodes, seed = seen.under[switch], members[0].incident
    hit = sorted({node for one in members for node in one.incident.nodes if node in nodes})
    if len(_branches(seen, switch, hit)) < LEAST_JOBS or len(nodes) == len(seen.switches):
        return None
    there = seen.on(nodes, seed.onset, seed.within_ns) | {one.job for one in members}
    elsewhere = hit_elsewhere(seen, members, nodes, there)
    apart = stands_out(seen, members, nodes, there, elsewhere)
    if elsewhere and not apart:
        return None
    return Failure(
        reason=FleetReason.SAME_SWITCH,
        kind="switch",
        name=switch,
        members=members,
        verdict=verdict_of(members) if apart else "ambiguous",
        nodes=hit,
        there=len(there),
        elsewhere=len(elsewhere),
    )


def _branches(seen: Seen, switch: str, nodes: list[str]) -> set[str]:
    """What hangs right below the switch that these nodes are, or hang under."""
    level = len(parts_of(switch))
    paths = {node: parts_of(seen.switches[node]) for node in nodes}
    return {path[level] if len(path) > level else f"node {node}" for node, path in paths.items()}
