"""Failures of a switch: trouble of the network of several jobs on several nodes under it."""

from __future__ import annotations

from streams.fleet.bundles import alike_together, bundles, by_place
from streams.fleet.failure import LEAST_JOBS, Failure, FleetReason, verdict_of
from streams.fleet.seen import Seen
from streams.fleet.standing_out import MOST_BY_CHANCE, by_chance, hit_elsewhere
from streams.fleet.together import Told


def of_switches(seen: Seen, free: list[Told]) -> list[Failure]:
    """Trouble of the network on several nodes under one switch."""
    network = [one for one in free if one.incident.area == "network"]
    under = {one.key: sorted({seen.switches.get(node, "") for node in one.incident.nodes}) for one in network}
    found = []
    for switch, told in by_place((switch, one) for one in network for switch in under[one.key] if switch):
        nodes = {node for node, above in seen.switches.items() if above == switch}
        for members in bundles(told, alike_together, 2 * seen.widest):
            hit = sorted({node for one in members for node in one.incident.nodes if node in nodes})
            there = seen.on(nodes) | {one.job for one in members}
            elsewhere = hit_elsewhere(seen, members, nodes, there)
            places = len(set(seen.switches.values()))
            apart = by_chance(seen, members, nodes, elsewhere, places) <= MOST_BY_CHANCE
            if len(hit) < LEAST_JOBS or (elsewhere and not apart):
                continue
            found.append(
                Failure(
                    reason=FleetReason.SAME_SWITCH,
                    kind="switch",
                    name=switch,
                    members=members,
                    verdict=verdict_of(members) if apart else "ambiguous",
                    nodes=hit,
                    there=len(there),
                    elsewhere=len(elsewhere),
                )
            )
    return found
