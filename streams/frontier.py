"""The frontier of a step: how far its latest rank is after each phase, and what moved it beyond the peers.

The largest cumulative time over ranks after each phase (StageFrontier); its increments tell in which phase, and by
which rank, a step is held up first. What comes later in the same step is mostly others waiting. Cumulative times need
no synchronised clocks. A rank is held against peers of its role and stage, so that a stage with more work is not late.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from streams.robust import Array, median_of
from streams.timers import kind_of_timer

Indices = npt.NDArray[np.int64]

_ORDER: tuple[re.Pattern[str], ...] = tuple(
    re.compile(pattern)
    for pattern in (
        r"data|load|fetch|tokeniz|collate|preprocess|batch_gen",
        r"generat|rollout|reward",
        r"forward|fwd",
        r"backward|bwd",
        r"wait|reduce|gather|scatter|broadcast|all_?to_?all|barrier|p2p|send|recv|comm|sync|nccl|grad_norm|bubble|idle",
        r"optimizer|update",
    )
)
"""Phases in the order in which a training step goes through them, by words of their timers' names."""
_FORWARD = re.compile(r"forward|fwd")
_WHOLE = re.compile(r"(?:forward|fwd).{0,3}(?:backward|bwd)")


def phases_of(names: Iterable[str]) -> list[str]:
    """The timers of these that are known phases of a step, in its order.

    Totals are none, nor is what spans forward and backward where these are timed by themselves.
    """
    timers = [name for name in sorted(set(names)) if kind_of_timer(name) in ("own", "wait", "mixed")]
    found = [name for name in timers if _order(name) < len(_ORDER)]
    parts = [name for name in found if not _WHOLE.search(name.lower())]
    apart = any(_FORWARD.search(name.lower()) for name in parts)
    kept = parts if apart else found
    return sorted(kept, key=lambda name: (_order(name), name))


def _order(name: str) -> int:
    lowered = name.lower()
    return next((at for at, pattern in enumerate(_ORDER) if pattern.search(lowered)), len(_ORDER))


class Frontier(msgspec.Struct, frozen=True):
    """Of each step: the phase and the rank that moved the frontier most, as indices, and by how much.

    ``excess`` is beyond the peers, ``length`` the frontier's end, in the unit of the values; ``shared`` is whether
    other ranks are about as late in that phase.
    """

    phase: Indices
    rank: Indices
    excess: Array
    length: Array
    shared: npt.NDArray[np.bool_]


ABOUT = 0.8
"""Of the leader's excess: who has as much is about as late."""


def frontier(values: Array, groups: Sequence[Sequence[int]]) -> Frontier:
    """The frontiers of steps from times as [step, rank, phase], phases in order; ``groups`` are peers, as indices.

    A rank without a phase (NaN) is not compared from there on. There must be at least one rank and one phase.
    """
    reached = np.cumsum(values, axis=2)
    beyond = np.full_like(reached, -np.inf)
    for group in groups:
        own = reached[:, list(group)]
        known = np.isfinite(own).sum(axis=1, keepdims=True) >= 2
        center = median_of(own.transpose(0, 2, 1))[:, None, :]
        beyond[:, list(group)] = np.where(known & np.isfinite(own), own - center, -np.inf)
    reached = np.where(np.isfinite(reached), reached, -np.inf)
    leader = reached.argmax(axis=1)
    led = np.maximum(np.take_along_axis(beyond, leader[:, None], axis=1)[:, 0], 0.0)
    before = np.maximum.accumulate(np.concatenate([np.zeros((len(led), 1)), led[:, :-1]], axis=1), axis=1)
    gained = led - before
    phase = gained.argmax(axis=1)
    steps = np.arange(len(values))
    rank = leader[steps, phase]
    excess = gained[steps, phase]
    late = beyond[steps, :, phase] >= ABOUT * led[steps, phase][:, None]
    length = np.maximum(reached.max(axis=(1, 2)), 0.0)
    return Frontier(phase, rank, np.maximum(excess, 0.0), length, late.sum(axis=1) > 1)
