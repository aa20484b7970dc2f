"""The stages of the partitions that one worker owns: entries in, records and states out, offsets to commit.

Knows neither Faust nor clocks; whoever calls it does so from one thread at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import Literal

import msgspec

from schemas.codec import encode, headers
from schemas.events import Tick
from schemas.ports import Entry, Log
from schemas.topics import RAW_TOPICS
from streams.config import StreamConfig
from streams.library.known import Known
from streams.runner import Place, Runner, Stage
from streams.snapshots import SnapshotError, SnapshotStore
from streams.stages.fleet import FleetStage
from streams.stages.job import JobStage
from streams.stages.rank import RankStage

StageName = Literal["rank", "job", "fleet"]

INPUTS: dict[StageName, tuple[str, ...]] = {"rank": RAW_TOPICS, "job": ("windows",), "fleet": ("fleet",)}
"""The topics that a stage reads."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """``held_bytes``: how much open windows of all partitions may hold, as entries lie in the log, each its share.

    Beyond it those topics of the partition wait that are ahead; where there is but one, windows whose turn comes last
    are left in it and read again.

    ``poison``: more records in a row that cannot be read than these stop the worker; 0 for no limit.
    """

    held_bytes: int = 256 * 1024 * 1024
    poison: int = 100


class LiveStages:
    """The stages of one kind for the partition numbers that are owned now.

    ``next_offsets`` may be asked by another thread than the one that works.
    Raises SnapshotError, LogError and PoisonError: whoever runs it ends the process then, and nothing is lost.
    """

    def __init__(
        self,
        stage: StageName,
        log: Log,
        store: SnapshotStore,
        config: StreamConfig,
        limits: Limits | None = None,
        known: Known | None = None,
    ) -> None:
        self.stage: StageName = stage
        self.runners: dict[int, Runner] = {}
        self._log = log
        self._store = store
        self._config = config
        self._known = known
        self._limits = limits or Limits()
        self._raw, self._windows = log.partitions("logs"), log.partitions("windows")
        self._ahead: dict[int, set[Place]] = {}

    def own(self, numbers: Collection[int]) -> dict[Place, int]:
        """Own these partition numbers from now on, and no others.

        Returns where to read on for those that are new: their snapshots' offsets, which are the only truth. Raises
        SnapshotError for one that reaches beyond its topic's end: another topic than the one it was written for.
        """
        for number in set(self.runners) - set(numbers):
            del self.runners[number]
            self._ahead.pop(number, None)
        begin: dict[Place, int] = {}
        for number in sorted(set(numbers) - set(self.runners)):
            stage = self._new_stage(number)
            self.runners[number] = Runner(
                stage, self._log, self._config, store=self._store, most_poison=self._limits.poison
            )
            begin |= {place: stage.next_offset(*place) for place in stage.inputs}
            self._check_ends(stage)
        return begin

    def _check_ends(self, stage: Stage) -> None:
        """What comes into a topic that was made anew has old offsets: it would be taken for what was read already."""
        for topic, number in stage.inputs:
            at = stage.next_offset(topic, number)
            if at and at > (end := self._log.end(topic, number)):
                raise SnapshotError(
                    f"the snapshot of {stage.name} {number} has read topic {topic} up to offset {at}, but it ends at "
                    f"{end}: it was made anew; `rankwatch topics forget` lets the stages begin anew, too"
                )

    def _new_stage(self, number: int) -> Stage:
        if self.stage == "rank":
            return RankStage(number, self._raw, self._windows, self._config)
        if self.stage == "fleet":
            return FleetStage(number, self._windows, self._config)
        return JobStage(number, self._raw, self._config, partial(self._log.read, "windows", number), self._known)

    def take(self, read: Iterable[tuple[Place, Sequence[Entry]]]) -> dict[Place, int]:
        """Take in what was read, close what can be closed; returns the offsets up to which everything is safe."""
        touched = set()
        for (topic, number), entries in read:
            runner = self.runners.get(number)
            if runner is not None:
                runner.take(topic, number, entries)
                touched.add(number)
        safe: dict[Place, int] = {}
        # What all have to say is on its way before anybody waits for it to be safe: others wait to hear of every one.
        closed = [number for number in sorted(touched) if self.runners[number].close_all()]
        for number in closed:
            offsets = self.runners[number].save()
            for name, offset in (offsets or {}).items():
                topic, _, partition = name.rpartition("|")
                safe[topic, int(partition)] = offset
        return safe

    def tick(self, now: int) -> None:
        """Append the time (ns) to every raw topic's partitions that are owned."""
        value, described = encode(Tick(time=now)), headers("tick")
        for number in sorted(self.runners):
            for topic in RAW_TOPICS:
                self._log.append(topic, b"", value, described, now, number)

    def ahead(self) -> set[Place]:
        """Places that should wait: of stages that hold too much, whatever is ahead of what is furthest behind.

        They go on once half of it is gone, or once the others have caught up: who is furthest behind never waits.
        """
        share = self._limits.held_bytes // max(len(self.runners), 1)
        for number, runner in self.runners.items():
            runner.stage.bound(share)
            held = runner.stage.standing.held_bytes
            if held > share:
                self._ahead[number] = _ahead(runner.stage)
            elif held < share // 2:
                self._ahead.pop(number, None)
            elif number in self._ahead:
                # Others may have read all that they have: then only what waits can close a window.
                self._ahead[number] &= _ahead(runner.stage)
        return {place for places in self._ahead.values() for place in places}

    def next_offsets(self) -> dict[Place, int]:
        """How far each place was read."""
        return {
            place: runner.stage.next_offset(*place)
            for runner in list(self.runners.values())
            for place in runner.stage.inputs
        }


def _ahead(stage: Stage) -> set[Place]:
    times = {place: stage.behind(place[0]) for place in stage.inputs}
    low = min(times.values())
    return {place for place, time in times.items() if time > low}
