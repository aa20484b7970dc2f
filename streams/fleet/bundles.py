"""Incidents of several jobs put together by place and time."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from streams.fleet.failure import LEAST_JOBS
from streams.fleet.together import Together, Told, together


def bundles(told: list[Told], is_one: Callable[[Told, Told], bool], reach_ns: int) -> list[list[Told]]:
    """Incidents in order of onset that began with the first of theirs, one a job; those alone are left out."""
    found: list[list[Told]] = []
    used = [False] * len(told)
    for at, seed in enumerate(told):
        if used[at]:
            continue
        bundle, jobs = [seed], {seed.job}
        for other in range(at + 1, len(told)):
            one = told[other]
            if one.incident.onset - seed.incident.onset > reach_ns:
                break
            if not used[other] and one.job not in jobs and is_one(seed, one):
                used[other] = True
                bundle.append(one)
                jobs.add(one.job)
        if len(bundle) >= LEAST_JOBS:
            found.append(bundle)
    return found


def by_place(places: Iterable[tuple[str, Told]]) -> list[tuple[str, list[Told]]]:
    """Incidents by place, the place of most jobs first; those of one job alone are left out."""
    found: dict[str, list[Told]] = {}
    for place, one in places:
        found.setdefault(place, []).append(one)
    jobs = {place: len({one.job for one in told}) for place, told in found.items()}
    return [(place, found[place]) for place in sorted(found, key=lambda p: (-jobs[p], p)) if jobs[place] >= LEAST_JOBS]


def alike_together(first: Told, other: Told) -> bool:
    """Whether they may be one failure as far as time and kind tell."""
    return together(first, other) is Together.YES
