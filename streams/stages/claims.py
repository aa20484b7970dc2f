"""Whose are ends of processes, and processes that were seen: those of the rank to which the process belongs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from schemas.results import Exit, Window
from streams.view import AttemptView

MOST_UNCLAIMED = 1000


class Claims(msgspec.Struct, frozen=True):
    """Ends and sightings of ranks by attempt, and ends that wait, with their nodes, for their rank to appear."""

    exits: dict[str, list[tuple[int, Exit]]]
    sightings: dict[str, list[tuple[int, int]]]
    waiting: list[tuple[str, Exit]]


def claimed(
    nodes: Sequence[Window],
    owners: Mapping[tuple[str, int], tuple[str, int]],
    views: Sequence[AttemptView],
    waited: Sequence[tuple[str, Exit]],
    oldest: int,
) -> Claims:
    """Whose is what nodes tell of processes.

    ``owners`` are (attempt, rank) by node and process id, ``views`` those of attempts, the newest last. Ends that have
    ``waited`` until now, and still do, are given up if they are older than ``oldest`` (ns).
    """
    exits: dict[str, list[tuple[int, Exit]]] = {}
    sightings: dict[str, list[tuple[int, int]]] = {}
    waiting: list[tuple[str, Exit]] = []
    for node_name, exit_ in [*waited, *((node.identity.node, one) for node in nodes for one in node.exits)]:
        owner = owners.get((node_name, exit_.pid)) or _by_rank(exit_, views)
        if owner is None:
            waiting.append((node_name, exit_))
        else:
            exits.setdefault(owner[0], []).append((owner[1], exit_))
    for node in nodes:
        for pid in node.pids:
            owner = owners.get((node.identity.node, pid))
            if owner is not None:
                sightings.setdefault(owner[0], []).append((owner[1], node.end))
    return Claims(exits, sightings, [one for one in waiting if one[1].time >= oldest][-MOST_UNCLAIMED:])


def _by_rank(exit_: Exit, views: Sequence[AttemptView]) -> tuple[str, int] | None:
    """Where no process id is known, a global rank belongs to the newest attempt that had begun by then."""
    begun = [view for view in views if view.first <= exit_.time]
    if exit_.rank is None or not begun:
        return None
    known = begun[-1].members.get(exit_.rank)
    if known is None or known.main_pid is not None:
        return None
    return begun[-1].attempt, exit_.rank
