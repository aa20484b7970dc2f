"""How far the ranks of each process group have come, by their dumps, and who of them stands apart.

A job of ten thousand ranks has thousands of groups: nothing here compares all ranks, or all groups, with all others.
"""

from __future__ import annotations

from bisect import bisect_right
from heapq import nsmallest
from itertools import accumulate

from schemas.results import CollectiveState
from streams.delays import waits_for_all

States = dict[int, dict[str, CollectiveState]]
"""Each rank's latest state by group."""

_EQUAL = ("all_reduce", "allreduce", "all_gather_base", "reduce_scatter_base")
"""Those for which all ranks bring as much, of one type; of others some list nothing."""


def waits_of(states: States) -> dict[int, list[CollectiveState]]:
    """Rank to the groups in which it has enqueued what is not completed."""
    return {
        rank: [one for one in groups.values() if one.last_enqueued > one.last_completed]
        for rank, groups in states.items()
    }


def by_group(states: States) -> dict[str, dict[int, CollectiveState]]:
    """Each group's ranks with their states, ranks in the order of ``states``."""
    groups: dict[str, dict[int, CollectiveState]] = {}
    for rank, own in states.items():
        for name, one in own.items():
            groups.setdefault(name, {})[rank] = one
    return groups


def stopped(states: States) -> dict[int, CollectiveState]:
    """Rank to the group in which it has not completed an operation that all others have, who wait for it further on.

    Such a rank waits for nobody there: nobody completes such an operation before all have joined, so its own device has
    stopped, whatever it went on to enqueue. Two others at least must have been observed.
    """
    groups = by_group(states)
    last: dict[str, list[tuple[int, int]]] = {}
    found: dict[int, CollectiveState] = {}
    for rank, own_groups in states.items():
        joint = [one for one in own_groups.values() if one.oldest >= 0 and not one.only_sends and is_joint(one)]
        for own in sorted(joint, key=lambda one: (one.oldest_at, one.group)):
            members = groups[own.group]
            if len(members) < 3:
                continue
            if own.group not in last:
                # Whoever has completed least, and the next: one of the two is the last of the others, whoever asks.
                last[own.group] = nsmallest(2, ((one.last_completed, peer) for peer, one in members.items()))
            if next(completed for completed, peer in last[own.group] if peer != rank) >= own.oldest:
                found[rank] = own
                break
    return found


def is_joint(one: CollectiveState) -> bool:
    """Whether nobody completes what the rank waits for before everybody has joined it."""
    return waits_for_all(one.oldest_operation)


def of_one_time(states: States) -> States:
    """The states without those of ranks whose dump is of an earlier time than others'.

    A peer has completed an operation that nobody completes before everybody has joined it, and by its dump the rank
    had not: so it went on since, and nothing is known of where it is now.
    """
    completed: dict[str, int] = {}
    for groups in states.values():
        for one in groups.values():
            if waits_for_all(one.completed_operation) and not one.only_sends:
                completed[one.group] = max(one.last_completed, completed.get(one.group, -1))
    return {
        rank: groups
        for rank, groups in states.items()
        if all(one.only_sends or one.last_enqueued >= completed.get(one.group, -1) for one in groups.values())
    }


def laggards(states: States) -> dict[int, CollectiveState]:
    """Rank to the state of a peer that waits at an operation which the rank never enqueued.

    A rank that has anything outstanding itself waits too, and is a link of a chain, not its beginning.
    """
    waits: dict[str, list[CollectiveState]] = {}
    for waiting in waits_of(states).values():
        for wait in waiting:
            waits.setdefault(wait.group, []).append(wait)
    queues = {group: _Queue(found) for group, found in waits.items()}
    found: dict[int, CollectiveState] = {}
    for rank, groups in states.items():
        if any(one.outstanding for one in groups.values()):
            continue
        ahead = [queues[name].oldest_beyond(own.last_enqueued) for name, own in groups.items() if name in queues]
        oldest = min((wait for wait in ahead if wait is not None), key=age_of, default=None)
        if oldest is not None:
            found[rank] = oldest
    return found


class _Queue:
    """The waits of one group by what they wait for."""

    def __init__(self, waits: list[CollectiveState]) -> None:
        ordered = sorted((awaited(wait)[0], place) for place, wait in enumerate(waits))
        self._sequences = [sequence for sequence, _ in ordered]
        # For each the oldest of the waits from there on; of equals the one that came first.
        oldest = accumulate(((age_of(waits[place]), place) for _, place in reversed(ordered)), min)
        self._oldest = [waits[place] for _, place in oldest]

    def oldest_beyond(self, enqueued: int) -> CollectiveState | None:
        """The oldest wait for an operation that whoever has enqueued so many never came to; null for none."""
        beyond = len(self._sequences) - bisect_right(self._sequences, enqueued)
        return self._oldest[beyond - 1] if beyond else None


def awaited(wait: CollectiveState) -> tuple[int, str]:
    """Sequence and name of what a rank waits for first, as far as its dump shows it."""
    return (wait.oldest, wait.oldest_operation) if wait.oldest >= 0 else (wait.last_enqueued, wait.operation)


def age_of(wait: CollectiveState) -> tuple[int, int, str]:
    """What sorts waits, the one that began first before the others."""
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
        unlike = unlike_most(waiting, len(waiting))
        if unlike:
            return unlike
    return {}


def unlike_most(waiting: dict[int, CollectiveState], members: int) -> dict[int, CollectiveState]:
    """Of ranks that wait at one place, those that brought another operation than more than half of its ``members``.

    Sizes are compared where all bring as much. What a dump does not tell of an operation is held against nobody.
    """
    for kinds in kinds_of(waiting):
        most = max(kinds, key=lambda kind: (len(kinds[kind]), kind), default="")
        if len(kinds) > 1 and 2 * len(kinds[most]) > members:
            return {rank: waiting[rank] for kind in sorted(kinds) if kind != most for rank in kinds[kind]}
    return {}


def kinds_of(waiting: dict[int, CollectiveState]) -> list[dict[str, list[int]]]:
    """The ranks that wait at one place by the operation's name, and by its sizes where all must bring the same.

    Ranks whose dump does not tell it are left out.
    """
    names: dict[str, list[int]] = {}
    sizes: dict[str, list[int]] = {}
    for rank, one in sorted(waiting.items()):
        name = one.oldest_operation.lstrip("_")
        if name:
            names.setdefault(name, []).append(rank)
        if name.startswith(_EQUAL) and one.oldest_shape:
            sizes.setdefault(one.oldest_shape, []).append(rank)
    # Of different operations the sizes differ as they may.
    return [names, sizes] if len(names) == 1 else [names]
