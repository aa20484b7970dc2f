"""Why a job's process groups do not get on: who holds them up, and where the chain of groups that wait ends.

A rank that has nothing outstanding while its peers wait for it stands outside communication. One that has may be a
link of a chain, waiting itself; unless most of its peers, who wait for the very same, went on to what it never came to.
Counts of sends and receives are each pair's own and never compared; that one waits for its partner is a wait all the
same.
"""

from __future__ import annotations

import re

import msgspec

from schemas.results import CollectiveState
from streams.collectives import JOINT, States, awaited, kind_of, laggards, stopped

MOST_BEHIND = 64
"""So many ranks of one group that are behind its others are looked at; where there are more it is no rank's own."""
_PAIR = re.compile(r"(send|recv) (\d{1,7})(?:->|<-)(\d{1,7})$")
_Members = dict[int, CollectiveState]


class Blocked(msgspec.Struct, frozen=True, kw_only=True):
    """A group in which ``waiting`` have enqueued an operation that they have not completed; it is the first of these.

    Of the group's members ``absent`` have not come to it, ``passed`` have completed it, ``unseen`` have no dump.
    ``since`` is when the first enqueued it (ns, 0 where unknown).
    """

    group: str
    sequence: int
    operation: str
    since: int
    waiting: list[int]
    absent: list[int]
    passed: list[int]
    unseen: list[int]

    @property
    def said(self) -> str:
        """The operation in words."""
        return f"{self.operation or 'operation'} {self.sequence} of group {self.group}"


def waiting_ranks(states: States) -> list[int]:
    """The ranks that have anything outstanding, a send or receive as well."""
    return sorted(rank for rank, groups in states.items() if any(map(_waits, groups.values())))


def _waits(one: CollectiveState) -> bool:
    return one.outstanding or one.last_enqueued > one.last_completed


def never_came(states: States) -> dict[int, CollectiveState]:
    """Rank to the state of a peer that waits for it, of those whom nothing shows waiting themselves."""
    counted = _counted(states)
    return _outrun(states) | _partners(states) | laggards(counted)


