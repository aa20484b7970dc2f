"""Ranks that differ from peers who wait like them: their own device has stopped, or they stopped short of the others.

Waiting, they may be links of a chain (``streams.waiting``); what holds none of their peers is not what holds them.
"""

from __future__ import annotations

import re
from math import inf

import msgspec

from schemas.results import CollectiveState
from streams.collectives import States, age_of, awaited, by_group, is_joint, stopped
from streams.waiting import outstanding

MOST_BEHIND = 64
"""So many ranks of one group that are behind its others are looked at; where there are more it is no rank's own."""
_PAIR = re.compile(r"(send|recv) (\d{1,7})(?:->|<-)(\d{1,7})$")
_Members = dict[int, CollectiveState]
_Key = tuple[str, int, int, str]


def never_completed(states: States) -> dict[int, CollectiveState]:
    """Rank to the group in which it has not completed an operation that most others have: its own device has stopped.

    Several of one group may have stopped together; they are fewer than half of it, and all others have completed it.
    """
    found: dict[int, CollectiveState] = {}
    for members in by_group(states).values():
        reached = sorted((one.last_completed for one in members.values()), reverse=True)
        most = reached[len(reached) // 2]
        behind = {rank: one for rank, one in members.items() if one.last_completed < most}
        if behind and len(members) >= 2 + len(behind) and all(_has_stopped(one, most) for one in behind.values()):
            found = behind | found
    return found | stopped(states)


def _has_stopped(one: CollectiveState, most: int) -> bool:
    return 0 <= one.oldest <= most and not one.only_sends and is_joint(one)


def outrun(states: States) -> dict[int, CollectiveState]:
    """Ranks that wait, while most of a group who wait for the very same went on to what they never came to.

    All of them run one program: what holds such a rank is not what it waits for, since that did not hold its peers.
    """
    held = {rank: _held(groups) for rank, groups in states.items()}
    keys = {rank: frozenset(map(_key, waits)) for rank, waits in held.items()}
    groups = by_group(states)
    sizes = {name: _size(members) for name, members in groups.items()}
    largest = max(sizes.values(), default=0)
    found: dict[int, CollectiveState] = {}
    for name, members in groups.items():
        waits = [one for one in members.values() if outstanding(one) and not one.only_sends]
        furthest = max((one.last_enqueued for one in waits), default=-1)
        behind = {rank: one.last_enqueued for rank, one in members.items() if one.last_enqueued < furthest}
        if not 0 < 2 * len(behind) < len(members) or len(behind) > MOST_BEHIND:
            continue
        awaits = max(awaited(one)[0] for one in waits)
        others = _Others(members, waits, behind, keys, groups)
        for rank, came in behind.items():
            if not held[rank] or (sizes[name] == largest and all(one.only_sends for one in held[rank])):
                # In a group of all stages only those are peers who wait in one and the same collective.
                continue
            if came >= awaits and (3 * len(behind) > len(members) or others.are_passed_by(states[rank])):
                continue
            alike = others.alike(came, keys[rank])
            if alike >= 2 and 2 * alike > len(members) - 1:
                missed = others.missed(came)
                found[rank] = min(found.get(rank, missed), missed, key=age_of)
    return found


class _Others:
    """What those show who are not ``behind`` in a group; looked up once, since many who are behind ask for the same."""

    def __init__(
        self,
        members: _Members,
        waits: list[CollectiveState],
        behind: dict[int, int],
        keys: dict[int, frozenset[_Key]],
        groups: dict[str, _Members],
    ) -> None:
        self._members, self._waits, self._behind, self._keys, self._groups = members, waits, behind, keys, groups
        self._alike: dict[tuple[int, frozenset[_Key]], int] = {}
        self._missed: dict[int, CollectiveState] = {}
        self._least: dict[str, float] = {}

    def alike(self, came: int, waits: frozenset[_Key]) -> int:
        """How many have come further than so far, and wait for all of this."""
        if (came, waits) not in self._alike:
            self._alike[came, waits] = sum(
                one.last_enqueued > came and waits <= self._keys[peer] for peer, one in self._members.items()
            )
        return self._alike[came, waits]

    def missed(self, came: int) -> CollectiveState:
        """The oldest of what those who have come further wait for, or have enqueued last, and this one has not."""
        if came not in self._missed:
            self._missed[came] = min((_next(one, came) for one in self._waits if one.last_enqueued > came), key=age_of)
        return self._missed[came]

    def are_passed_by(self, own: dict[str, CollectiveState]) -> bool:
        """Whether a rank has come further than any of them in any of its groups.

        How far ranks run ahead of their devices may differ by itself: then it differs either way.
        """
        return any(one.last_enqueued > self._least_of(name) for name, one in own.items() if not one.only_sends)

    def _least_of(self, group: str) -> float:
        """How far the last of them has come in a group."""
        if group not in self._least:
            came = (
                one.last_enqueued
                for peer, one in self._groups[group].items()
                if peer not in self._behind and not one.only_sends
            )
            self._least[group] = min(came, default=inf)
        return self._least[group]


def _size(members: _Members) -> int:
    """How many ranks a group has, seen or not."""
    return max(len(members), *(len(one.members) for one in members.values()))


def _next(wait: CollectiveState, came: int) -> CollectiveState:
    """What a peer waits for, or has enqueued last, and one that has come so far has not."""
    if awaited(wait)[0] > came:
        return wait
    return msgspec.structs.replace(wait, oldest=wait.last_enqueued, oldest_operation=wait.operation)


def _held(groups: dict[str, CollectiveState]) -> list[CollectiveState]:
    """All that a rank waits for; nothing where its dump does not show each wait."""
    waits = [one for one in groups.values() if outstanding(one)]
    known = all(one.oldest >= 0 and (one.only_sends or not one.awaits) for one in waits)
    return waits if known else []


def _key(one: CollectiveState) -> _Key:
    """A wait; of sends and receives, which are each pair's own, what it has in common with a like one of a peer."""
    pair = _PAIR.search(one.oldest_operation) if one.only_sends else None
    if pair is None:
        return one.group, 0, one.oldest, one.oldest_operation
    offset = int(pair.group(3)) - int(pair.group(2))
    return one.group.rpartition(":")[0], len(one.members), one.oldest, f"{pair.group(1)} {offset}"
