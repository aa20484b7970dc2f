"""A consumer group without a broker: workers share the partitions of a log in memory, as Kafka would have it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import msgspec
from streams_support import CONFIG, RESULTS

from schemas.ports import Entry
from schemas.topics import STAMPED
from streams.live import INPUTS, Limits, LiveStages, StageName
from streams.log.memory import MemoryLog
from streams.runner import Place
from streams.snapshots import MemorySnapshots

TOPICS = (*RESULTS, *STAMPED.values(), "notices", "dead-letters")
"""Everything that the stages say but progress."""


class Manners(msgspec.Struct, frozen=True, kw_only=True):
    """How the transport behaves: how many entries it brings at once, and how often it does something odd."""

    most: int = 40
    again: float = 0.0
    skip: float = 0.0


GOOD = Manners()
ODD = Manners(again=0.2, skip=0.2)


class Group:
    """The workers of one stage. What each of them owns changes by ``share``, where it reads on is what is committed."""

    def __init__(self, stage: StageName, log: MemoryLog, store: MemorySnapshots, workers: int, seed: int) -> None:
        self.stage: StageName = stage
        self.log = log
        self.store = store
        self.chance = random.Random(seed)
        self.workers = [LiveStages(stage, log, store, CONFIG, Limits(poison=0)) for _ in range(workers)]
        self.committed: dict[Place, int] = {}
        self.positions: dict[Place, int] = {}

    def share(self) -> None:
        """Share the partitions out anew, by chance; some worker may get none."""
        owners = {number: self.chance.choice(self.workers) for number in range(self.log.partitions("logs"))}
        for worker in self.workers:
            self.committed |= worker.own({number for number, owner in owners.items() if owner is worker})
        self.positions = {
            (topic, number): self.committed.get((topic, number), 0) for topic in INPUTS[self.stage] for number in owners
        }

    def replace(self) -> None:
        """One worker dies, another comes in its place."""
        at = self.chance.randrange(len(self.workers))
        self.workers[at] = LiveStages(self.stage, self.log, self.store, CONFIG, Limits(poison=0))
        self.share()

    def step(self, manners: Manners) -> bool:
        """One worker takes in what some of its places brought; false where no place has anything left."""
        ready = [place for place, at in self.positions.items() if at < self.log.end(*place)]
        if not ready:
            return False
        number = self.chance.choice(ready)[1]
        owner = next(worker for worker in self.workers if number in worker.runners)
        mine = [place for place in ready if place[1] in owner.runners]
        chosen = self.chance.sample(mine, self.chance.randint(1, len(mine)))
        safe = owner.take([(place, self._brought(place, manners)) for place in chosen])
        self._check(safe)
        self.committed |= safe
        return True

    def _brought(self, place: Place, manners: Manners) -> Sequence[Entry]:
        at, end = self.positions[place], self.log.end(*place)
        if self.chance.random() < manners.again:
            at = self.chance.randint(0, at)
        elif self.chance.random() < manners.skip:
            at = self.chance.randint(at, end - 1)
        entries = self.log.read(*place, at, self.chance.randint(1, manners.most))
        self.positions[place] = max(self.positions[place], at + len(entries))
        return entries

    def _check(self, safe: dict[Place, int]) -> None:
        """Nothing is safe that is not behind what a snapshot holds."""
        for (topic, number), at in safe.items():
            snapshot = self.store.load(self.stage, number)
            assert snapshot is not None and at == snapshot.offsets[f"{topic}|{number}"]
            assert at <= self.log.end(topic, number)


def run_groups(
    log: Any, *, workers: int, seed: int, manners: Manners = GOOD, moves: float = 0.0, deaths: float = 0.0
) -> None:
    """All stages' groups over the log until nothing is left; ``moves`` and ``deaths`` are chances, step by step."""
    store, chance = MemorySnapshots(), random.Random(seed)
    groups = [Group(stage, log, store, workers, seed + at) for at, stage in enumerate(INPUTS, 1)]
    for group in groups:
        group.share()
    while sum(group.step(manners) for group in groups):
        for group in groups:
            if chance.random() < moves:
                group.share()
            if chance.random() < deaths:
                group.replace()
