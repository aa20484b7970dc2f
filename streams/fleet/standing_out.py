"""Whether a place stands out among all jobs that are hit alike at that time, or chance explains it."""

from __future__ import annotations

from collections.abc import Collection

from streams.fleet.chance import hit_by_chance
from streams.fleet.seen import Seen
from streams.fleet.together import Together, Told, alike, begun_together

MOST_BY_CHANCE = 0.05


def hit_elsewhere(seen: Seen, members: list[Told], nodes: Collection[str], there: set[str]) -> set[str]:
    """The jobs that were hit alike at that time and do not point here; who names nobody and runs here may as well."""
    seed, jobs, here = members[0], {one.job for one in members}, set(nodes)
    found: set[str] = set()
    for one in seen.near(seed):
        incident = one.incident
        if one.job in jobs or one.job in found or not alike(seed.incident, incident):
            continue
        elsewhere = here.isdisjoint(incident.nodes) if incident.nodes else one.job not in there
        if elsewhere and begun_together(seed, one) is Together.YES:
            found.add(one.job)
    return found


def by_chance(seen: Seen, members: list[Told], nodes: Collection[str], elsewhere: set[str], places: int) -> float:
    """At most how likely it is that these jobs point at any one of so many places by chance, among all hit alike.

    By chance any jobs are hit, as by what all of them share, and each points at any of its nodes.
    """
    there = seen.on(nodes) | {one.job for one in members}
    jobs = len(seen.jobs | there | elsewhere)
    likely = hit_by_chance(jobs, len(members) + len(elsewhere), len(there), len(members))
    for one in members:
        own = seen.running.get(one.job, frozenset())
        likely *= max(len(own & set(nodes)), 1) / max(len(own), 1)
    return places * likely
