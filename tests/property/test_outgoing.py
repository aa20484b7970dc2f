"""Whatever happens between puts, outages and deaths: a record arrives at least once or is counted as dropped."""

from __future__ import annotations

import errno
import os
import random
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import pytest
from outgoing_support import SECOND, SMALL, T0, FakeTransport, Sent, die, dropped, files, outbox_at, record

from producers.outgoing.frames import Found, Segment, SegmentReader
from producers.outgoing.outbox import Outbox
from producers.outgoing.records import Record
from schemas.codec import decode
from schemas.ports import Refusal

LANES = ("j|0", "j|1", "j|2", "j|node:n")
TOPICS = ("logs", "stacks")
Name = tuple[int, int]


class Unreliable(FakeTransport):
    """Has room now and then; answers in any order, with any answer, also when the record did arrive."""

    def __init__(self, rng: random.Random, log: list[Record], refuses: float) -> None:
        super().__init__()
        self.rng = rng
        self.delivered = log
        self.refuses = refuses
        self.watch: Callable[[], None] = lambda: None

    def send(
        self,
        topic: str,
        key: bytes,
        value: bytes,
        headers: Mapping[str, str],
        time: int,
        done: Callable[[str | None], None],
    ) -> bool:
        self.watch()
        return (not self.up or self.rng.random() < 0.9) and super().send(topic, key, value, headers, time, done)

    def poll(self) -> None:
        kept: list[Sent] = []
        self.rng.shuffle(self.inside)
        for sent in self.inside:
            chance = self.rng.random()
            if not self.up:
                if chance < 0.1:
                    self._fail(sent, 0.1)
                else:
                    kept.append(sent)
            elif chance < 0.2:
                kept.append(sent)
            elif chance < 0.3:
                self._fail(sent, 0.5)
            elif refusal := self._refusal(sent.record):
                sent.done(refusal)
            else:
                self.delivered.append(sent.record)
                sent.done(None)
        self.inside = kept

    def _refusal(self, sent: Record) -> Refusal | None:
        """Decided by the record alone: it is refused again whenever it is sent again."""
        chance = zlib.crc32(sent.value) % 1_000
        return list(Refusal)[chance % 3] if chance < 1_000 * self.refuses else None

    def _fail(self, sent: Sent, arrived: float) -> None:
        self._arrive(sent, arrived)
        sent.done("timed out")

    def _arrive(self, sent: Sent, chance: float) -> None:
        if self.rng.random() < chance and not self._refusal(sent.record):
            self.delivered.append(sent.record)

    def lose(self) -> None:
        """The process is gone; what was inside may have arrived or not."""
        for sent in self.inside:
            self._arrive(sent, 0.3)
        self.inside = []


