"""How fast a training step would be if operations took what they usually take, and whose doing the difference is.

The method of "Understanding Stragglers in Large Model Training Using What-if Analysis" (arXiv 2505.05713), vectorised:
an ideal operation takes the mean of its type where it is computing, the median where it is communication; a step is
played again with the durations of some workers or types made ideal.

- S = T / T_ideal, the slowdown; T and T_ideal are means over steps of the played step.
- S_d and S_p are the slowdowns where only replica d, or only stage p, is as traced; S_w = min(S_d, S_p) of a worker.
- M_W = (T - T without the slowness of the slowest 3 % of workers) / (T - T_ideal); M_S likewise for the last stage.
- The launch slowdown is the traced step over the played one: time between operations, in which nothing is waited for.

Beside these, shares of the lost time T - T_ideal that add up to one: of communication that takes longer than the
median, of a worker's own work that varies from its own mean, of workers whose mean is not the median of their stage,
and of stages that have more work than others. Pearson's correlation of forward and backward over a worker's own
microbatches tells varying lengths (the backward pass follows the forward one) from other variation.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from math import ceil

import msgspec
import numpy as np
import numpy.typing as npt

from schemas.events import Timeline
from streams.operations import BACKWARD, FORWARD, SEGMENT, is_own_work, type_of
from streams.whatif_clocks import aligned
from streams.whatif_graph import Meeting, graph_of, lone, played, transfers
from streams.whatif_tensor import Array, Place, laid_over

SLOWEST = 0.03
"""The share of workers whose slowness M_W is about."""
Mask = npt.NDArray[np.bool_]


class Shares(msgspec.Struct, frozen=True, kw_only=True):
    """Of the lost time; they add up to one, and each may lie somewhat below 0 or above 1."""

    communication: float
    variation: float
    workers: float
    stages: float


class WhatIf(msgspec.Struct, frozen=True, kw_only=True):
    """What the playing of ``steps`` tells. Times are in seconds; matrices are [stage, replica] or [step, ...].

    ``step_s`` is the traced step, ``played_s`` the played one, ``ideal_s`` the ideal one. ``slowest`` are places
    (stage, replica), as indices, of the slowest workers, the worst first. ``work`` is what each worker computes in a
    step, [step, stage, replica]; ``spread`` by how much of it that may differ between steps by chance, for each stage:
    the deviation that its microbatches make, if they differ independently of each other. ``by_rank`` is whether the
    operations are segments between collectives of all ranks: then each replica is a rank. ``untimed`` operations take
    what their kind usually does, in the step as it was and in the ideal one. ``aligned`` workers had other clocks.
    """

    stages: list[int]
    replicas: list[int]
    steps: list[int]
    left_aside: int
    replicas_aside: int
    step_s: float
    played_s: float
    ideal_s: float
    of_stage: list[float]
    of_replica: list[float]
    of_type: dict[str, float]
    slowest: list[Place]
    m_w: float
    m_s: float
    shares: Shares
    correlation: float
    work: Array
    spread: list[float]
    by_rank: bool = False
    untimed: int = 0
    aligned: int = 0

    @property
    def slowdown(self) -> float:
        """S."""
        return self.played_s / self.ideal_s if self.ideal_s else 1.0

    @property
    def launch_slowdown(self) -> float:
        """The traced step over the played one."""
        return self.step_s / self.played_s if self.played_s else 1.0

    def of_worker(self, stage: int, replica: int) -> float:
        """S_w of a worker."""
        return min(self.of_stage[stage], self.of_replica[replica])


class Player:
    """A trace that can be played with some of its operations ideal."""

    def __init__(self, steps: Mapping[int, Mapping[Place, Timeline]]) -> None:
        """``steps`` are timelines by step and (replica, stage). Raises NoTrace where they fit no common schedule."""
        trace = laid_over(steps)
        self._meetings: list[Meeting] = graph_of(trace)
        # Segments count from the end of a collective already.
        segmented = any(slot.name == SEGMENT for slot in trace.slots)
        self.trace, self.aligned = (trace, 0) if segmented else aligned(trace, self._meetings)
        spent = transfers(self._meetings, self.trace)
        self._types = [type_of(slot.name, slot.number) for slot in self.trace.slots]
        self.stage_of = np.array([slot.stage for slot in self.trace.slots])
        self._own = np.array([is_own_work(slot.name) for slot in self.trace.slots])
        unknown = np.isnan(spent)
        self.untimed = int(np.isnan(self.trace.ends).sum())
        self.ideal = self._ideal(spent, unknown)
        # What was not timed takes the same in the step as it was and in the ideal one, so nobody is held to it.
        self.spent = np.where(unknown, self.ideal, spent)

    def _ideal(self, spent: Array, unknown: Mask) -> Array:
        """What an operation of each slot's type takes, as [slot, 1, 1]; no time where none of it was timed."""
        ideal = np.zeros((len(self._types), 1, 1))
        for name in sorted(set(self._types)):
            at = self.of_type(name)
            found = spent[at][~unknown[at]]
            if len(found):
                ideal[at] = found.mean() if self._own[at][0] else np.median(found)
        return ideal

    def of_type(self, name: str) -> Mask:
        """The slots of a type, as [slot]."""
        return np.array([one == name for one in self._types])

    @property
    def types(self) -> list[str]:
        """The types of operations that there are."""
        return sorted(set(self._types))

    def seconds(self, spent: Array) -> float:
        """The mean over steps of a step in which operations take so long."""
        return float(played(self._meetings, spent).max(axis=-1).mean())

    def ideal_where(self, fixed: Mask) -> float:
        """The mean step where operations are ideal where ``fixed``, which broadcasts to [slot, step, replica]."""
        return self.seconds(np.where(fixed, self.ideal, self.spent))

    def without(self, places: list[Place]) -> float:
        """The mean step without the slowness of the workers at (stage, replica)."""
        fixed = np.zeros((len(self._types), 1, self.spent.shape[2]), dtype=bool)
        for stage, replica in places:
            fixed[self.stage_of == stage, 0, replica] = True
        return self.ideal_where(fixed)

    def each_replica(self) -> Array:
        """The mean step where only one replica is as traced, for each of them."""
        alone = np.concatenate([self.spent, np.broadcast_to(self.ideal, (*self.spent.shape[:2], 1))], axis=2)
        steps = played(self._meetings, alone, lone)
        return np.asarray(np.maximum(steps[..., :-1], steps[..., -1:]).mean(axis=0))

    def levels(self) -> list[float]:
        """The mean step with ever less of what differs: communication, variation, workers of a stage.

        Own work takes the worker's mean of its type, then the median over the replicas of its stage.
        """
        usual = np.where(self._own[:, None, None], self.spent, self.ideal)
        steady, alike = usual.copy(), usual.copy()
        for name in self.types:
            for stage in range(len(self.trace.stages)):
                at = self.of_type(name) & (self.stage_of == stage) & self._own
                if at.any():
                    means = self.spent[at].mean(axis=(0, 1))
                    steady[at], alike[at] = means, np.median(means)
        return [self.seconds(one) for one in (usual, steady, alike)]

    def work(self) -> Array:
        """What each worker computes in a step, [step, stage, replica] in seconds."""
        own = [self.spent[self._own & (self.stage_of == stage)].sum(axis=0) for stage in range(len(self.trace.stages))]
        return np.stack(own, axis=1)

    def microbatches(self, stage: int) -> Array:
        """What each microbatch takes of a worker, [microbatch of a step, replica] in seconds; of several parts of the
        model on a stage the first. No rows where operations are of no microbatches."""
        here = self.stage_of == stage
        chunks = np.array([slot.chunk for slot in self.trace.slots])
        computing = here & (self.of_type(FORWARD) | self.of_type(BACKWARD))
        first = computing & (chunks == chunks[computing].min(initial=chunks.max()))
        forward, backward = (self.spent[first & self.of_type(name)] for name in (FORWARD, BACKWARD))
        both = forward + backward if len(forward) == len(backward) else forward
        return np.asarray(both.reshape(-1, self.spent.shape[2]))

    def spread(self) -> list[float]:
        """The relative standard deviation of a step's work on each stage that the spread of its operations makes."""
        found = []
        for stage in range(len(self.trace.stages)):
            variance, work = 0.0, 0.0
            for name in self.types:
                own = self.spent[self.of_type(name) & (self.stage_of == stage) & self._own]
                if len(own):
                    variance += len(own) * float(own.var(axis=(0, 1)).mean())
                    work += len(own) * float(own.mean())
            found.append(float(np.sqrt(variance)) / work if work > 0 else 0.0)
        return found

    def correlation(self) -> float:
        """Pearson's of forward and backward over microbatches, each less its worker's mean; 0 where nothing varies."""
        pairs = []
        for stage in range(len(self.trace.stages)):
            here = self.stage_of == stage
            both = [self.spent[here & self.of_type(name)] for name in (FORWARD, BACKWARD)]
            if len(both[0]) == len(both[1]) > 0:
                pairs.append(np.stack([one - one.mean(axis=(0, 1)) for one in both]).reshape(2, -1))
        if not pairs:
            return 0.0
        forward, backward = np.concatenate(pairs, axis=1)
        scale = float(np.sqrt((forward**2).sum() * (backward**2).sum()))
        return float((forward * backward).sum()) / scale if scale > 0 else 0.0


