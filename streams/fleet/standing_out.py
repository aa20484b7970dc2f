"""Whether a place stands out among all jobs that are hit alike at that time, or chance explains it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set

from streams.fleet.chance import points_by_chance
from streams.fleet.seen import Seen
from streams.fleet.together import Told

MOST_BY_CHANCE = 0.05
"""Of all places together: how likely it may be that any of them is named though none is at fault."""


def hit_elsewhere(seen: Seen, members: list[Told], nodes: Collection[str], there: set[str]) -> set[str]:
    """The jobs that were hit alike at that time and do not point here; who names nobody and runs here may as well."""
    seed, jobs, here = members[0], {one.job for one in members}, set(nodes)
    found: set[str] = set()
    for one in seen.begun_alike(seed):
        named = one.incident.nodes
        if here.isdisjoint(named) if named else one.job not in there:
            found.add(one.job)
    return found - jobs


def stands_out(seen: Seen, members: list[Told], nodes: Set[str], there: set[str], elsewhere: set[str]) -> bool:
    """Whether it is unlikely that by chance as many of the jobs ``there`` point at this or any other place.

    Chance is that of ``chance.py`` times the number of places at which several jobs might meet (Bonferroni's bound), so
    whatever these have in common. Who is hit there and names nobody is not counted among those who are hit.
    """
    seed = members[0].incident
    jobs = seen.running_at(seed.onset, seed.within_ns, {*there, *elsewhere})
    named = {job: seen.named_alike(members[0], job) for job in there}
    most = max((len(named[one.job]) for one in members), default=1)
    shares = [_share(seen, job, nodes, named, most) for job in there]
    chance = points_by_chance(jobs, len(members) + len(elsewhere), shares, len(members))
    return seen.places * chance <= MOST_BY_CHANCE


def _share(seen: Seen, job: str, nodes: Set[str], named: Mapping[str, Set[str]], most: int) -> float:
    """How likely it is at most that a job points here if it points at any of its nodes, at as many as it does.

    One that was not hit would have pointed at as many as others do. Of one that is not known to run here, as after it
    was moved, nobody knows among how many nodes it chose.
    """
    own = seen.running.get(job, frozenset())
    inside = len(own & nodes)
    return min((len(named[job]) or most) * inside / len(own), 1.0) if inside else 1.0
