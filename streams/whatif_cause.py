"""Where most of what a step loses is from, and which workers to name for it: pure decisions over played steps."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

import msgspec
import numpy as np
import numpy.typing as npt

from streams.chance import among_longest, chance_of
from streams.robust import Bounds, contrast
from streams.whatif import Player, WhatIf
from streams.whatif_tensor import Array, Place

Groups = Mapping[Place, int]


class Cause(Enum):
    """The cause of most of the lost time; the value is the finding's grounds.

    Of one replica alone nobody can tell a stage that has more work from a worker that is slow, nor communication from
    waiting for a replica that was not traced.
    """

    WORKERS = "what_if_workers"
    STAGES = "what_if_stages"
    ONE_REPLICA = "what_if_one_replica"
    REPLICA = "what_if_replica"
    LENGTHS = "what_if_lengths"
    VARIATION = "what_if_variation"
    COMMUNICATION = "what_if_communication"
    UNSEEN = "what_if_unseen"
    BETWEEN = "what_if_between"
    SEVERAL = "what_if_several"


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What decides.

    ``slowdown`` is from which S on a job is slow; ``most`` the share of the lost time that a cause must explain,
    ``enough`` the share of what all candidates explain together that those named must. ``bounds``, a ``share`` of
    steps and ``deviations`` above what chance would do make a candidate, and that it is ahead of its peers so often as
    by ``chance`` in no more than such a share of jobs; more than a share of ``rotating`` workers is workload.
    ``correlation`` of forward and backward tells varying lengths. What is slow on one stage and by a share of
    ``elsewhere`` as much on another stage of its replica has longer inputs.
    """

    slowdown: float = 1.1
    most: float = 0.5
    enough: float = 0.8
    bounds: Bounds = Bounds()
    share: float = 0.5
    deviations: float = 5.0
    chance: float = 0.002
    rotating: float = 0.25
    correlation: float = 0.9
    elsewhere: float = 1 / 3

    def __post_init__(self) -> None:
        shares = (self.most, self.enough, self.share, self.chance, self.rotating, self.correlation, self.elsewhere)
        if not (self.slowdown > 1 and self.deviations > 0 and all(0 < one <= 1 for one in shares)):
            raise ValueError("limits: slowdown must be above 1, deviations above 0, all others between 0 and 1")


class Slow(msgspec.Struct, frozen=True):
    """Workers that stand out, as (stage, replica) indices, the worst first, and what fixing them wins back (a share).

    ``ratios`` are to the replicas of their stage, ``flagged`` says in which steps they stood out. ``longer`` are those
    whose whole replica takes longer, which its inputs make, and ``longer_gain`` what fixing these wins back. Of
    ``unsure`` ones the steps are too few to tell slowness from longer inputs.
    """

    places: list[Place]
    gain: float
    ratios: dict[Place, float]
    flagged: dict[Place, list[bool]]
    longer: list[Place] = []
    longer_gain: float = 0.0
    unsure: list[Place] = []


def slow_workers(player: Player, result: WhatIf, limits: Limits, groups: Groups | None = None) -> Slow:
    """The fewest workers that explain what all do who stand out among the replicas of their stage; none if too many.

    ``groups`` are the peers by (stage, replica) index, where not all replicas of a stage are.
    """
    ratios: dict[Place, float] = {}
    flagged: dict[Place, list[bool]] = {}
    unsure: list[Place] = []
    peers = _peers(result, groups or {})
    flags, ratio = _contrasted(result, limits, peers)
    standing_out = flags.mean(axis=0) >= limits.share
    for stage, group in peers:
        here = [replica for replica in group if standing_out[stage, replica]]
        ahead = _ahead_of_chance(player, result, stage, group, len(here), limits)
        for replica in here:
            place = stage, replica
            if replica not in ahead or not _beyond_chance(
                ratio[:, stage], group, replica, result.spread[stage], limits
            ):
                unsure.append(place)
                continue
            ratios[place] = float(np.median(ratio[:, stage, replica]))
            flagged[place] = flags[:, stage, replica].tolist()
    worst = sorted(ratios, key=lambda place: (-result.of_worker(*place), -ratios[place], place))
    middles = np.median(ratio, axis=0) - 1
    longer = [place for place in worst if _is_longer(middles, place, limits)]
    worst = [place for place in worst if place not in longer]
    lost = result.played_s - result.ideal_s

    def gain(places: list[Place]) -> float:
        return (result.played_s - player.without(places)) / lost if lost > 0 and places else 0.0

    most = max(1, int(limits.rotating * result.work[0].size))
    whole = gain(worst)
    for count in range(1, min(len(worst), most) + 1):
        if (found := gain(worst[:count])) >= limits.enough * whole:
            return Slow(worst[:count], found, ratios, flagged, longer, gain(longer), unsure)
    return Slow([], whole, ratios, flagged, longer, gain(longer), unsure)


