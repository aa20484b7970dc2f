"""What waits for what in a training step: the dependencies by which a step is played again with other durations.

A worker computes in its order. A transfer begins when what is sent is there and both ends have got to it, a collective
when all who take part have. Transfers of each direction, collectives and computing run beside each other on a worker
(arXiv 2505.05713, section 3). Gaps in which nothing is waited for are left out, so a played step may be shorter than
the traced one: what is lost there is lost between operations.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable

import msgspec
import numpy as np

from streams.operations import BACKWARD, COMPUTE, FORWARD, Party, is_own_work, is_waited_for, party_of
from streams.whatif_tensor import Array, NoTrace, Slot, Trace


class Meeting(msgspec.Struct, frozen=True):
    """Operations that begin together, once all those of ``after`` are over; at all replicas where ``replicas``."""

    slots: list[int]
    after: set[int]
    replicas: bool


Meet = Callable[[Array], Array]
"""When a collective of the replicas begins, from when each is ready: [step, replica] to what broadcasts to it."""


def latest(ready: Array) -> Array:
    """All replicas wait for the last."""
    return np.asarray(ready.max(axis=-1, keepdims=True))


def lone(ready: Array) -> Array:
    """Each replica by itself among replicas like the last column: one pass plays "only this one differs" for all."""
    return np.maximum(ready, ready[..., -1:])


def graph_of(trace: Trace) -> list[Meeting]:
    """The meetings of a step in an order in which they can be played. Raises NoTrace where they contradict."""
    slots, stages = trace.slots, len(trace.stages)
    after = _own_order(slots)
    for earlier, later in _along_the_pipeline(slots, stages):
        after[later].add(earlier)
    together: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for at, slot in enumerate(slots):
        together[_meeting(slot, stages)].append(at)
    if any(key[0] == "transfer" and len(found) != 2 for key, found in together.items()):
        raise NoTrace("sends and receives of the pipeline do not match")
    meetings = [
        Meeting(
            found,
            set().union(*(after[at] for at in found)),
            party_of(slots[found[0]].name) in (Party.REPLICAS, Party.EVERYBODY),
        )
        for found in together.values()
    ]
    return _in_order(meetings)


def played(meetings: list[Meeting], spent: Array, meet: Meet = latest) -> Array:
    """How long each step takes, [step, replica], where the operations take ``spent``, [slot, step, replica], seconds.

    What lies between operations takes no time.
    """
    over = np.zeros_like(spent)
    nothing = np.zeros(spent.shape[1:])
    for meeting in meetings:
        ready = nothing
        for at in meeting.after:
            ready = np.maximum(ready, over[at])
        begun = meet(ready) if meeting.replicas else ready
        for at in meeting.slots:
            over[at] = begun + spent[at]
    return np.asarray(over.max(axis=0))


def transfers(meetings: list[Meeting], trace: Trace) -> Array:
    """What each operation took once all who take part in it had begun, in seconds: its end less their latest start."""
    spent = trace.ends - trace.starts
    for meeting in meetings:
        begun = trace.starts[meeting.slots].max(axis=0)
        begun = latest(begun) if meeting.replicas else begun
        if meeting.replicas or len(meeting.slots) > 1:
            spent[meeting.slots] = np.maximum(trace.ends[meeting.slots] - begun, 0)
    return spent


def _along_the_pipeline(slots: list[Slot], stages: int) -> list[tuple[int, int]]:
    """Pairs (earlier, later): computing before its send, and a receive before the computing that needs it."""
    of: dict[tuple[int, str], list[int]] = defaultdict(list)
    for at, slot in enumerate(slots):
        of[slot.stage, slot.name].append(at)
    chunks = [slot.chunk for slot in slots if slot.name in COMPUTE]
    low, high = min(chunks, default=-1), max(chunks, default=-1)
    pairs: list[tuple[int, int]] = []
    for stage in range(stages):
        for name, begins, ends in (
            (FORWARD, (0, low), (stages - 1, high)),
            (BACKWARD, (stages - 1, high), (0, low)),
        ):
            direction = name.partition("-")[0]
            own = of[stage, name]
            sending = [at for at in own if (stage, slots[at].chunk) != ends]
            needing = [at for at in own if (stage, slots[at].chunk) != begins]
            sends, receives = of[stage, f"{direction}-send"], of[stage, f"{direction}-recv"]
            if len(sending) != len(sends) or len(needing) != len(receives):
                raise NoTrace("a stage computes what it neither sends nor receives")
            pairs += [*zip(sending, sends, strict=True), *zip(receives, needing, strict=True)]
    return pairs


def _own_order(slots: list[Slot]) -> list[set[int]]:
    """What comes before each operation on its own worker."""
    after: list[set[int]] = [set() for _ in slots]
    latest_of: dict[tuple[int, str], int] = {}
    gates: dict[int, set[int]] = defaultdict(set)
    for at, slot in enumerate(slots):
        stage, party = slot.stage, party_of(slot.name)
        if party in (Party.SENDER, Party.RECEIVER):
            stream = slot.name
        elif is_own_work(slot.name):
            stream = "own"
        else:
            stream = "collectives"
        if (before := latest_of.get((stage, stream))) is not None:
            after[at].add(before)
        if stream == "own":
            after[at] |= gates.pop(stage, set())
            if slot.name not in COMPUTE and (before := latest_of.get((stage, "collectives"))) is not None:
                after[at].add(before)
        elif stream == "collectives":
            if (before := latest_of.get((stage, "own"))) is not None:
                after[at].add(before)
            if is_waited_for(slot.name):
                gates[stage].add(at)
        latest_of[stage, stream] = at
    return after


def _meeting(slot: Slot, stages: int) -> tuple[object, ...]:
    """What operations that begin together have in common."""
    party = party_of(slot.name)
    direction = slot.name.partition("-")[0]
    onward = 1 if direction == "forward" else -1
    if party is Party.SENDER:
        return "transfer", direction, slot.stage, slot.number
    if party is Party.RECEIVER:
        return "transfer", direction, (slot.stage - onward) % stages, slot.number
    if party in (Party.STAGES, Party.EVERYBODY):
        return "collective", slot.name, slot.number
    return "own", slot.stage, slot.name, slot.number


def _in_order(meetings: list[Meeting]) -> list[Meeting]:
    """The meetings, each behind those it waits for; of several that could be next the first."""
    of = {at: number for number, meeting in enumerate(meetings) for at in meeting.slots}
    waits = [{of[at] for at in meeting.after} - {number} for number, meeting in enumerate(meetings)]
    followers: dict[int, list[int]] = defaultdict(list)
    for number, before in enumerate(waits):
        for one in before:
            followers[one].append(number)
    ready = [number for number, before in enumerate(waits) if not before]
    heapq.heapify(ready)
    ordered = []
    while ready:
        number = heapq.heappop(ready)
        ordered.append(meetings[number])
        for follower in followers[number]:
            waits[follower].discard(number)
            if not waits[follower]:
                heapq.heappush(ready, follower)
    if len(ordered) < len(meetings):
        raise NoTrace("the operations of a step wait for each other in a circle")
    return ordered
