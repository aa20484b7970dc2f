"""Killed between any two steps, a run that begins again loses nothing and adds nothing."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from streams_support import (
    CONFIG,
    JOBS,
    RESULTS,
    SHARED,
    Raw,
    Script,
    agent,
    any_of,
    at,
    folded,
    hanging,
    log_of,
    raw_of,
    recording_of,
    records,
    restarting,
    run,
    written_log,
)

from producers.recording import Recording, read_recording
from rankwatch.demo import bundled_recording
from schemas.codec import decode, encode
from schemas.events import Topology
from schemas.identity import Identity
from schemas.ports import Entry
from schemas.results import Snapshot
from streams.config import StreamConfig
from streams.driver import Driver
from streams.log.memory import MemoryLog
from streams.snapshots import FileSnapshots, MemorySnapshots, SnapshotStore

TOPICS = (*RESULTS, "stamped.logs", "stamped.metrics", "stamped.stacks", "stamped.collectives", "notices")
SMALL: dict[str, Any] = {
    "hang": lambda: hanging("hang", 3).recording,
    "spanning": lambda: hanging("span", 3, flush_s=3).recording,
    "ragged": lambda: hanging("ragged", 3, flush_s=7).recording,
    "restart and hang": lambda: recording_of(restarting("two", 3), hanging("one", 2)),
}


class KilledError(Exception):
    """The process is gone."""


class Fuse:
    """Counts the operations that outlive a process and burns before number ``at``."""

    def __init__(self, at: int | None) -> None:
        self.at = at
        self.count = 0

    def __call__(self) -> None:
        if self.count == self.at:
            raise KilledError
        self.count += 1


class Mortal:
    """A log and a store whose user dies before one of its appends and saves."""

    def __init__(self, log: Any, store: SnapshotStore, at: int | None) -> None:
        self._log, self._store, self.fuse = log, store, Fuse(at)

    def partitions(self, topic: str) -> int:
        return int(self._log.partitions(topic))

    def append(
        self, topic: str, key: bytes, value: bytes, headers: Mapping[str, str], time: int, partition: int | None = None
    ) -> tuple[int, int]:
        self.fuse()
        found: tuple[int, int] = self._log.append(topic, key, value, headers, time, partition)
        return found

    def flush(self) -> None:
        self.fuse()

    def read(self, topic: str, partition: int, offset: int, limit: int) -> Sequence[Entry]:
        found: Sequence[Entry] = self._log.read(topic, partition, offset, limit)
        return found

    def end(self, topic: str, partition: int) -> int:
        return int(self._log.end(topic, partition))

    def save(self, snapshot: Snapshot) -> None:
        self.fuse()
        self._store.save(snapshot)

    def load(self, stage: str, partition: int) -> Snapshot | None:
        return self._store.load(stage, partition)


def killed_at(log: Any, store: SnapshotStore, cut: int | None, config: StreamConfig = CONFIG, **more: Any) -> int:
    """Run until operation ``cut``; returns how many operations there were."""
    mortal = Mortal(log, store, cut)
    try:
        Driver(mortal, config, store=mortal, **more).run()
    except KilledError:
        pass
    else:
        assert cut is None or mortal.fuse.count <= cut, "nobody died"
    return mortal.fuse.count


def whole(raw: Raw) -> tuple[int, dict[str, list[bytes]]]:
    """How many operations an uninterrupted run has, and what it says."""
    log = log_of(raw)
    count = killed_at(log, MemorySnapshots(), None)
    return count, folded(log, TOPICS)


@pytest.mark.parametrize("job", JOBS)
def test_a_store_changes_nothing(job: str) -> None:
    without, with_store = written_log(JOBS[job]()), written_log(JOBS[job]())
    run(without)
    run(with_store, store=MemorySnapshots())
    assert folded(with_store, TOPICS) == folded(without, TOPICS)


@pytest.mark.parametrize("job", SMALL)
def test_a_kill_before_any_append_or_save_changes_no_result(job: str) -> None:
    """After an operation is before the next one: nothing else outlives the process."""
    raw = raw_of(written_log(SMALL[job]()))
    count, expected = whole(raw)
    assert expected["incidents"]
    for cut in range(0, count, 1 + count // 250):
        log, store = log_of(raw), MemorySnapshots()
        killed_at(log, store, cut)
        run(log, store=store)
        assert folded(log, TOPICS) == expected, f"killed before operation {cut} of {count}"


@pytest.mark.parametrize("job", SMALL)
def test_kills_while_stages_stand_at_unlike_places_change_no_result(job: str) -> None:
    raw = raw_of(written_log(SMALL[job]()))
    count, expected = whole(raw)
    for seed in range(40):
        log, store = log_of(raw), MemorySnapshots()
        killed_at(log, store, random.Random(seed).randrange(count), choose=any_of(seed, most=20))
        run(log, store=store, choose=any_of(seed + 1000, most=20))
        assert folded(log, TOPICS) == expected, seed


@pytest.mark.parametrize("job", SMALL)
def test_a_second_kill_during_recovery_changes_no_result(job: str) -> None:
    raw = raw_of(written_log(SMALL[job]()))
    count, expected = whole(raw)
    for seed in range(40):
        chance = random.Random(seed)
        log, store = log_of(raw), MemorySnapshots()
        for _ in range(3):
            killed_at(log, store, chance.randrange(count // 2))
        run(log, store=store)
        assert folded(log, TOPICS) == expected, seed


def test_snapshots_in_files_survive_a_kill_at_any_point(tmp_path: Path) -> None:
    raw = raw_of(written_log(SMALL["restart and hang"]()))
    count, expected = whole(raw)
    for seed in range(20):
        store = FileSnapshots(tmp_path / str(seed))
        log = log_of(raw)
        killed_at(log, store, random.Random(seed).randrange(count))
        run(log, store=FileSnapshots(tmp_path / str(seed)))
        assert folded(log, TOPICS) == expected, seed


class History:
    """Keeps every snapshot; gives back the one that is asked for."""

    def __init__(self) -> None:
        self.saved: dict[tuple[str, int], list[bytes]] = {}
        self.given: dict[tuple[str, int], bytes] = {}

    def save(self, snapshot: Snapshot) -> None:
        self.saved.setdefault((snapshot.stage, snapshot.partition), []).append(encode(snapshot))

    def load(self, stage: str, partition: int) -> Snapshot | None:
        found = self.given.get((stage, partition))
        return None if found is None else decode("snapshot", found)


@pytest.mark.parametrize("job", [*SMALL, "slow"])
def test_any_old_snapshots_with_full_redelivery_change_no_result(job: str) -> None:
    """Each stage and partition begins from a snapshot of its own age, or from nothing."""
    raw = raw_of(written_log({**JOBS, **SMALL}[job]()))
    _, expected = whole(raw)
    history = History()
    first = log_of(raw)
    run(first, store=history)
    assert sum(map(len, history.saved.values())) > 12
    for seed in range(24):
        chance = random.Random(seed)
        log, store = log_of(raw_of(first)), History()
        _copy_derived(first, log)
        for part, saved in sorted(history.saved.items()):
            age = 0 if seed == 0 else chance.randrange(-1, len(saved))
            if age >= 0:
                store.given[part] = saved[age]
        run(log, store=store, choose=any_of(seed, most=40))
        assert folded(log, TOPICS) == expected, seed


def _copy_derived(source: MemoryLog, target: MemoryLog) -> None:
    for topic in (*TOPICS, "stamped.profiles", "stamped.alerts", "dead-letters"):
        for number in range(source.partitions(topic)):
            for entry in source.read(topic, number, 0, source.end(topic, number)):
                target.append(topic, entry.key, entry.value, entry.headers, entry.time, number)


def test_what_was_sent_again_after_a_kill_is_the_same_bytes() -> None:
    raw = raw_of(written_log(SMALL["hang"]()))
    count, _ = whole(raw)
    log, store = log_of(raw), MemorySnapshots()
    killed_at(log, store, count - 3)
    run(log, store=store)
    for topic, kind in (("windows", "window"), ("anomalies", "anomaly"), ("templates", "template")):
        bodies: dict[Any, set[bytes]] = {}
        for one in records(log, topic):
            name = (one.id, len(one.signatures)) if kind == "template" else one.id
            bodies.setdefault(name, set()).add(encode(one))
        assert all(len(found) == 1 for found in bodies.values())
    revisions: dict[tuple[str, int], set[bytes]] = {}
    for one in records(log, "incidents"):
        revisions.setdefault((one.id, one.revision), set()).add(encode(one))
    assert all(len(found) == 1 for found in revisions.values())


def test_an_exit_that_three_ranks_could_own_is_judged_alike_after_a_kill() -> None:
    """In containers every trainer may have the same process id; who owns it must not follow from a dict's order."""
    script = Script("pods")
    for rank, second in ((3, 0.2), (1, 11.2), (2, 11.2)):
        who = Identity(job="pods", node="node00", rank=rank)
        script.send(who, Topology(time=at(second), pid=7, world_size=4))
        for step in range(int(second) + 1, 31):
            script.log(who, step + 0.5, f"step {step} timers (ms): forward_compute 300.0", step)
    script.log(agent("pods", "node00"), 31, "failed (exitcode: -9) local_rank: 0 (pid: 7) of binary: python")
    raw = raw_of(written_log(script.recording, 1))
    count, expected = whole(raw)
    assert expected["windows"] and not expected["anomalies"], "nobody is named where three could be"
    for cut in range(count):
        log, store = log_of(raw), MemorySnapshots()
        killed_at(log, store, cut)
        run(log, store=store)
        assert folded(log, TOPICS) == expected, f"killed before operation {cut} of {count}"


def _recovers_from_seeded_kills(recording: Recording, kills: int) -> None:
    raw = raw_of(written_log(recording))
    count, expected = whole(raw)
    assert expected["incidents"]
    for seed in range(kills):
        log, store = log_of(raw), MemorySnapshots()
        killed_at(log, store, random.Random(seed).randrange(count))
        run(log, store=store)
        assert folded(log, TOPICS) == expected, seed


def test_the_bundled_recording_survives_kills() -> None:
    with bundled_recording() as folder:
        _recovers_from_seeded_kills(read_recording(folder), 6)


@pytest.mark.parametrize("name", ["restart", "pp-straggler"])
def test_a_recorded_job_survives_kills(name: str) -> None:
    if not (SHARED / name).is_dir():
        pytest.skip("the recorded jobs are not there")
    _recovers_from_seeded_kills(read_recording(SHARED / name), 4)
