"""How far the ranks of each process group have come, by their dumps, and who of them stands apart."""

from __future__ import annotations

from collections import Counter

from schemas.results import CollectiveState

States = dict[int, dict[str, CollectiveState]]
"""Each rank's latest state by group."""

JOINT = ("all_", "allreduce", "alltoall", "reduce_scatter", "barrier")
"""How operations are called that nobody completes before everybody has joined, a leading ``_`` left out."""

_EQUAL = ("all_reduce", "allreduce", "all_gather_base", "reduce_scatter_base", "broadcast")
"""Those for which all ranks bring as much, of one type."""


def waits_of(states: States) -> dict[int, list[CollectiveState]]:
    """Rank to the groups in which it has enqueued what is not completed."""
    return {
        rank: [one for one in groups.values() if one.last_enqueued > one.last_completed]
        for rank, groups in states.items()
    }


def stopped(states: States) -> dict[int, CollectiveState]:
    """Rank to the group in which it has not completed an operation that all others have, who wait for it further on.

    Such a rank waits for nobody there: nobody completes such an operation before all have joined, so its own device has
    stopped, whatever it went on to enqueue. Two others at least must have been observed.
    """
    found: dict[int, CollectiveState] = {}
    for rank, groups in states.items():
        for own in sorted(groups.values(), key=lambda one: (one.oldest_at, one.group)):
            if own.oldest < 0 or own.only_sends or not own.oldest_operation.lstrip("_").startswith(JOINT):
                continue
            others = [groups[own.group] for peer, groups in states.items() if peer != rank and own.group in groups]
            if len(others) >= 2 and all(other.last_completed >= own.oldest for other in others):
                found.setdefault(rank, own)
    return found


def laggards(states: States) -> dict[int, CollectiveState]:
    """Rank to the state of a peer that waits at an operation which the rank never enqueued.

    A rank that has anything outstanding itself waits too, and is a link of a chain, not its beginning.
    """
    idle = {rank: groups for rank, groups in states.items() if not any(one.outstanding for one in groups.values())}
    found: dict[int, CollectiveState] = {}
    for waits in waits_of(states).values():
        for wait in waits:
            for rank, groups in idle.items():
                own = groups.get(wait.group)
                if own is not None and own.last_enqueued < awaited(wait)[0]:
                    found[rank] = min(found.get(rank, wait), wait, key=_age)
    return found


def awaited(wait: CollectiveState) -> tuple[int, str]:
    """Sequence and name of what a rank waits for first, as far as its dump shows it."""
    return (wait.oldest, wait.oldest_operation) if wait.oldest >= 0 else (wait.last_enqueued, wait.operation)


def _age(wait: CollectiveState) -> tuple[int, int, str]:
    return wait.oldest_at or wait.enqueued_at, wait.enqueued_at, wait.group


def mismatched(states: States) -> dict[int, CollectiveState]:
    """Rank to its operation where that is not what most others of the group have enqueued at the same place.

    Nothing where no more than half of those that wait there agree: then it cannot be told who is wrong.
    """
    places: dict[tuple[str, int], dict[int, CollectiveState]] = {}
    for rank, groups in states.items():
        for one in groups.values():
            if one.oldest >= 0 and not one.only_sends:
                places.setdefault((one.group, one.oldest), {})[rank] = one
    for _, waiting in sorted(places.items()):
        kinds = Counter(kind_of(one) for one in waiting.values())
        most, count = kinds.most_common(1)[0]
        if len(kinds) > 1 and 2 * count > len(waiting):
            return {rank: one for rank, one in waiting.items() if kind_of(one) != most}
    return {}


def kind_of(one: CollectiveState) -> tuple[str, str]:
    """What all ranks must have alike at one place of a group: the operation, and mostly the sizes too."""
    name = one.oldest_operation.lstrip("_")
    return name, one.oldest_shape if name.startswith(_EQUAL) else ""


def shows_all_waits(states: States) -> bool:
    """Whether a rank without an outstanding operation really waits for nobody, as far as dumps can show.

    They do where they show sends at all, or where there is but one group.
    """
    found = [one for groups in states.values() for one in groups.values()]
    return any(one.shows_sends for one in found) or len({one.group for one in found}) == 1


def out_of_order(states: States) -> dict[int, CollectiveState]:
    """Of the ranks in two groups that wait for each other, the minority and the operation that it left out.

    Most wait in one group and have not come to the other's operation; the few wait in the other and have not come to
    the first's: the order of most is the program's.
    """
    names = sorted({name for groups in states.values() for name in groups})
    for one in names:
        for other in names:
            both = [rank for rank, groups in states.items() if one in groups and other in groups]
            held = _held(states, both, one, other)
            passed = _held(states, both, other, one)
            if held and passed and len(held) + len(passed) == len(both) and 2 * len(passed) < len(held):
                left_out = max((states[rank][one] for rank in held), key=lambda state: state.last_enqueued)
                return dict.fromkeys(passed, left_out)
    return {}


def _held(states: States, both: list[int], one: str, other: str) -> list[int]:
    """Ranks that wait in ``one`` and are behind the furthest in ``other``."""
    furthest = max((states[rank][other].last_enqueued for rank in both), default=0)
    return [
        rank
        for rank in both
        if states[rank][one].last_enqueued > states[rank][one].last_completed
        and states[rank][other].last_enqueued < furthest
    ]
