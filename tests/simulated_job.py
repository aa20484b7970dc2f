"""A small model of a training job on devices: who has enqueued and completed what when one of its ranks goes wrong.

Each rank's program enqueues operations on its device without waiting, until the end of an iteration, where it waits
for all of them. A device takes them in order; a collective is completed once the devices of all members have come to
it, a send once its receive has been come to, and the other way round. Everything is played until nothing moves.
"""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Literal

import msgspec
from detection_support import S, at

from schemas.events import Collective
from schemas.results import CollectiveState
from streams.stages.columns import reached_of

Fault = Literal["process stops", "device stops", "another operation", "left out"]
STALLED_S = 12.0
CAPTURED_S = 30.0


class Operation(msgspec.Struct, frozen=True):
    """One operation on a group; of a send or receive, ``peer`` is the other rank."""

    name: str
    group: str
    peer: int | None = None


class Shape(msgspec.Struct, frozen=True):
    """How many ranks share a layer, how many copies of the model there are, how many stages it has."""

    tensor: int
    data: int
    stages: int
    microbatches: int = 2

    @property
    def ranks(self) -> range:
        return range(self.tensor * self.data * self.stages)

    def at(self, rank: int) -> tuple[int, int, int]:
        """Its coordinates (tensor, data, stage)."""
        rest, tensor = divmod(rank, self.tensor)
        stage, data = divmod(rest, self.data)
        return tensor, data, stage

    def members(self, group: str) -> list[int]:
        """The ranks of a group, in order of their places in it."""
        kind, _, where = group.partition(":")
        if kind == "world":
            return list(self.ranks)
        fixed = tuple(map(int, where.split(",")))
        left_out = ("tp", "dp", "pp").index(kind)
        return [rank for rank in self.ranks if _without(self.at(rank), left_out) == fixed]

    def group(self, kind: str, rank: int) -> str:
        """The name of the rank's group of a kind."""
        if kind == "world":
            return kind
        return f"{kind}:{','.join(map(str, _without(self.at(rank), ('tp', 'dp', 'pp').index(kind))))}"

    def iteration(self, rank: int) -> list[Operation]:
        """What a rank does in one iteration: all microbatches forward, then all backward, then the gradients."""
        tensor, world = self.group("tp", rank), "world"
        stride = self.tensor * self.data
        stage = self.at(rank)[2]
        before = rank - stride if stage > 0 else None
        after = rank + stride if stage < self.stages - 1 else None
        found: list[Operation] = []
        for source, target in ((before, after), (after, before)):
            for _ in range(self.microbatches):
                found += [self._sent("recv", rank, source)] if source is not None else []
                found += [Operation("all_reduce", tensor)] * 2 if self.tensor > 1 else []
                found += [self._sent("send", rank, target)] if target is not None else []
        found += [Operation("reduce_scatter", self.group("dp", rank))] if self.data > 1 else []
        return [*found, Operation("all_reduce", world)]

    def _sent(self, name: str, rank: int, peer: int) -> Operation:
        return Operation(name, self.group("pp", rank), peer)


def _without(coordinates: tuple[int, int, int], place: int) -> tuple[int, ...]:
    return tuple(value for at_place, value in enumerate(coordinates) if at_place != place)


class Wrong(msgspec.Struct, frozen=True):
    """What goes wrong on one rank, at the operation with the number ``at`` of its program."""

    fault: Fault
    rank: int
    at: int