def _peers(result: WhatIf, groups: Groups) -> list[tuple[int, list[int]]]:
    """Each stage with the replicas that can be held against each other there; who has none is in no group."""
    found = []
    for stage in range(len(result.stages)):
        of = [groups.get((stage, replica), 0) for replica in range(len(result.replicas))]
        own = [[replica for replica, one in enumerate(of) if one == group] for group in sorted(set(of))]
        found += [(stage, group) for group in own if len(group) > 1]
    return found


def _contrasted(
    result: WhatIf, limits: Limits, peers: list[tuple[int, list[int]]]
) -> tuple[npt.NDArray[np.bool_], Array]:
    """Flags and ratios to the peers of [step, stage, replica]; who has none is as usual."""
    flags, ratios = np.zeros(result.work.shape, dtype=bool), np.ones(result.work.shape)
    for stage, at in peers:
        flags[:, stage, at], ratios[:, stage, at], _ = contrast(result.work[:, stage, at], limits.bounds)
    return flags, ratios


def _is_longer(excess: Array, place: Place, limits: Limits) -> bool:
    """Whether another stage of the replica takes longer as well; ``excess`` is what ratios are above 1."""
    stage, replica = place
    others = np.delete(excess[:, replica], stage)
    return bool((others > limits.elsewhere * excess[stage, replica]).any())


def _ahead_of_chance(
    player: Player, result: WhatIf, stage: int, group: list[int], count: int, limits: Limits
) -> set[int]:
    """Who of a group is more often among the ``count`` longest than varying lengths would bring it, whatever they are.

    A step is one sample, and so is a microbatch, since these differ independently of each other.
    """
    found: set[int] = set()
    for samples in (result.work[:, stage, group], player.microbatches(stage)[:, group]):
        ahead = among_longest(samples, count)
        found |= {
            replica
            for replica, often in zip(group, ahead.tolist(), strict=True)
            if chance_of(often, len(samples), len(group), count) < limits.chance
        }
    return found


def _beyond_chance(ratios: Array, group: list[int], replica: int, spread: float, limits: Limits) -> bool:
    """Whether a worker's ratios to its peers lie further above 1 than steps of unlike length would bring it.

    The error of their mean is the largest of what microbatches make, of what its own steps show, and of what the steps
    of all its peers show: of a few steps those of one worker may be alike by chance. Ratios are of [step, replica].
    """
    steps = len(ratios)
    variances = ratios[:, group].var(axis=0, ddof=1) if steps > 1 else np.zeros(len(group))
    own = variances[group.index(replica)]
    error = max(spread, float(np.sqrt(max(own, variances.mean())))) / np.sqrt(steps)
    return bool(ratios[:, replica].mean() - 1 >= limits.deviations * error)


def cause_of(result: WhatIf, slow: Slow, limits: Limits, unseen: int = 0) -> Cause | None:
    """What explains most of the lost time; null where none is lost worth speaking of.

    ``unseen`` replicas take part in collectives and were not traced, or not enough.
    """
    if result.slowdown < limits.slowdown:
        return Cause.BETWEEN if result.launch_slowdown >= limits.slowdown else None
    shares = result.shares
    explained = (
        (slow.gain if slow.places and shares.workers >= limits.most else 0.0, Cause.WORKERS),
        (slow.longer_gain if shares.workers >= limits.most else 0.0, Cause.REPLICA),
        (shares.variation, Cause.LENGTHS if result.correlation >= limits.correlation else Cause.VARIATION),
        # Ranks that join the same collectives have no stages.
        (0.0 if result.by_rank else shares.stages, Cause.STAGES if len(result.replicas) > 1 else Cause.ONE_REPLICA),
        (shares.communication, Cause.UNSEEN if unseen else Cause.COMMUNICATION),
    )
    return next((cause for share, cause in explained if share >= limits.most), Cause.SEVERAL)
