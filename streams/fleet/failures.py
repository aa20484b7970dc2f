"""Which incidents of several jobs of a cluster are one failure, at which place, and for which reason.

A failure needs incidents of at least two jobs that began together, each of which points at the same place by itself.
A place is named only where chance does not explain that its jobs are hit: if others are hit alike elsewhere at that
time, it has to stand out among them. What jobs bring along, code, settings and data, accuses no place.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Set
from enum import Enum
from functools import cached_property
from typing import Literal

import msgspec

from schemas.results import Verdict
from streams.fleet.chance import hit_by_chance
from streams.fleet.together import SECOND, Counts, Together, Told, alike, begun_together, counts, is_own, together

MOST_BY_CHANCE = 0.05
LEAST_JOBS = 2
WIDE_JOBS = 5
"""Fewer jobs that are hit at once are no matter of the whole cluster."""
DRAINED_NS = 180 * SECOND
"""For so long jobs may go on with what they had read before they feel that storage is gone."""
COMPLAINED_NS = 300 * SECOND
"""Clients complain of storage only after they have tried again for minutes."""
STORED = frozenset({"data", "checkpoint"})

PlaceKind = Literal["node", "switch", "storage", "fleet"]
Span = tuple[int, int]
"""First and last time (ns)."""


class FleetReason(Enum):
    """Why incidents of several jobs are one failure."""

    SAME_NODE = "incidents of several jobs began together, and each points at this node"
    SAME_DEVICE = "incidents of several jobs began together, and each points at this device"
    ONLY_NODE = (
        "incidents of several jobs began together and point at this node, but too little ran elsewhere to compare"
    )
    SAME_SWITCH = "incidents of several jobs began together, and each points at a node under this switch"
    SAME_STORAGE = "several jobs were held up together, and nodes of each complain of this storage"
    SAME_ERROR = (
        "several jobs failed together of one error, which code, settings or data that they share explain as well"
    )
    CLUSTER_WIDE = "most jobs of the cluster were hit alike at once, and nothing tells of one place"


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Incidents that are one failure, in order of onset; ``there`` jobs are known at the place, ``elsewhere`` hit too.

    ``nodes`` are those of the place, and ``name`` is empty where none is named.
    """

    reason: FleetReason
    kind: PlaceKind
    name: str
    members: list[Told]
    verdict: Verdict
    nodes: list[str] = []
    devices: list[str] = []
    there: int = 0
    elsewhere: int = 0

    @property
    def keys(self) -> set[tuple[str, str]]:
        """Its members' keys."""
        return {member.key for member in self.members}


