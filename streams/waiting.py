"""What the ranks of a job wait for, followed to where it begins: who holds everybody up, as far as dumps show it.

A device takes operations in the order in which they were enqueued, so a rank is at its oldest one that is not
completed. It waits there for the members that have not come to it; those are at something older, and wait in turn. A
chain begins at a rank that has nothing outstanding, at an operation to which everybody has come, at a rank of which
nothing was observed, or nowhere, where ranks wait for each other in a circle.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from itertools import pairwise

import msgspec

from schemas.results import CollectiveState
from streams.collectives import States, awaited


class Place(msgspec.Struct, frozen=True, order=True):
    """An operation at which ranks are: the sequence in a group, or the sender and receiver of what is sent (-1)."""

    group: str
    sequence: int
    pair: tuple[int, ...] = ()


class Gathering(msgspec.Struct, kw_only=True):
    """Who is at a place, and who of its group is still to come, ranks in their order.

    ``here`` are at it. Those still to come are at something else (``behind``), have nothing outstanding (``idle``), or
    are ``unobserved``: no dump, or one that does not show the group. Who is missing at an earlier place of the group,
    or waits there, is told there alone, and ``earlier`` is that place. The rest has completed it.
    """

    here: list[int]
    behind: list[int] = []
    idle: list[int] = []
    unobserved: list[int] = []
    earlier: Place | None = None

    @property
    def joined(self) -> bool:
        """Whether nobody is still to come."""
        return not self.behind and not self.idle and not self.unobserved and self.earlier is None


class Waiting(msgspec.Struct, kw_only=True):
    """Where everybody is who waits, by place, in their order.

    ``blocked`` are all ranks that have anything outstanding, also where it is not known with whom. ``members`` are the
    ranks of each group, ``known`` the groups of which dumps tell them. ``circles`` are places without a beginning.
    """

    blocked: list[int]
    heads: dict[int, Place]
    members: dict[str, list[int]]
    known: set[str]
    places: dict[Place, Gathering]
    circles: list[Place]

    @property
    def idle(self) -> dict[int, Place]:
        """The ranks that others wait for and that wait for nobody, each with the first place at which they do.

        Several only where they are fewer than those who wait: else these may be the ones who went ahead.
        """
        waiting: Counter[str] = Counter()
        for place, who in self.places.items():
            waiting[place.group] += len(who.here)
        return {
            rank: place
            for place, who in reversed(self.places.items())
            if place.pair or len(who.idle) == 1 or len(who.idle) < waiting[place.group]
            for rank in who.idle
        }

    @property
    def joined(self) -> dict[Place, Gathering]:
        """The places to which everybody has come, without that the operation was completed."""
        return {place: who for place, who in self.places.items() if who.joined}

    @property
    def unobserved(self) -> dict[int, Place]:
        """The ranks of which nothing shows whether they have come where others wait, each with the first place."""
        return {rank: place for place, who in reversed(self.places.items()) for rank in who.unobserved}

    def passed(self, place: Place) -> list[int]:
        """The members of a joined place that are not at it."""
        here = set(self.places[place].here)
        return [rank for rank in self.members_of(place) if rank not in here]

    def members_of(self, place: Place) -> list[int]:
        """The ranks that a place is for."""
        return list(place.pair) or self.members[place.group]


def waiting_of(states: States) -> Waiting:
    """Who waits where. Time and memory grow with the ranks and with the members of the groups in which any wait."""
    blocked = sorted(rank for rank, groups in states.items() if any(map(outstanding, groups.values())))
    heads = {rank: place for rank in blocked if (place := head_of(rank, states[rank])) is not None}
    places: dict[Place, Gathering] = {place: Gathering(here=[]) for place in sorted(set(heads.values()))}
    for rank, place in heads.items():
        places[place].here.append(rank)
    members, known = _members(states)
    found = Waiting(blocked=blocked, heads=heads, members=members, known=known, places=places, circles=[])
    waiting = set(blocked)
    for places_of_group in _by_group(places):
        _gather(places_of_group, found, states, waiting)
    found.circles = _circles(found)
    return found


def _by_group(places: dict[Place, Gathering]) -> list[list[Place]]:
    """Places that follow one another: those of a group by sequence; each send stands alone."""
    found: dict[tuple[str, tuple[int, ...]], list[Place]] = defaultdict(list)
    for place in places:
        found[place.group, place.pair].append(place)
    return list(found.values())


def outstanding(one: CollectiveState) -> bool:
    """Whether a rank has enqueued anything in a group that it has not completed, a send or receive as well."""
    return one.outstanding or one.last_enqueued > one.last_completed


def head_of(rank: int, groups: dict[str, CollectiveState]) -> Place | None:
    """The oldest operation that the rank has enqueued and not completed, null where there is none."""
    waits: list[tuple[int, Place]] = []
    for one in groups.values():
        if not one.only_sends and one.last_enqueued > one.last_completed:
            since = one.oldest_at if one.oldest >= 0 else one.enqueued_at
            waits.append((since, Place(one.group, awaited(one)[0])))
        for sender, receiver, created in one.awaits:
            pair = _pair(one, rank, sender, receiver)
            if rank in pair:
                waits.append((created, Place(one.group, -1, pair)))
    return min(waits, default=(0, None))[1]


def _pair(state: CollectiveState, rank: int, sender: int, receiver: int) -> tuple[int, ...]:
    """The ranks that send and receive: numbers are places in the group, or else ranks; the rank's own shows which."""
    ranks = state.members
    if max(sender, receiver) < len(ranks) and rank in (ranks[sender], ranks[receiver]):
        return ranks[sender], ranks[receiver]
    return (sender, receiver) if sender in ranks and receiver in ranks else ()


