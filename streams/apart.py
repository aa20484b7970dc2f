"""Where the chains of a standstill begin, who stands apart there, and what is known where nobody does."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

import msgspec

from schemas.results import CollectiveState
from streams.collectives import States, awaited, kinds_of, of_one_time, unlike_most
from streams.outrun import never_completed, outrun
from streams.waiting import Gathering, Place, Waiting, waiting_of

SHOWN_PLACES = 3


class Standing(msgspec.Struct, frozen=True):
    """By what a rank stands apart, and the operation that shows it."""

    grounds: str
    operation: str


class Apart(msgspec.Struct, frozen=True, kw_only=True):
    """What tells the ranks of a standstill apart.

    ``ranks`` are those that stand apart, in their order. Where there are none, ``grounds`` say why not, ``places`` are
    the first operations at which it begins, each with the ranks that wait there, of which there are ``more``, and
    ``others`` the ranks that the grounds are about. ``blocked`` are all that have anything outstanding.
    """

    grounds: str
    blocked: list[int]
    ranks: dict[int, Standing] = {}
    places: list[tuple[str, list[int]]] = []
    more: int = 0
    others: list[int] = []


def apart(states: States, *, stages: int | None) -> Apart | None:
    """Who stands apart where the chains begin, null where nobody waits. ``stages``: how many the layout tells.

    What is seen of a rank counts before what is only missing of it. Whoever stands apart is fewer than those who wait.
    """
    states = of_one_time(states)
    waiting = waiting_of(states)
    if not waiting.blocked:
        return None
    idle = waiting.idle
    names = {place: said(place, waiting, states) for place in set(idle.values())}
    certain = stages == 1 or _shows_all_waits(states)
    grounds = "never_enqueued" if certain else "perhaps_waiting"
    behind = {rank: Standing(grounds, names[place]) for rank, place in idle.items()}
    if certain:
        ahead_of = {rank: Standing("outrun", own_operation(one)) for rank, one in outrun(states).items()}
        behind = ahead_of | behind
    device = {rank: Standing("never_completed", own_operation(one)) for rank, one in never_completed(states).items()}
    for first, found in (
        ("never_completed", behind | device if device and certain else {}),
        ("never_completed", device),
        (grounds, behind),
    ):
        if found and len(found) < len(set(waiting.blocked) - set(found)):
            return Apart(grounds=first, blocked=waiting.blocked, ranks=dict(sorted(found.items())))
    for other, ranks in (
        ("mismatched", _mismatched(waiting, states)),
        ("never_started", _never_started(waiting, states) if certain else {}),
        ("out_of_order", _out_of_order(waiting, states)),
    ):
        if ranks:
            standing = {rank: Standing(other, operation) for rank, operation in sorted(ranks.items())}
            return Apart(grounds=other, blocked=waiting.blocked, ranks=standing)
    return _nobody(waiting, states)


def _shows_all_waits(states: States) -> bool:
    """Whether a rank without an outstanding operation really waits for nobody, as far as dumps can show."""
    return any(one.shows_sends for groups in states.values() for one in groups.values())


def _mismatched(waiting: Waiting, states: States) -> dict[int, str]:
    """Those that came to a place with another operation than more than half of its members."""
    for place, who in _collectives(waiting):
        unlike = unlike_most(_at(place, who, states), len(waiting.members_of(place)))
        if unlike:
            return {rank: own_operation(one) for rank, one in unlike.items()}
    return {}


def _at(place: Place, who: Gathering, states: States) -> dict[int, CollectiveState]:
    return {rank: states[rank][place.group] for rank in who.here}


def _never_started(waiting: Waiting, states: States) -> dict[int, str]:
    """Those whose device has begun nothing of what they wait for, where those of more than half of a place have.

    Only where each wait can be seen: a device that is held by something else has not begun it either.
    """
    if waiting.unobserved:
        return {}
    for place, who in _collectives(waiting):
        begun = {rank for rank in who.here if states[rank][place.group].oldest_started}
        if 2 * len(begun) > len(waiting.members_of(place)):
            late = [rank for rank in who.here if not any(one.oldest_started for one in states[rank].values())]
            return {rank: own_operation(states[rank][place.group]) for rank in late}
    return {}


def _collectives(waiting: Waiting) -> Iterable[tuple[Place, Gathering]]:
    return ((place, who) for place, who in waiting.places.items() if not place.pair)


def _out_of_order(waiting: Waiting, states: States) -> dict[int, str]:
    """The few that went on to an operation without one at which most of the same ranks wait before it."""
    for place, who in _collectives(waiting):
        for other, passed in sorted(_gone_on(place, who, waiting, states).items()):
            held = set(who.here) & set(waiting.members[other.group])
            if 2 * len(passed) < len(held) and 2 * len(held) > len(waiting.members_of(place)):
                return dict.fromkeys(passed, said(place, waiting, states))
    return {}


def _gone_on(place: Place, who: Gathering, waiting: Waiting, states: States) -> dict[Place, list[int]]:
    """Members that never enqueued what is waited for, by the collective at which they are instead."""
    found: dict[Place, list[int]] = defaultdict(list)
    for rank in who.behind:
        head = waiting.heads.get(rank)
        if head is not None and not head.pair and states[rank][place.group].last_enqueued < place.sequence:
            found[head].append(rank)
    return found


def _nobody(waiting: Waiting, states: States) -> Apart | None:
    """Why nobody stands apart: chains are followed to where they begin. Groups of unknown members tell nothing."""
    places = {place: who for place, who in waiting.places.items() if place.group in waiting.known}
    unmatched = _unmatched(waiting, states)
    if unmatched:
        return Apart(grounds="unmatched", blocked=waiting.blocked, places=unmatched)
    few = [place for place, who in places.items() if who.idle]
    if few:
        others = sorted({rank for place in few for rank in places[place].idle})
        return _told("few_ahead", few, others, waiting, states)
    unseen = [place for place, who in places.items() if who.unobserved]
    if unseen:
        first = [place for place in unseen if not places[place].behind] or unseen
        others = sorted(waiting.unobserved)
        alone = "one_unobserved" if len(others) == 1 else "some_unobserved"
        grounds = alone if all(_all_came(place, who, states) for place, who in places.items()) else "perhaps_unobserved"
        return _told(grounds, first, others, waiting, states)
    joined = [place for place in waiting.joined if place in places]
    if joined:
        passed = sorted({rank for place in joined for rank in waiting.passed(place)})
        return _told("none_completed", joined, passed, waiting, states)
    circles = [place for place in waiting.circles if place in places]
    return _told("different_collectives", circles, [], waiting, states) if circles else None


def _unmatched(waiting: Waiting, states: States) -> list[tuple[str, list[int]]]:
    """The operations that were brought to one place though they must be the same, each with its ranks."""
    for place, who in _collectives(waiting):
        for kinds in kinds_of(_at(place, who, states)):
            if len(kinds) > 1:
                groups = sorted(kinds.values())
                return [(own_operation(states[ranks[0]][place.group]), ranks) for ranks in groups[:SHOWN_PLACES]]
    return []


def _all_came(place: Place, who: Gathering, states: States) -> bool:
    """Whether all members that were observed have enqueued the operation, whatever their devices are at."""
    if place.pair:
        return not who.behind
    return all(states[rank][place.group].last_enqueued >= place.sequence for rank in who.behind)


def _told(grounds: str, places: list[Place], others: list[int], waiting: Waiting, states: States) -> Apart:
    shown = sorted(places, key=lambda place: (_since(place, waiting, states), place))
    return Apart(
        grounds=grounds,
        blocked=waiting.blocked,
        places=[(said(place, waiting, states), waiting.places[place].here) for place in shown[:SHOWN_PLACES]],
        more=max(len(shown) - SHOWN_PLACES, 0),
        others=others,
    )


def _since(place: Place, waiting: Waiting, states: States) -> int:
    """When the first of a place enqueued its operation (ns)."""
    here = [states[rank][place.group] for rank in waiting.places[place].here]
    if place.pair:
        return min((created for one in here for *_, created in one.awaits), default=0)
    return min(one.oldest_at or one.enqueued_at for one in here)


def said(place: Place, waiting: Waiting, states: States) -> str:
    """The operation at a place, in words."""
    if place.pair:
        sender, receiver = place.pair
        return f"what rank {sender} sends to rank {receiver} in group {place.group}"
    names = Counter(awaited(states[rank][place.group])[1] or "operation" for rank in waiting.places[place].here)
    name = max(sorted(names), key=lambda name: names[name])
    return _operation(name, place.sequence, place.group)


def own_operation(one: CollectiveState) -> str:
    """What a rank waits for first in a group, in words."""
    sequence, name = awaited(one)
    return _operation(name, sequence, one.group)


def _operation(name: str, sequence: int, group: str) -> str:
    return f"{name or 'operation'} {sequence} of group {group}"
