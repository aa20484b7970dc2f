"""Which ranks have become slow together: what came long after, on another node, is told apart."""

from __future__ import annotations

from streams.alike import NEAR_STEPS
from streams.slow_episodes import Episode, Episodes
from streams.slow_ranks import Standing
from streams.view import AttemptView

APART_WINDOWS = 6
"""What came to be slow within so many windows of each other, or within some steps, did together."""
APART_STEPS = 3 * NEAR_STEPS


def apart_ns(step_ns: int, window_ns: int) -> int:
    """By how much the beginnings of two slownesses must differ to be two (ns)."""
    return max(APART_WINDOWS * window_ns, APART_STEPS * step_ns)


def by_beginning(
    slow: list[Standing], known: Episodes, view: AttemptView, step_ns: int, window_ns: int
) -> list[list[Standing]]:
    """The slow ranks by when they became slow, the first first; all together where it is not certain.

    Later ones are apart from earlier ones if these had been found long before, all on other nodes, and if they have
    come to be slow themselves: what was always so has no beginning.
    """
    least = apart_ns(step_ns, window_ns)
    parts: list[list[Standing]] = []
    for one in sorted(slow, key=lambda one: (_begun(known, one.rank), one.rank)):
        episode = known.ranks[one.rank]
        if parts and not (episode.changed and _is_after(episode, parts[-1], known, least)):
            parts[-1].append(one)
        else:
            parts.append([one])
    nodes = [{view.node_of(one.rank) for one in part} for part in parts]
    several = sum(map(len, nodes)) > len(set().union(*nodes))
    return [slow] if several or any("" in found for found in nodes) else parts


def _begun(known: Episodes, rank: int) -> int:
    return known.ranks[rank].time if known.ranks[rank].changed else -1


def _is_after(episode: Episode, before: list[Standing], known: Episodes, least: int) -> bool:
    return episode.time - max(known.ranks[one.rank].time for one in before) > least
