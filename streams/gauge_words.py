"""What is said of ranks whose metrics stand apart: whose they are, and which metrics, those that say most first."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from schemas.identity import said_ranks
from streams.comparable import Measured
from streams.gauges import OWN
from streams.metric_names import counts_up, priority, said_value
from streams.view import AttemptView

SHOWN_METRICS = 4
LONGEST_NAME = 80


class Reading(msgspec.Struct, frozen=True):
    """One metric as it is and as it usually is: on the peers, or in the past."""

    measured: Measured
    value: float
    usual: float


def said_who(view: AttemptView, ranks: Sequence[int]) -> str:
    """The ranks in words; as a node or a pipeline stage where they are all of it, and others are not."""
    whole = set(ranks)
    if 1 < len(whole) < len(view.members):
        nodes = {view.node_of(rank) for rank in whole}
        stages = {str(view.coordinates(rank).get("pp")) for rank in whole}
        node, stage = next(iter(nodes)), next(iter(stages))
        if len(nodes) == 1 and node and whole == {rank for rank in view.members if view.node_of(rank) == node}:
            return f"all ranks of node {node} ({said_ranks(whole)})"
        of_stage = {rank for rank in view.members if str(view.coordinates(rank).get("pp")) == stage}
        if len(stages) == 1 and stage != "None" and whole == of_stage:
            return f"all ranks of pipeline stage {stage} ({said_ranks(whole)})"
    return said_ranks(whole)


def said_nodes(view: AttemptView, ranks: Sequence[int]) -> str:
    """The nodes of the ranks in words."""
    nodes = sorted({view.node_of(rank) for rank in ranks})
    return f"node{'s' if len(nodes) > 1 else ''} {', '.join(nodes)}"


def most_telling(readings: Sequence[Reading]) -> list[Reading]:
    """The readings, those that say most first."""
    return sorted(readings, key=lambda one: (priority(one.measured.name), one.measured))


def said_readings(readings: Sequence[Reading]) -> str:
    """The metrics with their values."""
    shown = [f"{_name(one.measured)} {_said(one.value, one.measured)}" for one in _shown(readings)]
    more = len(readings) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def said_usual(readings: Sequence[Reading]) -> str:
    """The same metrics as they usually are, where that is known."""
    known = [one for one in _shown(readings) if math.isfinite(one.usual)]
    return ", ".join(f"{_name(one.measured)} {_said(one.usual, one.measured)}" for one in known)


def _shown(readings: Sequence[Reading]) -> list[Reading]:
    return most_telling(readings)[:SHOWN_METRICS]


def _said(value: float, measured: Measured) -> str:
    """The value; of what counts up what it gained."""
    return ("+" if counts_up(measured.name, measured.unit) else "") + said_value(value, measured.unit)


def _name(measured: Measured) -> str:
    device = "" if measured.device in ("", OWN) else f" ({measured.device})"
    return f"{measured.name}{device}"[:LONGEST_NAME]