def never_completed(states: States) -> dict[int, CollectiveState]:
    """Rank to the group in which it has not completed an operation that most others have: its own device has stopped.

    Several of one group may have stopped together; they are fewer than half of it, and all others have completed it.
    """
    found: dict[int, CollectiveState] = {}
    for members in _by_group(states).values():
        reached = sorted((one.last_completed for one in members.values()), reverse=True)
        most = reached[len(reached) // 2]
        behind = {rank: one for rank, one in members.items() if one.last_completed < most}
        if behind and len(members) >= 2 + len(behind) and all(_has_stopped(one, most) for one in behind.values()):
            found = behind | found
    return found | stopped(states)


def _has_stopped(one: CollectiveState, most: int) -> bool:
    return 0 <= one.oldest <= most and not one.only_sends and one.oldest_operation.lstrip("_").startswith(JOINT)


def never_started(states: States) -> dict[int, CollectiveState]:
    """Rank to the group in which its device has not begun what those of all others have: it is busy with its own.

    A device that has begun anything else may wait there; of that nothing is known where no recorder tells of starts.
    """
    begun = {
        rank for rank, groups in states.items() if any(_waits(one) and one.oldest_started for one in groups.values())
    }
    found: dict[int, CollectiveState] = {}
    for members in _by_group(states).values():
        late = {rank: one for rank, one in members.items() if rank not in begun and one.oldest >= 0}
        others = [one for rank, one in members.items() if rank not in late]
        if not late or len(others) < 2 or 3 * len(late) > len(members):
            continue
        if all(_begun_at(one, min(own.oldest for own in late.values())) for one in others):
            found = {rank: one for rank, one in late.items() if not one.only_sends} | found
    return found


def _begun_at(one: CollectiveState, sequence: int) -> bool:
    return one.oldest == sequence and one.oldest_started and not one.only_sends


def blocked_groups(states: States) -> list[Blocked]:
    """The groups whose members are known and in which a collective is not completed, the earliest first."""
    found = []
    for name, members in _by_group(states).items():
        waiting = {
            rank: one for rank, one in members.items() if one.last_enqueued > one.last_completed and not one.only_sends
        }
        ranks = max((one.ranks for one in waiting.values()), key=len, default=[])
        if not ranks:
            continue
        first = min(waiting.values(), key=lambda one: (awaited(one), one.oldest_at))
        sequence, operation = awaited(first)
        at = [one.oldest_at or one.enqueued_at for one in waiting.values() if awaited(one)[0] == sequence]
        found.append(
            Blocked(
                group=name,
                sequence=sequence,
                operation=operation,
                since=min(at),
                waiting=sorted(waiting),
                absent=sorted(rank for rank, one in members.items() if one.last_enqueued < sequence),
                passed=sorted(rank for rank, one in members.items() if one.last_completed >= sequence),
                unseen=sorted(set(ranks) - set(members)),
            )
        )
    return sorted(found, key=lambda one: (one.since, one.group))


def unmatched(states: States) -> list[tuple[str, list[int], str]]:
    """Group, ranks and operation of those that wait at one place of a group in operations that are not the same.

    The earliest such place, each operation once; nothing where all agree. Where most agree ``mismatched`` tells more.
    """
    places: dict[tuple[str, int], dict[tuple[str, str], list[int]]] = {}
    at: dict[tuple[str, int], int] = {}
    for rank, groups in sorted(states.items()):
        for name, one in groups.items():
            if one.oldest >= 0 and not one.only_sends:
                place = (name, one.oldest)
                places.setdefault(place, {}).setdefault(kind_of(one), []).append(rank)
                at[place] = min(at.get(place, one.oldest_at), one.oldest_at)
    apart = [place for place, kinds in places.items() if len(kinds) > 1]
    if not apart:
        return []
    first = min(apart, key=lambda place: (at[place], place))
    told = [(ranks, " ".join(filter(None, kind))) for kind, ranks in places[first].items()]
    return [(first[0], ranks, f"{kind} at {first[1]}") for ranks, kind in sorted(told)]


def _by_group(states: States) -> dict[str, _Members]:
    groups: dict[str, _Members] = {}
    for rank, own in sorted(states.items()):
        for name, one in own.items():
            groups.setdefault(name, {})[rank] = one
    return groups


def _counted(states: States) -> States:
    """The states without the counts of sends: who waits in one still waits, and is held against nobody."""
    return {
        rank: {
            name: msgspec.structs.replace(one, last_enqueued=-1, last_completed=-1) if one.only_sends else one
            for name, one in groups.items()
        }
        for rank, groups in states.items()
    }


def _partners(states: States) -> dict[int, CollectiveState]:
    """Ranks with nothing outstanding whom another waits for in a send or receive."""
    found: dict[int, CollectiveState] = {}
    for rank, groups in states.items():
        for one in groups.values():
            partner = _partner(rank, one)
            own = {} if partner is None else states.get(partner, {})
            if partner is not None and own and not any(map(_waits, own.values())):
                found[partner] = min(found.get(partner, one), one, key=_age)
    return found


def _partner(rank: int, one: CollectiveState) -> int | None:
    """Whom the rank's oldest send or receive waits for; a recorder counts places within the group."""
    pair = _PAIR.search(one.oldest_operation) if one.only_sends and one.oldest >= 0 else None
    if pair is None:
        return None
    here, there = int(pair.group(2)), int(pair.group(3))
    if max(here, there) >= len(one.ranks) or one.ranks[here] != rank:
        return None
    return one.ranks[there]


def _outrun(states: States) -> dict[int, CollectiveState]:
    """Ranks that wait, while most of a group who wait for the very same went on to what they never came to.

    All of them run one program: what holds such a rank is not what it waits for, since that did not hold its peers.
    """
    held = {rank: _held(groups) for rank, groups in states.items()}
    keys = {rank: set(map(_key, waits)) for rank, waits in held.items()}
    groups = _by_group(states)
    largest = max(map(_size, groups.values()), default=0)
    found: dict[int, CollectiveState] = {}
    for members in groups.values():
        waits = [one for one in members.values() if _waits(one) and not one.only_sends]
        furthest = max((one.last_enqueued for one in waits), default=-1)
        behind = {rank: one.last_enqueued for rank, one in members.items() if one.last_enqueued < furthest}
        if not 0 < 2 * len(behind) < len(members) or len(behind) > MOST_BEHIND:
            continue
        awaits = max(awaited(one)[0] for one in waits)
        for rank, came in behind.items():
            if not held[rank] or (_size(members) == largest and all(one.only_sends for one in held[rank])):
                # In a group of all stages only those are peers who wait in one and the same collective.
                continue
            if came >= awaits and (3 * len(behind) > len(members) or _is_ahead(rank, behind, states[rank], groups)):
                continue
            alike = [peer for peer, one in members.items() if one.last_enqueued > came and keys[rank] <= keys[peer]]
            if len(alike) >= 2 and 2 * len(alike) > len(members) - 1:
                missed = min((_next(one, came) for one in waits if one.last_enqueued > came), key=_age)
                found[rank] = min(found.get(rank, missed), missed, key=_age)
    return found


def _size(members: _Members) -> int:
    """How many ranks a group has, seen or not."""
    return max(len(members), *(len(one.ranks) for one in members.values()))


def _is_ahead(rank: int, behind: dict[int, int], own: dict[str, CollectiveState], groups: dict[str, _Members]) -> bool:
    """Whether the rank has come further than any other in any of its groups, those aside who are behind as it is.

    How far ranks run ahead of their devices may differ by itself: then it differs either way.
    """
    return any(
        own[name].last_enqueued > one.last_enqueued
        for name in own
        if not own[name].only_sends
        for peer, one in groups[name].items()
        if peer not in behind and not one.only_sends
    )


def _next(wait: CollectiveState, came: int) -> CollectiveState:
    """What a peer waits for, or has enqueued last, and one that has come so far has not."""
    if awaited(wait)[0] > came:
        return wait
    return msgspec.structs.replace(wait, oldest=wait.last_enqueued, oldest_operation=wait.operation)


def _held(groups: dict[str, CollectiveState]) -> list[CollectiveState]:
    """All that a rank waits for; nothing where its dump does not show each wait."""
    waits = [one for one in groups.values() if _waits(one)]
    known = all(one.oldest >= 0 and (one.only_sends or not one.shows_sends) for one in waits)
    return waits if known else []


def _key(one: CollectiveState) -> tuple[str, int, int, str]:
    """A wait; of sends and receives, which are each pair's own, what it has in common with a like one of a peer."""
    pair = _PAIR.search(one.oldest_operation) if one.only_sends else None
    if pair is None:
        return one.group, 0, one.oldest, one.oldest_operation
    offset = int(pair.group(3)) - int(pair.group(2))
    return one.group.rpartition(":")[0], len(one.ranks), one.oldest, f"{pair.group(1)} {offset}"


def _age(wait: CollectiveState) -> tuple[int, int, str]:
    return wait.oldest_at or wait.enqueued_at, wait.enqueued_at, wait.group
