"""Timelines of many workers and steps as one tensor: what each operation of the schedule took, where and when.

An operation has the same place in every step and at all replicas of its pipeline stage; workers and steps that follow
another schedule than most cannot be laid over each other and are left aside. So is a step of which too many operations
have no time; of a few the place is known, and what they took is left open.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import msgspec
import numpy as np
import numpy.typing as npt

from schemas.events import Timeline
from streams.operations import COMPUTE

Array = npt.NDArray[np.float64]
Place = tuple[int, int]
"""Replica (data-parallel coordinate) and pipeline stage."""

SECOND = 1_000_000_000
MOST_VALUES = 6_000_000
"""Of the tensor; of more steps than fit the last ones are taken."""
MOST_SLOTS = 60_000
"""Operations of all stages in one step; each is played by itself."""


LACKING = 0.8
"""Of the steps that the best traced replica has; who has fewer is left aside, unless enough steps have all."""
ENOUGH_STEPS = 5
UNTIMED, UNTIMED_OF_WORKER = 0.01, 0.05
"""Of a step's operations, and of those of one worker in it beyond two; with more left open nobody knows it."""


class Slot(msgspec.Struct, frozen=True):
    """One operation of the schedule: the ``number``-th of its name on its stage, in order of starts, from 0."""

    stage: int
    name: str
    number: int
    chunk: int = -1


class Trace(msgspec.Struct, frozen=True):
    """Operations as [slot, step, replica] in seconds: ``starts`` from the step's common origin, and ``ends``.

    Ends are NaN where they are not known; such starts only order the operations of one kind.

    ``slots`` stand stage by stage in order of their starts. ``stages`` and ``replicas`` are the coordinates that the
    indices stand for; ``left_aside`` counts steps, ``replicas_aside`` replicas that are not there though some worker
    traced them.
    """

    slots: list[Slot]
    steps: list[int]
    stages: list[int]
    replicas: list[int]
    starts: Array
    ends: Array
    left_aside: int = 0
    replicas_aside: int = 0


class NoTrace(ValueError):  # noqa: N818 - nothing went wrong
    """Timelines that cannot be laid over each other; the message says why."""


class _Shape(msgspec.Struct, frozen=True):
    """A timeline's schedule, and its columns by name and start.

    ``alike`` is what stays of the schedule where only the order within each kind is known, as with ``untimed`` ones.
    """

    schedule: tuple[object, ...]
    alike: tuple[object, ...]
    untimed: int
    slots: tuple[tuple[str, int, int], ...]
    starts: Array
    ends: Array


