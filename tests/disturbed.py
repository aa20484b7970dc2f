"""A recording with something changed that is nobody's fault: words of victims, a lost source, other names, times."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from producers.batches import batch
from producers.observations import Observation
from producers.recording import Recording
from schemas.events import Collective, Event, Heartbeat, Log, Metric, Profile, Stack, Timeline
from schemas.identity import Identity

SECOND = 1_000_000_000
Told = list[Observation]

TORN = 'Traceback (most recent call last):\n  File "/job/train.py", line 140, in main\n    close()\n'
CASCADES = (
    "[rank{rank}]: RuntimeError: Connection closed by peer [10.0.0.1]:29500",
    TORN + "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3356, remote process exited",
    "[Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=31, OpType=ALLREDUCE, NumelIn=8, "
    "NumelOut=8, Timeout(ms)=600000) ran for 600029 milliseconds before timing out.",
    "terminate called after throwing an instance of 'c10::DistBackendError'",
)
"""What ranks print that have lost a peer."""
OWN_LOOKING = (
    TORN + "OSError: [Errno 9] Bad file descriptor",
    TORN + "ValueError: I/O operation on closed file",
    TORN + "BrokenPipeError: [Errno 32] Broken pipe",
    TORN + "RuntimeError: DataLoader worker (pid 4711) exited unexpectedly",
    TORN + "AssertionError: the last state was not saved",
    TORN + "TimeoutError: the store did not answer",
    TORN + "KeyError: 'metrics'",
    TORN + "RuntimeError: CUDA error: an illegal memory access was encountered",
    "Fatal Python error: Aborted",
)
"""What ranks print while they are torn down, and what looks like an error of their own."""


def told_by(recording: Recording) -> Told:
    """All events of a recording with their owners, in order."""
    events = [(one.time, one.batch.identity, event) for one in recording.arrivals for event in one.batch.events]
    return [Observation(who, time, event, "", place) for place, (time, who, event) in enumerate(events)]


def recorded(told: Iterable[Observation], like: Recording) -> Recording:
    """A recording of these events."""
    return msgspec.structs.replace(like, arrivals=batch(told))


def without(told: Told, lost: Callable[[Identity, Event], bool]) -> Told:
    """All that a lost source has not told."""
    return [one for one in told if not lost(one.identity, one.event)]


def with_words(told: Told, who: Identity, times: Sequence[int], text: str) -> Told:
    """The same, and what a rank prints at these times (ns)."""
    lines = [Log(time=time, stream="stderr", text=text.format(rank=who.rank)) for time in times]
    more = [Observation(who, line.time, line, "", len(told) + place) for place, line in enumerate(lines)]
    return [*told, *more]


Lost = Callable[[Identity, Event], bool]


def sources(told: Told) -> dict[str, Lost]:
    """Every source that may be missing, by name."""
    ranks = sorted({one.identity.rank for one in told if one.identity.rank is not None})
    nodes = sorted({one.identity.node for one in told} - {""})
    found: dict[str, Lost] = {
        "all stacks": lambda who, event: isinstance(event, Stack),
        "all dumps": lambda who, event: isinstance(event, Collective),
        "all metrics": lambda who, event: isinstance(event, Metric),
        "all heartbeats": lambda who, event: isinstance(event, Heartbeat),
        "all profiles": lambda who, event: isinstance(event, Profile | Timeline),
        "launchers": lambda who, event: isinstance(event, Log) and who.rank is None,
        "all logs of ranks": lambda who, event: isinstance(event, Log) and who.rank is not None,
    }
    for rank in ranks:
        found[f"stacks of {rank}"] = _of(rank, Stack)
        found[f"dump of {rank}"] = _of(rank, Collective)
        found[f"logs of {rank}"] = _of(rank, Log)
        found[f"metrics of {rank}"] = _of(rank, Metric)
        found[f"all of {rank}"] = _of(rank, Event)
    for node in nodes:
        found[f"all of {node}"] = _on(node, Event)
        found[f"launcher of {node}"] = _of_launcher(node)
    return found


def _of(rank: int, kind: type[Event]) -> Lost:
    return lambda who, event: who.rank == rank and isinstance(event, kind)


def _on(node: str, kind: type[Event]) -> Lost:
    return lambda who, event: who.node == node and isinstance(event, kind)


def _of_launcher(node: str) -> Lost:
    return lambda who, event: who.node == node and who.rank is None


_RANK = re.compile(r"(?i)(?<!local_)(\brank ?)(\d+)")


def renamed(told: Told, to: Mapping[int, int], nodes: Mapping[str, str]) -> Told:
    """The same job whose ranks and nodes have other names."""
    return [
        msgspec.structs.replace(one, identity=_owner(one.identity, to, nodes), event=_event(one.event, to))
        for one in told
    ]


def _owner(who: Identity, to: Mapping[int, int], nodes: Mapping[str, str]) -> Identity:
    rank = None if who.rank is None else to[who.rank]
    return msgspec.structs.replace(who, rank=rank, node=nodes.get(who.node, who.node))


def _event(event: Event, to: Mapping[int, int]) -> Event:
    if isinstance(event, Log):
        text = _RANK.sub(lambda found: f"{found[1]}{to.get(int(found[2]), int(found[2]))}", event.text)
        return msgspec.structs.replace(event, text=text)
    if isinstance(event, Collective):
        return msgspec.structs.replace(event, ranks=sorted(to[rank] for rank in event.ranks))
    return event


_TIMES = ("time", "created", "started")


def shifted(told: Told, by: int, whose: Callable[[Identity], bool] = lambda who: True) -> Told:
    """The same at other times (ns); where only some clocks are off, of those whose they are."""
    return [_shifted(one, by) if whose(one.identity) else one for one in told]


def _shifted(one: Observation, by: int) -> Observation:
    event: Any = one.event
    values = {name: value + by for name in _TIMES if (value := getattr(event, name, 0))}
    return msgspec.structs.replace(one, arrival=one.arrival + by, event=msgspec.structs.replace(event, **values))


def twice(told: Told, dice: random.Random, share: float = 0.2) -> Told:
    """Some records come again, as from two collectors of one file."""
    again = [one for one in told if dice.random() < share]
    return [*told, *again]
