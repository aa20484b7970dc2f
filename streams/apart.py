"""Where the chains of a standstill begin, and who stands apart there."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Literal

import msgspec

from schemas.results import CollectiveState
from streams.collectives import stopped
from streams.waiting import Gathering, Place, States, Waiting, waiting_of

Grounds = Literal[
    "never_completed",
    "never_enqueued",
    "perhaps_waiting",
    "mismatched",
    "not_begun",
    "out_of_order",
    "none_completed",
    "unobserved_peer",
    "circle",
]
_EQUAL = ("all_reduce", "allreduce", "all_gather_base", "reduce_scatter_base", "broadcast")
"""Operations to which all ranks bring as much, of one type."""
SHOWN_PLACES = 3


class Apart(msgspec.Struct, frozen=True, kw_only=True):
    """What tells ranks apart: each of ``ranks`` with the operation by which it does; none where nothing does.

    ``place`` is where the others wait, ``gathered`` who belongs there.
    """

    grounds: Grounds
    ranks: dict[int, str]
    place: str = ""
    gathered: list[int] = []


def apart(states: States, *, stages: int | None) -> Apart | None:
    """Who stands apart where the chains begin, null where nobody waits. ``stages``: how many the layout tells.

    What is seen of a rank counts before what is only missing of it: an operation that it alone has not completed; that
    it has nothing outstanding while others wait for it; that it brought another operation, or has not begun one that
    the others have begun; that it left one out.
    """
    device = stopped(states)
    if 0 < 2 * len(device) < len(states):
        return Apart(grounds="never_completed", ranks={rank: _own(one) for rank, one in device.items()})
    waiting = waiting_of(states)
    if not waiting.heads:
        return None
    idle = waiting.idle
    if len(idle) >= len(waiting.heads):
        # The few that wait may be the ones who went ahead.
        return None
    if idle:
        certain = stages == 1 or _shows_all_waits(states, stages=stages, idle=len(idle))
        # Of each place only its own group is asked: there may be thousands of either.
        names = {
            place: said(place, {rank: states[rank] for rank in waiting.members[place.group] if rank in states})
            for place in set(idle.values())
        }
        return Apart(
            grounds="never_enqueued" if certain else "perhaps_waiting",
            ranks={rank: names[place] for rank, place in sorted(idle.items())},
        )
    found = _mismatched(waiting, states) or _not_begun(waiting, states) or _out_of_order(waiting, states)
    return found or _nobody(waiting, states)


def _shows_all_waits(states: States, *, stages: int | None, idle: int) -> bool:
    """Whether a rank without an outstanding operation really waits for nobody, as far as dumps can show.

    They do where they show sends at all, or where one rank stands alone in the one group of a job of which no stages
    are known.
    """
    found = [one for groups in states.values() for one in groups.values()]
    if any(one.shows_sends for one in found):
        return True
    return stages is None and idle == 1 and len({one.group for one in found}) == 1


def _mismatched(waiting: Waiting, states: States) -> Apart | None:
    """Those that came to a place with another operation than more than half of its members."""
    for place, who in _beginning(waiting):
        kinds = {rank: _kind(states[rank][place.group]) for rank in who.here}
        most, count = max(Counter(kinds.values()).items(), key=lambda item: (item[1], item[0]))
        if count < len(kinds) and 2 * count > len(who.members):
            unlike = sorted(rank for rank, kind in kinds.items() if kind != most)
            return Apart(
                grounds="mismatched",
                ranks={rank: _own(states[rank][place.group]) for rank in unlike},
                place=said(place, states),
                gathered=who.members,
            )
    return None


def _not_begun(waiting: Waiting, states: States) -> Apart | None:
    """Those whose device has not begun what the devices of more than half of a place's members have."""
    for place, who in _beginning(waiting):
        begun = [rank for rank in who.here if states[rank][place.group].oldest_started]
        if len(begun) < len(who.here) and 2 * len(begun) > len(who.members):
            return Apart(
                grounds="not_begun",
                ranks={rank: _own(states[rank][place.group]) for rank in who.here if rank not in begun},
                place=said(place, states),
                gathered=who.members,
            )
    return None


def _beginning(waiting: Waiting) -> Iterable[tuple[Place, Gathering]]:
    return ((place, who) for place, who in waiting.places.items() if who.begins and not place.pair)


def _kind(one: CollectiveState) -> tuple[str, str]:
    """What all ranks must have alike at one place of a group: the operation, and mostly the sizes too."""
    name = one.oldest_operation.lstrip("_")
    return name, one.oldest_shape if name.startswith(_EQUAL) else ""


def _out_of_order(waiting: Waiting, states: States) -> Apart | None:
    """The few that went on to an operation without one at which most of the same ranks wait before it."""
    for place, who in waiting.places.items():
        if place.pair:
            continue
        for other, passed in sorted(_gone_on(place, who, waiting, states).items()):
            held = set(who.here) & set(waiting.members[other.group])
            if 2 * len(passed) < len(held) and 2 * len(held) > len(who.members):
                name = said(place, states)
                return Apart(
                    grounds="out_of_order", ranks=dict.fromkeys(passed, name), place=name, gathered=who.members
                )
    return None


def _gone_on(place: Place, who: Gathering, waiting: Waiting, states: States) -> dict[Place, list[int]]:
    """Members that never enqueued what is waited for, by the collective at which they are instead."""
    found: dict[Place, list[int]] = defaultdict(list)
    for rank in who.behind:
        head = waiting.heads[rank]
        if not head.pair and states[rank][place.group].last_enqueued < place.sequence:
            found[head].append(rank)
    return found


def _nobody(waiting: Waiting, states: States) -> Apart:
    """Nothing tells the ranks apart: the places to which all have come, or who would have to be observed."""
    joined = waiting.joined
    if joined:
        members = sorted({rank for who in joined.values() for rank in who.members})
        return Apart(grounds="none_completed", ranks={}, place=_said_all(list(joined), states), gathered=members)
    unobserved = waiting.unobserved
    if unobserved:
        places = sorted(set(unobserved.values()))
        return Apart(grounds="unobserved_peer", ranks={}, place=_said_all(places, states), gathered=sorted(unobserved))
    return Apart(grounds="circle", ranks={}, place=_said_all(waiting.circles, states))


def _said_all(places: list[Place], states: States) -> str:
    shown = "; ".join(said(place, states) for place in places[:SHOWN_PLACES])
    more = len(places) - SHOWN_PLACES
    return f"{shown} and {more} more" if more > 0 else shown


def said(place: Place, states: States) -> str:
    """The operation at a place, in words."""
    if place.pair:
        sender, receiver = place.pair
        return f"what rank {sender} sends to rank {receiver} in group {place.group}"
    waits = (groups[place.group] for _, groups in sorted(states.items()) if place.group in groups)
    names = Counter(_name(one) for one in waits if place.sequence in (one.oldest, one.last_enqueued))
    name = max(sorted(names), key=lambda name: names[name], default="operation")
    return f"{name} {place.sequence} of group {place.group}"


def _own(one: CollectiveState) -> str:
    return f"{_name(one)} {one.oldest if one.oldest >= 0 else one.last_enqueued} of group {one.group}"


def _name(one: CollectiveState) -> str:
    return (one.oldest_operation if one.oldest >= 0 else one.operation) or "operation"