def what_if(player: Player) -> WhatIf:
    """The whole analysis of a trace."""
    trace, spent = player.trace, player.spent
    stages, replicas = len(trace.stages), len(trace.replicas)
    everything = np.ones((1, 1, 1), dtype=bool)
    total, ideal = player.seconds(spent), player.ideal_where(everything)
    lost = total - ideal

    def only(these: Mask) -> float:
        return player.ideal_where(~these[:, None, None]) / ideal if ideal else 1.0

    of_stage = [only(player.stage_of == stage) for stage in range(stages)]
    of_replica = (player.each_replica() / ideal).tolist() if ideal else [1.0] * replicas
    places = [(stage, replica) for stage in range(stages) for replica in range(replicas)]
    slowest = sorted(places, key=lambda place: (-min(of_stage[place[0]], of_replica[place[1]]), place))
    slowest = slowest[: ceil(SLOWEST * len(places))]
    last = [(stages - 1, replica) for replica in range(replicas)]

    def gain(seconds: float) -> float:
        return (total - seconds) / lost if lost > 0 else 0.0

    levels = [total, *player.levels(), ideal]
    shares = [(more - less) / lost if lost > 0 else 0.0 for more, less in pairwise(levels)]
    span = np.nanmax(trace.ends, axis=(0, 2)) - trace.starts.min(axis=(0, 2))
    return WhatIf(
        stages=trace.stages,
        replicas=trace.replicas,
        steps=trace.steps,
        left_aside=trace.left_aside,
        replicas_aside=trace.replicas_aside,
        step_s=float(span.mean()),
        played_s=total,
        ideal_s=ideal,
        of_stage=of_stage,
        of_replica=of_replica,
        of_type={name: only(player.of_type(name)) for name in player.types},
        slowest=slowest,
        m_w=gain(player.without(slowest)),
        m_s=gain(player.without(last)),
        shares=Shares(communication=shares[0], variation=shares[1], workers=shares[2], stages=shares[3]),
        correlation=player.correlation(),
        work=player.work(),
        spread=player.spread(),
        by_rank=any(slot.name == SEGMENT for slot in trace.slots),
        untimed=player.untimed,
        aligned=player.aligned,
    )