class Job:
    """The job once nothing moves any more."""

    def __init__(self, shape: Shape, *wrong: Wrong, iterations: int = 3, ahead: int = 64) -> None:
        self.shape, self.wrong = shape, {one.rank: one for one in wrong}
        self.programs = {rank: shape.iteration(rank) * iterations for rank in shape.ranks}
        for one in wrong:
            if one.fault == "another operation":
                right = self.programs[one.rank][one.at]
                self.programs[one.rank][one.at] = Operation("broadcast", right.group, right.peer)
            if one.fault == "left out":
                del self.programs[one.rank][one.at]
        self.enqueued = dict.fromkeys(shape.ranks, 0)
        self.completed = dict.fromkeys(shape.ranks, 0)
        while self._advance(ahead):
            pass

    @property
    def stands_still(self) -> bool:
        """Whether anybody has more to do."""
        return any(self.completed[rank] < len(program) for rank, program in self.programs.items())

    def _advance(self, ahead: int) -> bool:
        moved = False
        for rank in self.shape.ranks:
            while self.enqueued[rank] < self._limit(rank, ahead):
                self.enqueued[rank] += 1
                moved = True
        heads = {rank: self._head(rank) for rank in self.shape.ranks}
        for rank in self.shape.ranks:
            head = heads[rank]
            if head is None:
                continue
            together = [rank, head.peer] if head.peer is not None else self.shape.members(head.group)
            if all(self._meets(rank, other, heads) for other in together):
                for other in together:
                    self.completed[other] += 1
                    heads[other] = None
                moved = True
        return moved

    def _limit(self, rank: int, ahead: int) -> int:
        """How far the program may enqueue: to the end of the iteration that its device is in."""
        ends = (self.completed[rank] // self.length_of(rank) + 1) * self.length_of(rank)
        limit = min(ends, self.completed[rank] + ahead, len(self.programs[rank]))
        return min(limit, self._stops(rank, "process stops", limit))

    def _stops(self, rank: int, fault: Fault, never: int) -> int:
        """The operation before which a rank's process or device stops, else ``never``."""
        wrong = self.wrong.get(rank)
        return wrong.at if wrong is not None and wrong.fault == fault else never

    def length_of(self, rank: int) -> int:
        return len(self.shape.iteration(rank))

    def _head(self, rank: int) -> Operation | None:
        """What the rank's device is at, null where nothing is enqueued or the device has stopped before it."""
        place = self.completed[rank]
        stops = place >= self._stops(rank, "device stops", place + 1)
        return None if stops or place >= self.enqueued[rank] else self.programs[rank][place]

    def _meets(self, rank: int, other: int, heads: dict[int, Operation | None]) -> bool:
        mine, theirs = heads[rank], heads[other]
        if mine is None or theirs is None or mine.group != theirs.group:
            return False
        if mine.peer is None:
            return theirs.peer is None and mine.name == theirs.name
        return other == rank or (theirs.peer == rank and mine.peer == other and mine.name != theirs.name)

    def dump(self, rank: int, *, sends: bool, timed: bool) -> list[CollectiveState]:
        """What a window says of the rank's flight recorder."""
        found: dict[str, list[Collective]] = defaultdict(list)
        for event in self.recorded(rank, sends=sends, timed=timed):
            found[event.group].append(event)
        return [reached_of(events) for _, events in sorted(found.items())]

    def recorded(self, rank: int, *, sends: bool, timed: bool, zero: int = at(0)) -> list[Collective]:
        """What the rank's flight recorder shows; ``sends`` whether of sends too, ``timed`` whether starts are seen."""
        counts: dict[tuple[str, bool], int] = defaultdict(int)
        found = []
        for place, operation in enumerate(self.programs[rank][: self.enqueued[rank]]):
            counts[operation.group, operation.peer is not None] += 1
            if operation.peer is not None and not sends:
                continue
            found.append(
                Collective(
                    time=zero + round(CAPTURED_S * S),
                    group=operation.group,
                    ranks=self.shape.members(operation.group),
                    sequence=counts[operation.group, operation.peer is not None],
                    operation=self._called(rank, operation),
                    state=self._state(rank, place, timed=timed),
                    input_sizes=[[8]],
                    dtype="Float",
                    created=zero + round((STALLED_S + place / 1000) * S),
                    point_to_point=operation.peer is not None,
                )
            )
        return found

    def _state(self, rank: int, place: int, *, timed: bool) -> Literal["enqueued", "started", "completed"]:
        if place < self.completed[rank]:
            return "completed"
        return "started" if timed and place == self.completed[rank] and self._head(rank) is not None else "enqueued"

    def _called(self, rank: int, operation: Operation) -> str:
        if operation.peer is None:
            return operation.name
        members = self.shape.members(operation.group)
        arrow = "->" if operation.name == "send" else "<-"
        return f"{operation.name} {members.index(rank)}{arrow}{members.index(operation.peer)}"


SHAPES = (Shape(1, 8, 1), Shape(2, 2, 2), Shape(1, 2, 4), Shape(4, 2, 1), Shape(2, 1, 4), Shape(1, 1, 6))
FAULTS: tuple[Fault, ...] = ("process stops", "device stops", "another operation", "left out")


def drawn(seed: int, faults: int = 1) -> Job:
    """A job in which something goes wrong somewhere in its second iteration, on one rank or on several in one way."""
    dice = random.Random(seed)
    shape = dice.choice(SHAPES)
    fault = dice.choice(FAULTS)
    wrong = [_drawn(dice, shape, fault, rank) for rank in dice.sample(shape.ranks, faults)]
    return Job(shape, *wrong, ahead=dice.choice([1, 3, 64]))


def _drawn(dice: random.Random, shape: Shape, fault: Fault, rank: int) -> Wrong:
    program = shape.iteration(rank)
    places = list(range(len(program)))
    if fault in ("another operation", "left out"):
        places = [place for place in places if program[place].peer is None]
    return Wrong(fault, rank, len(program) + dice.choice(places))
