"""Why ranks whose functions hold more of a step than their peers' are singled out, or may be innocent.

A profile is one look: nobody is singled out whose whole replica takes longer, who may always have done more by design,
or who executes other things than peers of whom nothing tells the stages. What has changed is no design.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from schemas.results import FunctionKind
from streams.places import each_by_position, is_by_position, replicas_elsewhere
from streams.profiles import Excess, Peers
from streams.robust import Bounds
from streams.same_work import Work
from streams.view import AttemptView


class Slow(msgspec.Struct, frozen=True):
    """A rank that stands out: what explains it, how much of a step, and what of it its peers lack."""

    rank: int
    why: Excess
    impact: float
    steps: int
    group: Peers
    changed: bool
    waits: float
    peers_wait: float


def guilty(
    view: AttemptView, peers: list[Peers], slow: list[Slow], bounds: Bounds, elsewhere: float
) -> tuple[list[Slow], str]:
    """Those of the slow ranks whose own doing it is, and the grounds for them, or for why there are none.

    Who is slower on one stage, and by a share of ``elsewhere`` as much on another of its replica, has longer inputs.
    """
    ratios = {rank: ratio for group in peers for rank, ratio in group.ratios(bounds).items()}
    others = replicas_elsewhere(view, [one.rank for one in slow], view.members)
    alone = [one for one in slow if not _is_longer(one.rank, others[one.rank], ratios, elsewhere)]
    if not alone:
        return [], "slow_functions_of_replica"
    if all(one.changed for one in alone):
        return alone, "slow_function_and_changed"
    other_work = _of_other_work(alone)
    if is_by_position(view, [one.rank for one in alone], ratios):
        # Logging, saving and loading are the host's.
        on_device = all(_is_of(one, "gpu") and one.rank not in other_work for one in alone)
        return [], "slow_kernel_by_place" if on_device else "slow_function_by_design"
    # Beside another that is slow a rank's duty is its duty still.
    lone = each_by_position(view, ratios)
    dutiful = {one.rank for one in alone if one.rank in lone and not one.changed and not _is_of(one, "gpu")}
    shared = _share_a_duty(view, alone)
    # Who executes what its peers do not, and of whom nothing tells the stage, may have another one.
    parted = {rank for rank in other_work if "pp" not in view.coordinates(rank)}
    alone = [one for one in alone if one.rank not in dutiful | parted]
    if shared or not alone:
        return [], "slow_function_of_other_work"
    if any(others[one.rank] and not others[one.rank] & ratios.keys() for one in alone):
        return [], "slow_function_unseen"
    return alone, "slow_function"


def _is_longer(rank: int, others: set[int], ratios: Mapping[int, float], elsewhere: float) -> bool:
    """Whether own work takes longer on other stages of the rank's replica as well."""
    least = 1 + elsewhere * (ratios[rank] - 1)
    return any(ratios.get(one, 1.0) > least for one in others)


def _of_other_work(slow: list[Slow]) -> set[int]:
    """Which of the ranks execute other things than most of their peers; each group's work is counted once."""
    works: dict[int, Work] = {}
    found = set()
    for one in slow:
        first = one.group.ranks[0]
        if first not in works:
            works[first] = Work(one.group.sketches)
        if works[first].is_other(one.rank):
            found.add(one.rank)
    return found


def _is_of(one: Slow, kind: FunctionKind) -> bool:
    return one.why.kind == kind


def _share_a_duty(view: AttemptView, slow: list[Slow]) -> bool:
    """Whether several ranks of unknown stages are slow by one function of the host that is listed of nobody else.

    One rank may be slow by what nobody else does; several that do it may be there for that, as the first of each node.
    """
    functions = {(one.why.kind, one.why.function.name) if one.why.function else None for one in slow}
    return (
        len(slow) > 1
        and len(functions) == 1
        and None not in functions
        and all(one.why.at_most and not one.changed and "pp" not in view.coordinates(one.rank) for one in slow)
    )
