"""The one driver: reads a log, runs both stages over it, appends what they return.

Order at a window boundary: emissions appended, snapshot saved, and only then is anything read on from behind it, so
that a crash at any point repeats at most what folds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from schemas.codec import encode, headers, kind_of
from schemas.ports import Entry, Log
from schemas.results import Snapshot
from streams.config import StreamConfig
from streams.snapshots import SnapshotError, SnapshotStore
from streams.stages.job import JobStage
from streams.stages.outputs import Output
from streams.stages.rank import RankStage

READ_LIMIT = 256


class Stage(Protocol):
    """What the driver needs of a stage."""

    name: str
    partition: int
    inputs: tuple[tuple[str, int], ...]

    def next_offset(self, topic: str, partition: int) -> int: ...  # noqa: D102
    def behind(self, topic: str) -> int: ...  # noqa: D102
    def on_entry(self, topic: str, partition: int, entry: Entry) -> list[Output]: ...  # noqa: D102
    def close(self) -> list[Output] | None: ...  # noqa: D102
    def written(self) -> Snapshot: ...  # noqa: D102
    def restore(self, raw: msgspec.Raw) -> None: ...  # noqa: D102


Choice = Callable[[Sequence[tuple[Stage, str, int]]], tuple[int, int]]
"""Given what has entries to read, which to read from and how many at most."""


def furthest_behind(ready: Sequence[tuple[Stage, str, int]]) -> tuple[int, int]:
    """Read where time is furthest behind: so no topic runs ahead, and open windows stay few."""
    at = min(range(len(ready)), key=lambda index: ready[index][0].behind(ready[index][1]))
    return at, READ_LIMIT


class Driver:
    """Drives both stages over ``log``. With a store it begins from its snapshots and writes new ones.

    ``choose`` decides whose turn it is; results do not depend on it. Raises SnapshotError for a snapshot that cannot be
    taken up, and ValueError for settings that no detector knows.
    """

    def __init__(
        self,
        log: Log,
        config: StreamConfig,
        *,
        store: SnapshotStore | None = None,
        choose: Choice = furthest_behind,
    ) -> None:
        self._log = log
        self._config = config
        self._store = store
        self._choose = choose
        raw, windows = log.partitions("logs"), log.partitions("windows")
        self.stages: list[Stage] = [
            *(RankStage(number, raw, windows, config) for number in range(raw)),
            *(JobStage(number, raw, config) for number in range(windows)),
        ]
        for stage in self.stages:
            self._begin(stage)

    def _begin(self, stage: Stage) -> None:
        snapshot = self._store.load(stage.name, stage.partition) if self._store else None
        if snapshot is None:
            return
        if snapshot.config != self._config.hash:
            raise SnapshotError(
                f"the snapshot of {stage.name} {stage.partition} was written under another configuration"
            )
        try:
            stage.restore(snapshot.state)
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise SnapshotError(f"the snapshot of {stage.name} {stage.partition} cannot be read: {error}") from None

    def run(self) -> None:
        """Read on until there is nothing left to read and no window left to close."""
        while self.step():
            pass

    def step(self) -> bool:
        """Read once from one partition; false where nothing is left."""
        ready = [
            (stage, topic, partition)
            for stage in self.stages
            for topic, partition in stage.inputs
            if stage.next_offset(topic, partition) < self._log.end(topic, partition)
        ]
        if not ready:
            return self._close_rest()
        at, limit = self._choose(ready)
        stage, topic, partition = ready[at]
        for entry in self._log.read(topic, partition, stage.next_offset(topic, partition), limit):
            self._emit(stage.on_entry(topic, partition, entry))
        self._close_all(stage)
        return True

    def _close_rest(self) -> bool:
        closed = [self._close_all(stage) for stage in self.stages]
        return any(closed)

    def _close_all(self, stage: Stage) -> bool:
        closed = False
        while (outputs := stage.close()) is not None:
            self._emit(outputs)
            if self._store is not None:
                self._store.save(stage.written())
            closed = True
        return closed

    def _emit(self, outputs: list[Output]) -> None:
        for output in outputs:
            self._log.append(
                output.topic,
                output.key.encode(),
                encode(output.record),
                headers(kind_of(output.record)),
                output.time,
                output.partition,
            )
