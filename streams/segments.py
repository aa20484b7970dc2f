"""Whether the segments of profiled steps can be played: all ranks are there, and meet where they should.

A step's segments end with collectives (``producers/segments.py``). A rank that was not profiled may be the one for whom
all others wait; and collectives that are the same one end on all ranks together.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from schemas.events import Timeline
from streams.operations import SEGMENT
from streams.whatif_tensor import NoTrace, Trace

LEAST_RANKS = 4
APART = 0.1
"""Of a step; by so much ends of one collective may lie apart, of which some is the cost of being told late."""


def check_segments(trace: Trace, timelines: Collection[Timeline]) -> None:
    """Raises NoTrace where these segments, laid over each other as ``trace``, cannot be played."""
    members, ranks = max(one.members for one in timelines), len(trace.replicas)
    if len({one.recorded for one in timelines}) > 1:
        raise NoTrace("ranks were not profiled alike, and a profiler that follows more takes longer")
    if members < LEAST_RANKS:
        raise NoTrace(f"{members} ranks are too few to tell which of them is slow")
    if ranks < members:
        raise NoTrace(f"steps of only {ranks} of {members} ranks fit together, and they may wait for the others")
    meets = np.array([slot.name != SEGMENT for slot in trace.slots])
    ends = trace.ends[meets]
    apart = (ends.max(axis=2) - ends.min(axis=2)).max(axis=0)
    if np.median(apart / np.maximum(ends.max(axis=(0, 2)), 1e-9)) > APART:
        raise NoTrace("what should be one collective does not end on all ranks together")
