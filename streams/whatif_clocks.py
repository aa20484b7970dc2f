"""Workers whose clocks differ, seen by collectives: one that all join ends for all at once, whatever their clocks say.

Only what is far beyond the cost of being told late is put right, so a trace of one clock stays as it is.
"""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt

from streams.whatif_graph import Meeting
from streams.whatif_tensor import Array, Trace

APART = 0.1
"""Of a step; ends of one collective that lie further apart are by different clocks."""


def aligned(trace: Trace, meetings: list[Meeting]) -> tuple[Trace, int]:
    """The trace with the times of such workers moved, and how many workers these are.

    Where collectives join all stages these count, else those of the replicas of each stage.
    """
    stage_of = np.array([slot.stage for slot in trace.slots])
    shared = [one.slots for one in meetings if one.replicas]
    wide = [slots for slots in shared if len(set(stage_of[slots])) > 1]
    ahead: dict[int, list[Array]] = {}
    for slots in wide or shared:
        ends = trace.ends[slots]
        lead = ends - _median(ends, (0, 2))
        for at, slot in enumerate(slots):
            ahead.setdefault(int(stage_of[slot]), []).append(lead[at])
    limit = APART * _median(_spans(trace), (1,))
    starts, ends = trace.starts.copy(), trace.ends.copy()
    moved = 0
    for stage, leads in sorted(ahead.items()):
        lead = _median(np.stack(leads), (0,))[0]
        lead[~(np.abs(lead) > limit)] = 0
        moved += int(lead.any(axis=0).sum())
        starts[stage_of == stage] -= lead
        ends[stage_of == stage] -= lead
    return (msgspec.structs.replace(trace, starts=starts, ends=ends), moved) if moved else (trace, 0)


def _spans(trace: Trace) -> Array:
    """How long a step takes by the clock of the worker of the first stage that it is said by, as [step, replica]."""
    first = np.array([slot.stage == 0 for slot in trace.slots])
    return np.asarray(np.nanmax(trace.ends[first], axis=0) - trace.starts[first].min(axis=0))


def _median(values: Array, axis: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """The median without missing values, 0 where all are missing; the axes stay."""
    known: Array = np.where(np.isnan(values).all(axis=axis, keepdims=True), 0.0, values)
    return np.asarray(np.nanmedian(known, axis=axis, keepdims=True))
