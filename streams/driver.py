"""Drives all stages over a log by itself, without a cluster: reads where time is furthest behind, until the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from schemas.ports import Log
from streams.config import StreamConfig
from streams.library.known import Known
from streams.runner import READ_LIMIT, Runner, Stage
from streams.snapshots import SnapshotStore
from streams.stages.fleet import FleetStage
from streams.stages.job import JobStage
from streams.stages.rank import RankStage

Choice = Callable[[Sequence[tuple[Stage, str, int]]], tuple[int, int]]
"""Given what has entries to read, which to read from and how many at most."""


def furthest_behind(ready: Sequence[tuple[Stage, str, int]]) -> tuple[int, int]:
    """Read where time is furthest behind: so no topic runs ahead, and open windows stay few."""
    at = min(range(len(ready)), key=lambda index: ready[index][0].behind(ready[index][1]))
    return at, READ_LIMIT


class Driver:
    """Drives all stages over ``log``. With a store it begins from its snapshots and writes new ones.

    ``choose`` decides whose turn it is; results do not depend on it. ``known`` is what healthy jobs print. Raises
    SnapshotError for a snapshot that cannot be taken up, and ValueError for settings that no detector knows.
    """

    def __init__(
        self,
        log: Log,
        config: StreamConfig,
        *,
        store: SnapshotStore | None = None,
        choose: Choice = furthest_behind,
        known: Known | None = None,
    ) -> None:
        self._log = log
        self._choose = choose
        raw, windows = log.partitions("logs"), log.partitions("windows")
        self.stages: list[Stage] = [
            *(RankStage(number, raw, windows, config) for number in range(raw)),
            *(JobStage(number, raw, config, known=known) for number in range(windows)),
            *(FleetStage(number, windows, config) for number in range(log.partitions("fleet"))),
        ]
        self._runners = {id(stage): Runner(stage, log, config, store=store) for stage in self.stages}

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
            closed = [runner.close() for runner in self._runners.values()]
            return any(closed)
        at, limit = self._choose(ready)
        stage, topic, partition = ready[at]
        runner = self._runners[id(stage)]
        runner.take(topic, partition, self._log.read(topic, partition, stage.next_offset(topic, partition), limit))
        runner.close()
        return True
