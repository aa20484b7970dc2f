"""Operations of a training step by name: a worker's own work or communication, and who takes part in the latter.

One table for all sources of timelines. An operation that it does not know counts as the worker's own work.
"""

from __future__ import annotations

from enum import Enum


class Party(Enum):
    """Who has to be there before an operation gets on: nobody else, or the peers of one of the groups."""

    ALONE = "nobody else"
    SENDER = "the next worker of the pipeline, which receives"
    RECEIVER = "the worker of the pipeline that sends"
    REPLICAS = "the replicas of the pipeline stage"
    STAGES = "the stages of the pipeline that have it too"
    EVERYBODY = "all workers"


FORWARD, BACKWARD = "forward-compute", "backward-compute"
COMPUTE = (FORWARD, BACKWARD)
SEGMENT = "compute"
"""Own work between two collectives."""
_SEGMENTED = frozenset({SEGMENT, "all-reduce", "all-gather", "reduce-scatter"})

_COMMUNICATION: dict[str, Party] = {
    "forward-send": Party.SENDER,
    "forward-recv": Party.RECEIVER,
    "backward-send": Party.SENDER,
    "backward-recv": Party.RECEIVER,
    "params-all-gather": Party.REPLICAS,
    "params-broadcast": Party.REPLICAS,
    "grads-reduce-scatter": Party.REPLICAS,
    "grads-all-reduce": Party.REPLICAS,
    "embedding-grads-all-reduce": Party.STAGES,
    "optimizer-clip-main-grad": Party.EVERYBODY,
    # At the end of a segment of a profiled step.
    "all-reduce": Party.EVERYBODY,
    "all-gather": Party.EVERYBODY,
    "reduce-scatter": Party.EVERYBODY,
    # Between tensor-parallel ranks, of which a timeline stands for all.
    "layernorm-grads-all-reduce": Party.ALONE,
}


def party_of(name: str) -> Party:
    """Who takes part in the operation besides its worker."""
    return _COMMUNICATION.get(name, Party.ALONE)


def is_own_work(name: str) -> bool:
    """Whether how long the operation takes is the worker's own doing."""
    return name not in _COMMUNICATION


def is_waited_for(name: str) -> bool:
    """Whether the worker cannot compute before the operation is over: parameters have to be there."""
    return name.startswith("params-")


def type_of(name: str, number: int) -> str:
    """What stands for all operations of a type: both ends of a transfer are one.

    Segments of a step are as long as the program has it, so each is like the same one of other ranks and steps alone.
    """
    if name in _SEGMENTED:
        return f"{name}-{number}"
    direction, _, end = name.partition("-")
    return f"{direction}-pp-comm" if end in ("send", "recv") and name in _COMMUNICATION else name
