"""Failures of a storage: jobs that are held up together while nodes of each complain of it."""

from __future__ import annotations

from functools import partial

from schemas.results import Verdict
from streams.fleet.bundles import bundles, by_place
from streams.fleet.failure import LEAST_JOBS, Failure, FleetReason, verdict_of
from streams.fleet.seen import Seen, Span
from streams.fleet.together import SECOND, Together, Told, begun_together

DRAINED_NS = 180 * SECOND
"""For so long jobs may go on with what they had read before they feel that storage is gone."""
COMPLAINED_NS = 300 * SECOND
"""Clients complain of storage only after they have tried again for minutes."""
STORED = frozenset({"data", "checkpoint"})


def of_storage(seen: Seen, free: list[Told]) -> list[Failure]:
    """Jobs that were held up while nodes of theirs complained of one storage at one time, from several nodes."""
    if not seen.complaints:
        return []
    said: _Said = {}
    places: list[tuple[str, Told]] = []
    for one in free:
        for storage, node, span in _complaints_of(seen, one) if _may_be_storage(one) else ():
            if (storage, one.key) not in said:
                places.append((storage, one))
            said.setdefault((storage, one.key), {})[node] = span
    found = []
    for storage, told in by_place(places):
        for members in bundles(told, partial(_drained_together, said, storage), 2 * seen.widest + DRAINED_NS):
            spans = [said[storage, one.key] for one in members]
            nodes = sorted(set().union(*spans))
            if len(nodes) >= LEAST_JOBS:
                found.append(
                    Failure(
                        reason=FleetReason.SAME_STORAGE,
                        kind="storage",
                        name=storage,
                        members=members,
                        verdict=_verdict(members, spans),
                        nodes=nodes,
                        there=len(members),
                    )
                )
    return found


_Said = dict[tuple[str, tuple[str, str]], dict[str, Span]]
"""From when to when each node complained, by storage and incident."""


def _verdict(members: list[Told], spans: list[dict[str, Span]]) -> Verdict:
    """Supported where complaints came before or with each onset and two jobs support that they wait for storage.

    That a rank is named for sure, for which nobody knows a cause, supports the rank and not the storage.
    """
    for one, of_nodes in zip(members, spans, strict=True):
        if min(first for first, _ in of_nodes.values()) > one.incident.onset + one.incident.within_ns:
            return "ambiguous"
    return verdict_of([one for one in members if one.incident.area in STORED or not one.incident.named])


def _drained_together(said: _Said, storage: str, first: Told, other: Told) -> bool:
    """Whether both were held up together, and complained of it together."""
    if begun_together(first, other, DRAINED_NS) is not Together.YES:
        return False
    one, two = said[storage, first.key].values(), said[storage, other.key].values()
    latest = max(min(begin for begin, _ in one), min(begin for begin, _ in two))
    return latest <= min(max(end for _, end in one), max(end for _, end in two)) + DRAINED_NS


def _may_be_storage(one: Told) -> bool:
    """Whether what a job is held up by may be storage: where it reads or writes, or where nobody can say."""
    incident = one.incident
    if incident.symptom in ("numerics", "memory"):
        return False
    return incident.area in STORED or (incident.area == "unknown" and incident.symptom in ("hang", "slowdown"))


def _complaints_of(seen: Seen, one: Told) -> list[tuple[str, str, Span]]:
    """Storage, node and time of what was complained of around an onset, by nodes it points at, or any of its job's."""
    onset = one.incident.onset
    nodes = one.incident.nodes or sorted(seen.running.get(one.job, ()))
    return [
        (storage, node, (first, last))
        for node in nodes
        for storage, (first, last) in seen.complaining.get(node, ())
        if first - COMPLAINED_NS <= onset <= last + COMPLAINED_NS
    ]
