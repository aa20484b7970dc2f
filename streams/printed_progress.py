"""Who stands apart by what the watchdogs of ranks print, and by what NCCL counts, where dumps do not tell.

Ranks that print a timeout are mostly victims. A rank that did not time out itself prints its counts when another's
timeout reaches it: where it is the only one that has not come to what all others wait for, it is what they wait for.
Counts are compared in the default group alone (``streams.lines.watchdog``). Nothing is printed of what a rank waits for
in its other groups, so of two that lag one may wait for the other, and a rank that prints nothing may be waited for.

NCCL's RAS counts launches, not completions. A rank that has launched least may be who all wait for, or it may wait like
all others and run ahead of its device less than they do: these counts never single anybody out.
"""

from __future__ import annotations

from collections.abc import Callable, Set

from schemas.results import CollectiveState
from streams.apart import SHOWN_PLACES, Apart, Standing, own_operation
from streams.collectives import States, by_group, laggards, mismatched, stopped, waits_of

PRINTED = frozenset({"printed_behind", "printed_perhaps", "printed_never_completed", "printed_mismatched"})
"""Grounds that rest on printed counts."""


def printed_of(states: States) -> States:
    """The states that watchdogs printed, and those of RAS."""
    return _those(states, lambda one: one.printed)


def dumped_of(states: States) -> States:
    """The states that dumps show."""
    return _those(states, lambda one: not one.printed)


def _those(states: States, wanted: Callable[[CollectiveState], bool]) -> States:
    found = {rank: {name: one for name, one in own.items() if wanted(one)} for rank, own in states.items()}
    return {rank: own for rank, own in found.items() if own}


def printed_apart(states: States, expected: Set[int], *, world_known: bool) -> Apart | None:
    """Who stands apart by printed counts, or null; a rank that its dump shows waiting is not behind.

    Where nobody says how many ranks there are, ranks that were not recorded may be waited for. Nor is behind who has
    launched what another has not: it may wait for that one. Where there are launches alone, they name nobody.
    """
    printed, dumped = _those(states, lambda one: one.printed and one.completed_known), dumped_of(states)
    launched = _those(states, lambda one: not one.completed_known)
    if not printed:
        return _uneven(launched) if expected <= launched.keys() and not dumped else None
    all_seen = world_known and expected <= printed.keys()
    blocked = sorted(rank for rank, waits in waits_of(printed).items() if waits)
    device = stopped(printed)
    if all_seen and 0 < 2 * len(device) < len(printed):
        return _apart("printed_never_completed", device, blocked)
    waiting = {rank for rank, waits in waits_of(dumped).items() if waits} | _passed(launched)
    behind = {rank: wait for rank, wait in laggards(printed).items() if rank not in waiting}
    if 0 < len(behind) < len(blocked):
        alone = all_seen and len(behind) == 1 and _all_wait(printed, behind, expected)
        return _apart("printed_behind" if alone else "printed_perhaps", behind, blocked)
    if 2 * len(printed) > len(expected) and (unlike := mismatched(_named(printed))):
        return _apart("printed_mismatched", unlike, blocked)
    return None


def _apart(grounds: str, found: dict[int, CollectiveState], blocked: list[int]) -> Apart:
    ranks = {rank: Standing(grounds, own_operation(one)) for rank, one in sorted(found.items())}
    return Apart(grounds=grounds, blocked=blocked, ranks=ranks)


def _uneven(launched: States) -> Apart | None:
    """The first operations that some ranks have launched and others have not, null where all have launched as many."""
    places: list[tuple[str, list[int]]] = []
    short: set[int] = set()
    for name, members in sorted(by_group(launched).items()):
        least = min(one.last_enqueued for one in members.values())
        ahead = sorted(rank for rank, one in members.items() if one.last_enqueued > least)
        if ahead:
            places.append((f"operation {least + 1} of group {name}", ahead))
            short.update(members.keys() - set(ahead))
    if not places:
        return None
    return Apart(
        grounds="few_ahead",
        blocked=sorted(_passed(launched)),
        places=places[:SHOWN_PLACES],
        more=max(len(places) - SHOWN_PLACES, 0),
        others=sorted(short),
    )


def _passed(launched: States) -> set[int]:
    """The ranks that have launched what another of the group has not."""
    least = {name: min(one.last_enqueued for one in group.values()) for name, group in by_group(launched).items()}
    return {rank for rank, own in launched.items() if any(one.last_enqueued > least[name] for name, one in own.items())}


def _all_wait(printed: States, behind: dict[int, CollectiveState], expected: Set[int]) -> bool:
    """Whether all others wait in the group in which one is behind."""
    ((rank, wait),) = behind.items()
    others = [printed[other].get(wait.group) for other in expected - {rank}]
    return all(other is not None and other.outstanding for other in others)


def _named(printed: States) -> States:
    """The states that name the operation for which the rank waits; some lines tell counts alone."""
    found = {rank: {name: one for name, one in own.items() if one.oldest_operation} for rank, own in printed.items()}
    return {rank: own for rank, own in found.items() if own}