class Seen(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """What is known of a cluster: incidents, the nodes on which each job runs, and the switches of nodes.

    ``complaints`` are spans of time by storage and node.
    """

    incidents: Collection[Told]
    running: Mapping[str, Set[str]] = {}
    switches: Mapping[str, str] = {}
    complaints: Mapping[str, Mapping[str, Span]] = {}

    @cached_property
    def counting(self) -> list[Told]:
        """The incidents that count, in order of onset."""
        found = [one for one in self.incidents if counts(one.incident) is Counts.YES]
        return sorted(found, key=lambda one: (one.incident.onset, one.key))

    @cached_property
    def onsets(self) -> list[int]:
        """Their onsets (ns)."""
        return [one.incident.onset for one in self.counting]

    @cached_property
    def widest(self) -> int:
        """How far any of them may lie from its onset at most (ns)."""
        return max((one.incident.within_ns for one in self.counting), default=0)

    @cached_property
    def jobs(self) -> set[str]:
        """All jobs that are known."""
        return {*self.running, *(one.job for one in self.counting)}

    @cached_property
    def shared_nodes(self) -> int:
        """How many nodes run several jobs, so might have been the one by chance."""
        return max(sum(len(jobs) >= LEAST_JOBS for jobs in self.jobs_of.values()), 1)

    @cached_property
    def jobs_of(self) -> dict[str, list[str]]:
        """The jobs that run on each node."""
        found: dict[str, list[str]] = {}
        for job, nodes in self.running.items():
            for node in nodes:
                found.setdefault(node, []).append(job)
        return found

    def on(self, nodes: Iterable[str]) -> set[str]:
        """The jobs that run on any of these nodes."""
        return {job for node in nodes for job in self.jobs_of.get(node, ())}

    @cached_property
    def complaining(self) -> dict[str, list[tuple[str, Span]]]:
        """What each node complains of, and when."""
        found: dict[str, list[tuple[str, Span]]] = {}
        for storage in sorted(self.complaints):
            for node, span in self.complaints[storage].items():
                found.setdefault(node, []).append((storage, span))
        return found

    def near(self, seed: Told) -> list[Told]:
        """Those that may have begun with it."""
        reach = seed.incident.within_ns + self.widest
        first = bisect_left(self.onsets, seed.incident.onset - reach)
        last = bisect_left(self.onsets, seed.incident.onset + reach + 1)
        return self.counting[first:last]


def failures(seen: Seen) -> list[Failure]:
    """The failures of several jobs, each incident in one at most; in order of their first members."""
    taken: set[tuple[str, str]] = set()
    found: list[Failure] = []
    for look in (_of_storage, _of_switches, _of_nodes, _of_all):
        for failure in look(seen, [one for one in seen.counting if one.key not in taken]):
            if not failure.keys & taken:
                found.append(failure)
                taken |= failure.keys
    return _series(sorted(found, key=lambda one: (one.members[0].incident.onset, one.members[0].key)))


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


def _bundles(told: list[Told], is_one: Callable[[Told, Told], bool], reach_ns: int) -> list[list[Told]]:
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


def _by_place(places: Iterable[tuple[str, Told]]) -> list[tuple[str, list[Told]]]:
    """Incidents by place, the place of most jobs first; those of one job alone are left out."""
    found: dict[str, list[Told]] = {}
    for place, one in places:
        found.setdefault(place, []).append(one)
    jobs = {place: len({one.job for one in told}) for place, told in found.items()}
    return [(place, found[place]) for place in sorted(found, key=lambda p: (-jobs[p], p)) if jobs[place] >= LEAST_JOBS]


def _alike_together(first: Told, other: Told) -> bool:
    return together(first, other) is Together.YES


def _of_nodes(seen: Seen, free: list[Told]) -> list[Failure]:
    found: list[Failure] = []
    taken: set[tuple[str, str]] = set()
    for place, told in _by_place((place, one) for one in free for place in _places_of(one)):
        node, _, _ = place.partition(_BETWEEN)
        rest = [one for one in told if one.key not in taken]
        for members in _bundles(rest, _alike_together, 2 * seen.widest):
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
    there = seen.on([node]) | {one.job for one in members}
    elsewhere = _elsewhere(seen, members, [node], there)
    apart = _by_chance(seen, members, [node], elsewhere, seen.shared_nodes) <= MOST_BY_CHANCE
    if elsewhere and not apart:
        return None
    devices = set.intersection(*(set(one.incident.devices) for one in members))
    reason = FleetReason.SAME_DEVICE if devices else FleetReason.SAME_NODE
    return Failure(
        reason=reason if apart else FleetReason.ONLY_NODE,
        kind="node",
        name=node,
        members=members,
        verdict=_verdict(members) if apart else "ambiguous",
        nodes=[node],
        devices=sorted(devices),
        there=len(there),
        elsewhere=len(elsewhere),
    )


def _elsewhere(seen: Seen, members: list[Told], nodes: Collection[str], there: set[str]) -> set[str]:
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


def _by_chance(seen: Seen, members: list[Told], nodes: Collection[str], elsewhere: set[str], places: int) -> float:
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


def _verdict(members: list[Told]) -> Verdict:
    """Supported where at least two jobs support it by themselves."""
    sure = {one.job for one in members if one.incident.verdict == "supported"}
    return "supported" if len(sure) >= LEAST_JOBS else "ambiguous"


def _of_switches(seen: Seen, free: list[Told]) -> list[Failure]:
    """Trouble of the network on several nodes under one switch."""
    network = [one for one in free if one.incident.area == "network"]
    under = {one.key: sorted({seen.switches.get(node, "") for node in one.incident.nodes}) for one in network}
    found = []
    for switch, told in _by_place((switch, one) for one in network for switch in under[one.key] if switch):
        nodes = {node for node, above in seen.switches.items() if above == switch}
        for members in _bundles(told, _alike_together, 2 * seen.widest):
            hit = sorted({node for one in members for node in one.incident.nodes if node in nodes})
            there = seen.on(nodes) | {one.job for one in members}
            elsewhere = _elsewhere(seen, members, nodes, there)
            places = len(set(seen.switches.values()))
            apart = _by_chance(seen, members, nodes, elsewhere, places) <= MOST_BY_CHANCE
            if len(hit) < LEAST_JOBS or (elsewhere and not apart):
                continue
            found.append(
                Failure(
                    reason=FleetReason.SAME_SWITCH,
                    kind="switch",
                    name=switch,
                    members=members,
                    verdict=_verdict(members) if apart else "ambiguous",
                    nodes=hit,
                    there=len(there),
                    elsewhere=len(elsewhere),
                )
            )
    return found


def _of_storage(seen: Seen, free: list[Told]) -> list[Failure]:
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
    for storage, told in _by_place(places):
        for members in _bundles(told, _drained_together, 2 * seen.widest + DRAINED_NS):
            nodes = sorted(set().union(*(complaining[storage, one.key] for one in members)))
            if len(nodes) >= LEAST_JOBS:
                found.append(
                    Failure(
                        reason=FleetReason.SAME_STORAGE,
                        kind="storage",
                        name=storage,
                        members=members,
                        verdict=_verdict(members),
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


def _of_all(seen: Seen, free: list[Told]) -> list[Failure]:
    """Most jobs of the cluster at once; where they are hit tells nothing then."""
    hit = [one for one in free if one.incident.symptom in ("hang", "crash", "slowdown") and not is_own(one.incident)]
    if len({one.job for one in hit}) < max(WIDE_JOBS, (len(seen.jobs) + 1) // 2):
        return []
    return [
        Failure(
            reason=FleetReason.CLUSTER_WIDE,
            kind="fleet",
            name="",
            members=members,
            verdict="ambiguous",
            there=len(seen.jobs),
        )
        for members in _bundles(hit, _alike_together, 2 * seen.widest)
        if len(members) >= max(WIDE_JOBS, (len(seen.jobs) + 1) // 2)
    ]