class World:
    """One log, one spool folder, and boots of a producer that come and go."""

    def __init__(
        self, root: Path, seed: int, *, strict: bool, full: bool, refuses: float, disk: bool, deaths: bool = True
    ) -> None:
        self.rng = random.Random(seed)
        small = SMALL if full else msgspec.structs.replace(SMALL, spool_bytes=50_000_000)
        self.config = msgspec.structs.replace(small, unspooled_s=0.0 if strict else 2.0, inbox_bytes=16_000)
        self.root = root
        self.refuses = refuses
        self.disk = disk
        self.deaths = deaths
        self.now = T0
        self.boot = 0
        self.seq = 0
        self.log: list[Record] = []
        self.put: dict[Name, int] = {}
        self.excused: set[Name] = set()
        self.lost: Counter[str] = Counter()
        self.lost_events: Counter[str] = Counter()
        self.disk_error = 0
        self.disk_failed = False
        self.start()

    def start(self) -> None:
        self.boot += 1
        self.seq = 0
        self.unpumped: list[Name] = []
        self.transport = Unreliable(self.rng, self.log, self.refuses)
        self.outbox: Outbox = outbox_at(self.root, self.transport, self.config)
        self.transport.watch = self.check

    def check(self) -> None:
        assert self.outbox.memory_bytes <= self.config.inbox_bytes + self.config.flight_bytes
        assert self.outbox.spool_bytes <= self.config.spool_bytes
        assert sum(path.stat().st_size for path in files(self.root)) <= self.config.spool_bytes

    def step(self) -> None:
        kind = self.rng.choices(
            ["put", "pump", "outage", "disk", "die", "cut", "close"],
            [40, 40, 3, 3 * self.disk, self.deaths, self.deaths, self.deaths],
        )[0]
        getattr(self, f"on_{kind}")()
        self.check()

    def on_put(self) -> None:
        for _ in range(self.rng.randrange(1, 8)):
            events = self.rng.randrange(1, 4)
            size = self.rng.choice([0, 10, 500, 500, 2_000, 7_000])
            name = (self.boot, self.seq)
            value = b"%d/%d/" % name + b"v" * size
            self.outbox.put(record(value, self.rng.choice(LANES), self.rng.choice(TOPICS), events))
            self.put[name] = events
            self.unpumped.append(name)
            self.seq += 1

    def on_pump(self) -> None:
        for _ in range(self.rng.randrange(1, 6)):
            self.now += self.rng.choice([SECOND // 20, SECOND // 4, SECOND])
            self.disk_failed = False
            self.outbox.pump(self.now)
        self.unpumped = []

    def on_outage(self) -> None:
        self.transport.up = not self.transport.up

    def on_disk(self) -> None:
        self.disk_error = 0 if self.disk_error else errno.ENOSPC

    def on_die(self) -> None:
        """Only what nobody has pumped yet, and what was allowed to be in memory only, may go with the process."""
        self.excused.update(self.unpumped)
        memory_only = self.outbox._flight.unspooled()
        assert not memory_only or self.config.unspooled_s or self.disk_failed
        self.excused.update(found for held in memory_only if (found := name_of(held.record)))
        self.transport.lose()
        die(self.outbox._spool)
        self._count()
        self.start()

    def on_cut(self) -> None:
        """As on_die, and the last file ends at some byte."""
        last = files(self.root)[-1:]
        for path in last:
            size = path.stat().st_size
            reader, cut = SegmentReader(Segment(0, path, size)), self.rng.randrange(size + 1)
            while (found := reader.next()) is not None:
                if isinstance(found, Found) and reader.at > cut and (name := name_of(found.record)):
                    self.excused.add(name)
            reader.close()
            os.truncate(path, cut)
        self.on_die()

    def on_close(self) -> None:
        self.outbox.close(self.now)
        self.transport.lose()
        self._count()
        self.start()

    def finish(self) -> None:
        self.transport.up, self.disk_error = True, 0
        for _ in range(20_000):
            self.now += SECOND // 4
            self.outbox.pump(self.now)
            if self.outbox.idle:
                break
        assert self.outbox.idle and self.outbox.memory_bytes == 0
        self.outbox.close(self.now)
        assert files(self.root) == []
        self._count()

    def _count(self) -> None:
        for reason, (records, events) in dropped(self.outbox.counters).items():
            self.lost[reason] += records
            self.lost_events[reason] += events

    def missing(self) -> set[Name]:
        return set(self.put) - {name for sent in self.log if (name := name_of(sent))}


def name_of(sent: Record) -> Name | None:
    if sent.topic == "dead-letters":
        return None
    boot, seq, _ = sent.value.split(b"/", 2)
    return int(boot), int(seq)


def firsts(log: list[Record]) -> dict[tuple[str, bytes], list[Name]]:
    """Names by lane in the order in which each arrived first."""
    seen: set[Name] = set()
    found: dict[tuple[str, bytes], list[Name]] = {}
    for sent in log:
        name = name_of(sent)
        if name is not None and name not in seen:
            seen.add(name)
            found.setdefault((sent.topic, sent.key), []).append(name)
    return found


def run(world: World, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pwrite = os.pwrite

    def writing(file: int, data: bytes, at: int) -> int:
        if world.disk_error and world.rng.random() < 0.6:
            world.disk_failed = True
            raise OSError(world.disk_error, os.strerror(world.disk_error))
        return pwrite(file, data, at)

    monkeypatch.setattr(os, "pwrite", writing)
    for _ in range(steps):
        world.step()
    world.finish()
    for lane, names in firsts(world.log).items():
        # A boot that could not open its spool at first finds what others left only later.
        assert names == sorted(names) or world.disk, lane
        for boot in range(1, world.boot + 1):
            mine = [name for name in names if name[0] == boot]
            assert mine == sorted(mine), lane
    missing = world.missing() - world.excused
    assert len(missing) <= sum(world.lost.values())
    assert sum(world.put[name] for name in missing) <= sum(world.lost_events.values()) + 2 * world.lost["damaged"]


@pytest.mark.parametrize("seed", range(30))
def test_every_record_arrives_or_is_counted(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, seed, strict=bool(seed % 2), full=True, refuses=0.03, disk=False)
    run(world, 400, monkeypatch)
    assert world.lost["spool failed"] == 0


@pytest.mark.parametrize("seed", range(20))
def test_in_one_boot_every_record_is_counted_once(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, seed, strict=bool(seed % 2), full=True, refuses=0.03, disk=bool(seed % 3), deaths=False)
    run(world, 400, monkeypatch)
    counted = world.outbox.counters
    assert counted.put_records == counted.sent_records + sum(counted.dropped_records.values())
    assert counted.put_events == counted.sent_events + sum(counted.dropped_events.values())
    letters = {sent.key for sent in world.log if not name_of(sent)}
    assert len(world.put) == counted.put_records - counted.letters and len(letters) <= counted.letters


@pytest.mark.parametrize("seed", range(30))
def test_with_room_for_all_nothing_is_dropped(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, seed, strict=bool(seed % 2), full=False, refuses=0.0, disk=False)
    run(world, 300, monkeypatch)
    assert set(world.lost) <= {"inbox full", "damaged"}
    unexplained = world.missing() - world.excused
    assert len(unexplained) <= world.lost["inbox full"]
    # What is counted and explained by nothing is at most one torn frame for each file that was cut.
    assert world.lost["damaged"] <= world.boot


@pytest.mark.parametrize("seed", range(20))
def test_a_disk_that_fails_now_and_then_costs_only_what_is_counted(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(World(tmp_path, seed, strict=bool(seed % 2), full=True, refuses=0.03, disk=True), 400, monkeypatch)


def test_the_interleavings_reach_what_they_are_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lost: Counter[str] = Counter()
    refused = duplicates = boots = 0
    for seed in range(4):
        world = World(tmp_path / str(seed), seed, strict=bool(seed % 2), full=True, refuses=0.03, disk=True)
        run(world, 400, monkeypatch)
        lost += world.lost
        names = Counter(name for sent in world.log if (name := name_of(sent)))
        duplicates += sum(count - 1 for count in names.values())
        refused += sum(decode("dead_letter", sent.value).stage == "producer" for sent in world.log if not name_of(sent))
        boots += world.boot
    assert {"inbox full", "spool full", "spool failed", "refused", "damaged"} <= set(lost)
    assert refused > 10 and duplicates > 10 and boots > 10