def _members(states: States) -> tuple[dict[str, list[int]], set[str]]:
    """The ranks of each group, as dumps tell them or else those whose dumps show it; and which groups dumps tell."""
    told: dict[str, CollectiveState] = {}
    shown: dict[str, list[int]] = defaultdict(list)
    for rank, groups in sorted(states.items()):
        for one in groups.values():
            shown[one.group].append(rank)
            if one.ranks or one.runs:
                told[one.group] = one
    return {group: sorted(told[group].members if group in told else ranks) for group, ranks in shown.items()}, set(told)


def _gather(ordered: list[Place], found: Waiting, states: States, waiting: set[int]) -> None:
    """Tell each member that is still to come at the first place of its group that it has not completed."""
    sequences = [place.sequence for place in ordered]
    for before, place in pairwise(ordered):
        found.places[place].earlier = before
    heads = set(ordered)
    for rank in found.members_of(ordered[0]):
        if found.heads.get(rank) in heads:
            continue
        own = states.get(rank, {}).get(ordered[0].group)
        if rank not in states or (own is None and not ordered[0].pair):
            found.places[ordered[0]].unobserved.append(rank)
            continue
        at = 0 if own is None or ordered[0].pair else bisect_right(sequences, own.last_completed)
        if at < len(ordered):
            who = found.places[ordered[at]]
            (who.behind if rank in waiting else who.idle).append(rank)


def _circles(found: Waiting) -> list[Place]:
    """The places from which no beginning can be reached.

    A chain begins where not everybody that is still to come is known to wait for something else.
    """
    waiting_for: dict[Place, set[Place]] = defaultdict(set)
    more = []
    for place, who in found.places.items():
        begins = who.joined or who.idle or who.unobserved
        for rank in who.behind:
            if rank in found.heads:
                waiting_for[found.heads[rank]].add(place)
            else:
                begins = True
        if who.earlier is not None:
            waiting_for[who.earlier].add(place)
        if begins:
            more.append(place)
    reached = set(more)
    while more:
        for place in waiting_for[more.pop()] - reached:
            reached.add(place)
            more.append(place)
    return [place for place in found.places if place not in reached]
