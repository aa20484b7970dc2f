"""Sends and receives that wait: whom a rank waits for, and who is waited for without waiting for anybody itself.

How many of them a rank has enqueued says nothing, since stages of a pipeline differ in that; but one that is not
completed waits for its peer. Names of operations tell both by their places in the group (``recv 2<-1``).
"""

from __future__ import annotations

from schemas.results import CollectiveState
from streams.collectives import States


def awaited_peers(states: States) -> dict[int, dict[int, CollectiveState]]:
    """Rank to the peers that its sends and receives wait for, each with the group in which."""
    found: dict[int, dict[int, CollectiveState]] = {}
    for rank, groups in states.items():
        for one in sorted(groups.values(), key=lambda state: state.group):
            for own, peer in one.awaits:
                awaited = _member(one, rank, own, peer)
                if awaited is not None:
                    found.setdefault(rank, {}).setdefault(awaited, one)
    return found


def silent_peers(states: States) -> dict[int, dict[int, CollectiveState]]:
    """Rank to those that wait for it in a send or receive, where its own dump shows nothing that it waits for."""
    idle = {rank for rank, groups in states.items() if not any(one.outstanding for one in groups.values())}
    found: dict[int, dict[int, CollectiveState]] = {}
    for waiting, peers in awaited_peers(states).items():
        for peer, group in peers.items():
            if peer in idle:
                found.setdefault(peer, {})[waiting] = group
    return found


def _member(state: CollectiveState, rank: int, own: int, peer: int) -> int | None:
    """Who the peer is: numbers are places in the group, or else ranks; the rank's own number shows which."""
    if own < len(state.ranks) and state.ranks[own] == rank:
        return state.ranks[peer] if peer < len(state.ranks) else None
    return peer if own == rank and peer in state.ranks else None
