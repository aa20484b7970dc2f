"""What played steps tell, in words: what is lost, to what, and what the peers show."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from schemas.identity import rank_ranges
from streams.whatif import WhatIf
from streams.whatif_cause import Cause, Slow
from streams.whatif_tensor import Array, Place

LONGEST = 300
Ranks = Mapping[Place, list[int]]
"""The traced ranks of each worker by (stage, replica) index."""


def said(result: WhatIf, cause: Cause, slow: Slow, ranks: Ranks, tensor_parallel: int, unseen: int = 0) -> str:
    """What a step loses, and to what. One traced rank may stand for a ``tensor_parallel`` group.

    ``unseen`` replicas were not traced, or too little.
    """
    shares = result.shares
    slowest = max(result.of_type, key=lambda name: (result.of_type[name], name))
    to_what = {
        Cause.WORKERS: f"{_who(result, slow.places, ranks, tensor_parallel)} like its peers would win back "
        f"{slow.gain:.0%} of that",
        Cause.STAGES: f"{shares.stages:.0%} of that is stage imbalance: pipeline stage {_heaviest(result)} has "
        "more work than others",
        Cause.ONE_REPLICA: f"{shares.stages:.0%} of that is that stage {_heaviest(result)} takes longest, and with one "
        "replica nobody can tell whether it has more work or its worker is slow",
        Cause.REPLICA: f"{slow.longer_gain:.0%} of that is that {_replicas(result, slow)} longer on several stages "
        "alike, as with longer inputs",
        Cause.LENGTHS: f"{shares.variation:.0%} of that is microbatches that take longer than others on the same "
        f"worker, forward and backward alike (r = {result.correlation:.2f}): their sequence lengths differ",
        Cause.VARIATION: f"{shares.variation:.0%} of that is work that takes now longer, now shorter on one worker",
        Cause.COMMUNICATION: f"{shares.communication:.0%} of that is communication after all have joined, most of all "
        f"{slowest}",
        Cause.UNSEEN: f"{shares.communication:.0%} of that is communication, or waiting for the replicas that are not "
        "there",
        Cause.BETWEEN: f"it was traced at {result.step_s:.2f} s: {result.launch_slowdown - 1:.0%} more pass between "
        "operations, while data is loaded or the host is late",
        Cause.SEVERAL: f"workers explain {shares.workers:.0%} of that, stages {shares.stages:.0%}, variation "
        f"{shares.variation:.0%}, communication {shares.communication:.0%}{_unsure(result, slow, ranks)}",
    }
    played = f"over {len(result.steps)} steps{_not_there(result, unseen)}"
    return (
        f"a step takes {_seconds(result.played_s)} and would take {_seconds(result.ideal_s)} if every operation took "
        f"what its kind usually does (S = {result.slowdown:.2f} {played}); "
        f"{to_what[cause]}"
    )


def peers_said(result: WhatIf, cause: Cause, slow: Slow) -> str:
    """What the others showed, and the figures by which the field compares jobs."""
    work = np.median(result.work, axis=0)
    # Ranks that all join the same collectives have no last stage.
    figures = f"M_W = {_figure(result.m_w)}" + ("" if result.by_rank else f", M_S = {_figure(result.m_s)}")
    if cause is Cause.WORKERS:
        stage, replica = slow.places[0]
        others = np.delete(work[stage], [one for at, one in slow.places if at == stage])
        does, peers = ("works", "other ranks") if result.by_rank else ("computes", "the stage's other replicas")
        return f"{does} {_seconds(work[stage, replica])} a step, {peers} {_span(others)}; {figures}"
    if cause in (Cause.STAGES, Cause.ONE_REPLICA):
        stages = zip(result.stages, np.median(work, axis=1), strict=True)
        listed = ", ".join(f"stage {number} {value:.2f} s" for number, value in stages)
        return f"computed in a step: {listed[:LONGEST]}; {figures}"
    last = set(result.work.max(axis=1).argmax(axis=-1).tolist())
    who = "ranks" if result.by_rank else "replicas"
    return f"{len(last)} of {len(result.replicas)} {who} take turns in computing longest; {figures}"


def why(result: WhatIf, slow: Slow, place: Place) -> str:
    """Why one worker is a suspect."""
    flagged = slow.flagged[place]
    steps = f"in {sum(flagged)} of {len(flagged)} steps"
    alone = f"alone it would make a step {result.of_worker(*place):.2f} times as long"
    if result.by_rank:
        return (
            f"works {slow.ratios[place]:.2f} times as long as other ranks {steps}, its device busy or waiting for its "
            f"CPU; {alone}"
        )
    return f"computes {slow.ratios[place]:.2f} times as long as the replicas of its pipeline stage {steps}; {alone}"


def _who(result: WhatIf, places: list[Place], ranks: Ranks, tensor_parallel: int) -> str:
    """The workers: one with its coordinates, several as ranks."""
    if len(places) != 1:
        return f"ranks {rank_ranges({rank for place in places for rank in ranks[place]})}"
    stage, replica = places[0]
    own = ranks[places[0]]
    if result.by_rank:
        return f"rank {own[0]}"
    at = f"dp {result.replicas[replica]}, pp {result.stages[stage]}"
    if len(own) > 1:
        return f"one of ranks {rank_ranges(own)} ({at})"
    group = f", traced for the {tensor_parallel} ranks of its tensor-parallel group" if tensor_parallel > 1 else ""
    return f"rank {own[0]} ({at}{group})"


def _unsure(result: WhatIf, slow: Slow, ranks: Ranks) -> str:
    """Who took longer, but not in enough steps."""
    if slow.places or not slow.unsure:
        return ""
    listed = rank_ranges({rank for place in slow.unsure for rank in ranks[place]})
    return f"; that it was ranks {listed} may be chance in {len(result.steps)} steps, and more steps would tell"


def _replicas(result: WhatIf, slow: Slow) -> str:
    """The replicas that take longer as a whole."""
    numbers = {result.replicas[replica] for _, replica in slow.longer}
    one = len(numbers) == 1
    return f"data-parallel {'replica' if one else 'replicas'} {rank_ranges(numbers)} {'computes' if one else 'compute'}"


def _not_there(result: WhatIf, unseen: int) -> str:
    """What of the trace was not played."""
    told = (
        (unseen, "of the replicas not traced in most of them"),
        (result.left_aside, "more steps lack workers, or times, or follow another schedule"),
        (result.aligned, "workers with other clocks, set right by the ends of collectives"),
        (result.untimed, "operations without a time that can be used take what is usual"),
    )
    return "".join(f", {count} {what}" for count, what in told if count)


def _heaviest(result: WhatIf) -> int:
    return result.stages[int(np.median(result.work, axis=(0, 2)).argmax())]


def _figure(value: float) -> str:
    return f"{round(value, 2) + 0.0:.2f}"


def _span(values: Array) -> str:
    return f"{values.min():.{_digits(values.max())}f}-{_seconds(values.max())}" if values.size else "were not traced"


def _seconds(value: float) -> str:
    return f"{value:.{_digits(value)}f} s"


def _digits(value: float) -> int:
    """Behind the point: steps of a few ranks' small models take milliseconds."""
    return 2 if value >= 1 else 3 if value >= 0.1 else 4
