"""What the ranks of a job wait for, followed to where it begins: who holds everybody up, as far as dumps show it.

A device takes operations in the order in which they were enqueued, so a rank is at its oldest one that is not
completed. It waits there for the members that have not come to it; those are at something older, and wait in turn. A
chain begins at a rank that has nothing outstanding, at an operation to which everybody has come, at a rank of which
nothing was observed, or nowhere, where ranks wait for each other in a circle.
"""

from __future__ import annotations

from collections import defaultdict

import msgspec

from schemas.results import CollectiveState

States = dict[int, dict[str, CollectiveState]]
"""Each rank's latest state by group."""


class Place(msgspec.Struct, frozen=True, order=True):
    """An operation at which ranks are: the sequence in a group, or the sender and receiver of what is sent (-1)."""

    group: str
    sequence: int
    pair: tuple[int, ...] = ()


class Gathering(msgspec.Struct, kw_only=True):
    """Who belongs to a place: ``here`` are at it, ``behind`` are at something else, ``idle`` have nothing outstanding.

    All of those are still to come. ``unobserved`` have no dump; who has completed the operation is nowhere.
    """

    members: list[int]
    here: list[int]
    behind: list[int]
    idle: list[int]
    unobserved: list[int]

    @property
    def begins(self) -> bool:
        """Whether a chain may begin here: not everybody that is still to come waits for something else himself."""
        return bool(self.idle or self.unobserved or not self.behind)


class Waiting(msgspec.Struct, kw_only=True):
    """Where everybody is who waits, and of each group the first place at which any does, in their order.

    Who is further on in a group waits for those at its first place, too. ``circles`` are places without a beginning.
    """

    heads: dict[int, Place]
    members: dict[str, list[int]]
    places: dict[Place, Gathering]
    circles: list[Place]

    @property
    def idle(self) -> dict[int, Place]:
        """The ranks that others wait for and that wait for nobody, each with the first place at which they do."""
        return {rank: place for place, who in reversed(self.places.items()) for rank in who.idle}

    @property
    def joined(self) -> dict[Place, Gathering]:
        """The places to which everybody has come, without that the operation was completed."""
        return {
            place: who for place, who in self.places.items() if not who.behind and not who.idle and not who.unobserved
        }

    @property
    def unobserved(self) -> dict[int, Place]:
        """The ranks without a dump that are waited for, each with the first place."""
        return {rank: place for place, who in reversed(self.places.items()) for rank in who.unobserved}


def waiting_of(states: States) -> Waiting:
    """Who waits where. Time and memory grow with the ranks and with the members of the groups in which any wait."""
    heads = {rank: place for rank, groups in sorted(states.items()) if (place := head_of(rank, groups)) is not None}
    first: dict[tuple[str, tuple[int, ...]], Place] = {}
    for place in heads.values():
        first[place.group, place.pair] = min(place, first.get((place.group, place.pair), place))
    here: dict[Place, list[int]] = {place: [] for place in sorted(first.values())}
    for rank, place in heads.items():
        if place in here:
            here[place].append(rank)
    members = _members(states)
    places = {
        place: _gathering(place, at_it, list(place.pair) or members[place.group], states, heads)
        for place, at_it in here.items()
    }
    leading = {rank: first[place.group, place.pair] for rank, place in heads.items()}
    return Waiting(heads=heads, members=members, places=places, circles=_circles(leading, places))


def head_of(rank: int, groups: dict[str, CollectiveState]) -> Place | None:
    """The oldest operation that the rank has enqueued and not completed, null where there is none."""
    waits: list[tuple[int, Place]] = []
    for one in groups.values():
        if not one.only_sends and one.last_enqueued > one.last_completed:
            known = one.oldest >= 0
            waits.append(
                (one.oldest_at, Place(one.group, one.oldest))
                if known
                else (one.enqueued_at, Place(one.group, one.last_enqueued))
            )
        for sender, receiver, created in one.awaits:
            pair = _pair(one, rank, sender, receiver)
            if rank in pair:
                waits.append((created, Place(one.group, -1, pair)))
    return min(waits, default=(0, None))[1]


def _pair(state: CollectiveState, rank: int, sender: int, receiver: int) -> tuple[int, ...]:
    """The ranks that send and receive: numbers are places in the group, or else ranks; the rank's own shows which."""
    ranks = state.ranks
    if max(sender, receiver) < len(ranks) and rank in (ranks[sender], ranks[receiver]):
        return ranks[sender], ranks[receiver]
    return (sender, receiver) if {sender, receiver} <= set(ranks) else ()


def _members(states: States) -> dict[str, list[int]]:
    """The ranks of each group: as dumps tell them, or else those whose dumps show it."""
    told: dict[str, list[int]] = {}
    shown: dict[str, list[int]] = defaultdict(list)
    for rank, groups in sorted(states.items()):
        for one in groups.values():
            shown[one.group].append(rank)
            if one.ranks:
                told[one.group] = one.ranks
    return {group: sorted(told.get(group, ranks)) for group, ranks in shown.items()}


def _gathering(place: Place, here: list[int], members: list[int], states: States, heads: dict[int, Place]) -> Gathering:
    found = Gathering(members=members, here=here, behind=[], idle=[], unobserved=[])
    for rank in members:
        if heads.get(rank) == place:
            continue
        if rank not in states:
            found.unobserved.append(rank)
            continue
        own = states[rank].get(place.group)
        if own is None or (not place.pair and own.last_completed >= place.sequence):
            # What a dump does not show of a group cannot be told from what has not been.
            continue
        (found.behind if rank in heads else found.idle).append(rank)
    return found


def _circles(heads: dict[int, Place], places: dict[Place, Gathering]) -> list[Place]:
    """The places from which no beginning can be reached."""
    waiting_for: dict[Place, set[Place]] = defaultdict(set)
    for place, who in places.items():
        for rank in who.behind:
            waiting_for[heads[rank]].add(place)
    reached = {place for place, who in places.items() if who.begins}
    more = sorted(reached)
    while more:
        for place in waiting_for[more.pop()] - reached:
            reached.add(place)
            more.append(place)
    return [place for place in places if place not in reached]
