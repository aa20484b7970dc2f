"""Failures of a storage: jobs that are held up together while nodes of each complain of it."""

from __future__ import annotations

from streams.fleet.bundles import bundles, by_place
from streams.fleet.failure import LEAST_JOBS, Failure, FleetReason, verdict_of
from streams.fleet.seen import Seen
from streams.fleet.together import SECOND, Together, Told, begun_together

DRAINED_NS = 180 * SECOND
"""For so long jobs may go on with what they had read before they feel that storage is gone."""
COMPLAINED_NS = 300 * SECOND
"""Clients complain of storage only after they have tried again for minutes."""
STORED = frozenset({"data", "checkpoint"})


def of_storage(seen: Seen, free: list[Told]) -> list[Failure]:
    """Jobs that were held up while nodes of theirs complained of one storage, from several nodes."""
    if not seen.complaints:
        return []
    complaining: dict[tuple[str, tuple[str, str]], set[str]] = {}
    places: list[tuple[str, Told]] = []
    for one in free:
        for storage, node in _complaints_of(seen, one) if _may_be_storage(one) else ():
            if (storage, one.key) not in complaining:
                places.append((storage, one))
            complaining.setdefault((storage, one.key), set()).add(node)
    found = []
    for storage, told in by_place(places):
        for members in bundles(told, _drained_together, 2 * seen.widest + DRAINED_NS):
            nodes = sorted(set().union(*(complaining[storage, one.key] for one in members)))
            if len(nodes) >= LEAST_JOBS:
                found.append(
                    Failure(
                        reason=FleetReason.SAME_STORAGE,
                        kind="storage",
                        name=storage,
                        members=members,
                        verdict=verdict_of(members),
                        nodes=nodes,
                        there=len(members),
                    )
                )
    return found


def _drained_together(first: Told, other: Told) -> bool:
    return begun_together(first, other, DRAINED_NS) is Together.YES


def _may_be_storage(one: Told) -> bool:
    """Whether what a job is held up by may be storage: where it reads or writes, or where nobody can say."""
    incident = one.incident
    if incident.symptom in ("numerics", "memory"):
        return False
    return incident.area in STORED or (incident.area == "unknown" and incident.symptom in ("hang", "slowdown"))


def _complaints_of(seen: Seen, one: Told) -> list[tuple[str, str]]:
    """Storage and node of what was complained of around an onset, by the nodes it points at, or any of its job's."""
    onset = one.incident.onset
    nodes = one.incident.nodes or sorted(seen.running.get(one.job, ()))
    return [
        (storage, node)
        for node in nodes
        for storage, (first, last) in seen.complaining.get(node, ())
        if first - COMPLAINED_NS <= onset <= last + COMPLAINED_NS
    ]
