"""Whether a place stands out among all jobs that are hit alike at that time, or chance explains it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set

from streams.fleet.chance import points_by_chance
from streams.fleet.seen import Seen
from streams.fleet.together import Together, Told, alike, begun_together

MOST_BY_CHANCE = 0.05
"""Of all places together: how likely it may be that any of them is named though none is at fault."""


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


def stands_out(seen: Seen, members: list[Told], nodes: Set[str], there: set[str], elsewhere: set[str]) -> bool:
    """Whether it is unlikely that by chance as many of the jobs ``there`` point at this or any other place.

    Chance is that of ``chance.py`` times the number of places at which several jobs might meet (Bonferroni's bound), so
    whatever these have in common. Who is hit there and names nobody is not counted among those who are hit.
    """
    seed = members[0].incident
    jobs = seen.running_at(seed.onset, seed.within_ns, {*there, *elsewhere})
    named = _named_near(seen, members[0])
    most = max((len(named[one.job]) for one in members), default=1)
    shares = [_share(seen, job, nodes, named, most) for job in there]
    chance = points_by_chance(jobs, len(members) + len(elsewhere), shares, len(members))
    return seen.places * chance <= MOST_BY_CHANCE


def _named_near(seen: Seen, seed: Told) -> dict[str, set[str]]:
    """The nodes at which each job points that was hit alike when the seed was."""
    named: dict[str, set[str]] = {}
    for one in seen.near(seed):
        if alike(seed.incident, one.incident):
            named.setdefault(one.job, set()).update(one.incident.nodes)
    return named


def _share(seen: Seen, job: str, nodes: Set[str], named: Mapping[str, Set[str]], most: int) -> float:
    """How likely it is at most that a job points here if it points at any of its nodes, at as many as it does.

    One that was not hit would have pointed at as many as others do. Of one that is not known to run here, as after it
    was moved, nobody knows among how many nodes it chose.
    """
    own = seen.running.get(job, frozenset())
    inside = len(own & nodes)
    return min((len(named.get(job, ())) or most) * inside / len(own), 1.0) if inside else 1.0
