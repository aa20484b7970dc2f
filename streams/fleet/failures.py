"""Which incidents of several jobs of a cluster are one failure, at which place, and for which reason.

A failure needs incidents of at least two jobs that began together, each of which points at the same place by itself.
A place is named only where chance does not explain that its jobs are hit: if others are hit alike elsewhere at that
time, it has to stand out among them. What jobs bring along, code, settings and data, accuses no place.
"""

from __future__ import annotations

import msgspec

from streams.fleet.failure import LEAST_JOBS, Failure
from streams.fleet.of_all import of_all
from streams.fleet.of_nodes import of_nodes
from streams.fleet.of_storage import of_storage
from streams.fleet.of_switches import of_switches
from streams.fleet.seen import Seen
from streams.fleet.together import is_merely_superseded


def failures(seen: Seen) -> list[Failure]:
    """The failures of several jobs, each incident in one at most; in order of their first members."""
    taken: set[tuple[str, str]] = set()
    found: list[Failure] = []
    for look in (of_storage, of_switches, of_nodes, of_all):
        for failure in look(seen, [one for one in seen.counting if one.key not in taken]):
            if not failure.keys & taken:
                found.append(failure)
                taken |= failure.keys
    series = _series(sorted(found, key=lambda one: (one.members[0].incident.onset, one.members[0].key)))
    return [one for one in series if not all(is_merely_superseded(member.incident) for member in one.members)]


def _series(found: list[Failure]) -> list[Failure]:
    """Failures of the same jobs at the same place as one: jobs that are restarted there fail there again and again."""
    joined: list[Failure] = []
    latest: dict[tuple[str, str, str], int] = {}
    for one in found:
        place = (one.kind, one.name, one.members[0].incident.symptom)
        at = latest.get(place)
        if one.name and at is not None and len(_jobs(joined[at]) & _jobs(one)) >= LEAST_JOBS:
            joined[at] = _one_of(joined[at], one)
        else:
            latest[place] = len(joined)
            joined.append(one)
    return joined


def _jobs(failure: Failure) -> set[str]:
    return {member.job for member in failure.members}


def _one_of(first: Failure, again: Failure) -> Failure:
    """Both as one, as the latter is; what was supported once stays so."""
    return msgspec.structs.replace(
        again,
        members=[*first.members, *again.members],
        verdict="supported" if "supported" in (first.verdict, again.verdict) else again.verdict,
        nodes=sorted({*first.nodes, *again.nodes}),
    )