def laid_over(steps: Mapping[int, Mapping[Place, Timeline]]) -> Trace:
    """The tensor of these timelines, by step and place. Raises NoTrace where there is none."""
    shapes = {step: {place: _shape(found) for place, found in own.items()} for step, own in sorted(steps.items())}
    stages = sorted({stage for own in shapes.values() for _, stage in own})
    if stages != list(range(len(stages))):
        raise NoTrace(f"of the pipeline's stages only {', '.join(map(str, stages[:20]))} were traced")
    timed = {step: own for step, own in shapes.items() if _is_timed(own)}
    if shapes and not timed:
        raise NoTrace(f"more than {UNTIMED:.0%} of the operations of each step have no time that can be used")
    usual = {stage: _usual(timed, stage) for stage in stages}
    fitting = {
        step: {place for place, shape in own.items() if _fits(shape, usual[place[1]])} for step, own in timed.items()
    }
    replicas, chosen = _common(fitting, stages)
    if not chosen:
        raise NoTrace("no step was traced at all stages of a pipeline")
    first = {stage: _order_of(shapes, replicas, chosen, stage) for stage in stages}
    width = sum(len(shape.slots) for shape in first.values())
    if not width:
        raise NoTrace("the timelines hold no operation")
    if width > MOST_SLOTS or width * len(replicas) > MOST_VALUES:
        raise NoTrace(f"a step has {width} operations at each of {len(replicas)} replicas, which are too many")
    chosen = chosen[-(MOST_VALUES // (width * len(replicas))) :]
    blocks, slots = [], []
    for number, stage in enumerate(stages):
        order = np.lexsort((np.arange(len(first[stage].starts)), first[stage].starts))
        slots += [Slot(number, *first[stage].slots[at]) for at in order]
        own = [[shapes[step][dp, stage] for dp in replicas] for step in chosen]
        starts = np.array([[shape.starts for shape in row] for row in own])
        ends = np.array([[shape.ends for shape in row] for row in own])
        blocks.append(np.stack([starts, ends]).transpose(0, 3, 1, 2)[:, order])
    both = np.concatenate(blocks, axis=1)
    aside = len({dp for own in shapes.values() for dp, _ in own}) - len(replicas)
    return Trace(slots, chosen, stages, replicas, both[0], both[1], len(steps) - len(chosen), aside)


def _shape(found: Timeline) -> _Shape:
    """The columns by name and start. The schedule is the order of computing, and how many there are of what else."""
    open_ends = np.array(found.untimed, dtype=np.int64)
    codes = np.array(found.operations, dtype=np.int64)
    starts = np.array(found.starts, dtype=np.float64) / SECOND
    ends = starts + np.array(found.durations, dtype=np.float64) / SECOND
    ends[open_ends] = np.nan
    # Names in alphabetical order, so that workers which list them otherwise have the same columns.
    names = sorted(set(found.names))
    places = {name: place for place, name in enumerate(names)}
    codes = np.array([places[name] for name in found.names], dtype=np.int64)[codes]
    order = np.lexsort((starts, codes))
    codes = codes[order]
    chunks = np.array(found.chunks or [-1] * len(codes), dtype=np.int64)[order]
    batches = np.array(found.microbatches or [-1] * len(codes), dtype=np.int64)[order]
    first = np.searchsorted(codes, codes)
    slots = tuple(
        (names[code], int(at - begin), int(chunk))
        for at, (code, begin, chunk) in enumerate(zip(codes, first, chunks, strict=True))
    )
    computing = np.isin(codes, [places[name] for name in COMPUTE if name in places])
    by_start = np.flatnonzero(computing)[np.argsort(starts[order][computing], kind="stable")]
    counted = tuple(sorted(Counter(names[code] for code in codes).items()))
    schedule = (
        tuple(names[code] for code in codes[by_start]),
        chunks[by_start].tobytes(),
        batches[by_start].tobytes(),
        counted,
    )
    alike = chunks[computing].tobytes(), batches[computing].tobytes(), counted
    return _Shape(schedule, alike, len(open_ends), slots, starts[order], ends[order])


def _is_timed(own: Mapping[Place, _Shape]) -> bool:
    """Whether nearly all operations of a step have a time."""
    return sum(shape.untimed for shape in own.values()) <= UNTIMED * sum(len(shape.slots) for shape in own.values())


def _fits(shape: _Shape, usual: _Shape) -> bool:
    """Whether a timeline follows the usual schedule, as far as its times tell."""
    if not shape.untimed:
        return shape.schedule == usual.schedule
    return shape.alike == usual.alike and shape.untimed <= max(2, UNTIMED_OF_WORKER * len(shape.slots))


def _order_of(
    shapes: Mapping[int, Mapping[Place, _Shape]], replicas: list[int], chosen: list[int], stage: int
) -> _Shape:
    """A timeline of the stage whose starts give the order of its operations: the first with the fewest left open."""
    found = (shapes[step][replica, stage] for step in chosen for replica in replicas)
    best = next(found)
    for one in found:
        if not best.untimed:
            break
        best = one if one.untimed < best.untimed else best
    return best


def _usual(shapes: Mapping[int, Mapping[Place, _Shape]], stage: int) -> _Shape:
    """The first timeline of a stage that follows the schedule of most; of equally many schedules the first seen."""
    found = [own[place] for own in shapes.values() for place in sorted(own) if place[1] == stage]
    if not found:
        raise NoTrace(f"stage {stage} has no step of which nearly all operations have a time")
    counted = Counter(shape.schedule for shape in found if not shape.untimed) or Counter(
        shape.schedule for shape in found
    )
    most = max(counted, key=lambda schedule: counted[schedule])
    return next(shape for shape in found if shape.schedule == most)


def _common(fitting: Mapping[int, set[Place]], stages: list[int]) -> tuple[list[int], list[int]]:
    """Replicas and the steps in which all of these were traced at all stages.

    Replicas that lack some steps cost these steps, since without a replica nobody can say whom the others wait for.
    Only where not enough steps have all of them those that lack many are left out.
    """
    whole = {step: {dp for dp, _ in own if all((dp, pp) in own for pp in stages)} for step, own in fitting.items()}
    counted = Counter(dp for own in whole.values() for dp in own)
    most = max(counted.values(), default=0)
    for least, enough in ((1, ENOUGH_STEPS), (LACKING * most, 1), (most, 1)):
        replicas = sorted(dp for dp, count in counted.items() if count >= least)
        steps = [step for step, own in whole.items() if own and own >= set(replicas)]
        if len(steps) >= enough:
            return replicas, steps
    return [], []
