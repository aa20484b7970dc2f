"""What the log shows of the pipeline itself is the same however it is cut into partitions, read, or taken up again."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from streams_support import (
    CONFIG,
    SECOND,
    Script,
    any_of,
    at,
    hanging,
    log_of,
    node_of,
    raw_of,
    recording_of,
    records,
    run,
    steady,
    tick,
    worker,
    written_log,
)

from producers.observations import Observation
from producers.recording import Recording
from schemas.meta import WATCHDOG, MetaAlert
from streams.driver import Driver
from streams.log.memory import MemoryLog
from streams.meta import BEAT_NS
from streams.snapshots import MemorySnapshots

RANKS, SECONDS = 6, 180
SILENT, SKEWED = node_of(4), node_of(0)


def ailing() -> Script:
    """One node's producer is silent for a minute, another's clock is two minutes ahead, a rank invents words."""
    script = steady("pipeline", RANKS, SECONDS)
    script.observations = [_changed(one) for one in script.observations if not _silent(one)]
    for second in range(60, 110):
        for number in range(200):
            word = "".join(chr(97 + (second * 200 + number) // 26**place % 26) for place in range(5))
            script.log(worker("pipeline", 2), second + number / 300, f"{word} {word}ed the {word}ing of {word}s")
    return script


def recording() -> Recording:
    """That job, and one of which nothing at all is heard any more while it hangs."""
    return recording_of(ailing(), hanging("dark"))


def _silent(one: Observation) -> bool:
    return one.identity.node == SILENT and at(40) <= one.arrival < at(100)


def _changed(one: Observation) -> Observation:
    if one.identity.node != SKEWED or not at(30) <= one.arrival < at(90):
        return one
    return msgspec.structs.replace(one, event=msgspec.structs.replace(one.event, time=one.event.time + 120 * SECOND))


def told(log: MemoryLog) -> list[MetaAlert]:
    """What is said of the pipeline, beats left out, each once."""
    found = {(one.id, one.status): one for one in records(log, "meta") if one.name != WATCHDOG}
    return sorted(found.values(), key=lambda one: (one.time, one.name, one.status))


@pytest.fixture(scope="module")
def expected() -> list[MetaAlert]:
    log = written_log(recording(), 1, CONFIG_FEW)
    run(log, CONFIG_FEW)
    return told(log)


CONFIG_FEW = msgspec.structs.replace(CONFIG, signatures_per_window=200)


def test_each_trouble_is_said_once_and_so_is_its_end(expected: list[MetaAlert]) -> None:
    said = [(one.name, one.subject, one.status) for one in expected]
    assert said == [
        ("skew", f"pipeline|{SKEWED}", "firing"),
        ("producer_silent", f"pipeline|{SILENT}", "firing"),
        ("unparsed", "pipeline", "firing"),
        ("job_silent", "dark", "firing"),
        ("producer_silent", f"pipeline|{SILENT}", "resolved"),
        ("skew", f"pipeline|{SKEWED}", "resolved"),
        ("unparsed", "pipeline", "resolved"),
    ]


@pytest.mark.parametrize("partitions", [2, 5])
def test_neither_partitions_nor_the_order_of_reading_change_it(expected: list[MetaAlert], partitions: int) -> None:
    raw = raw_of(written_log(recording(), partitions, CONFIG_FEW))
    for seed in range(2):
        log = log_of(raw)
        run(log, CONFIG_FEW, choose=any_of(seed, most=40))
        assert told(log) == expected


def test_a_stage_that_begins_again_says_the_same(expected: list[MetaAlert]) -> None:
    log, store = written_log(recording(), 2, CONFIG_FEW), MemorySnapshots()
    for _ in range(12):
        driver = Driver(log, CONFIG_FEW, store=store)
        for _ in range(40):
            driver.step()
    run(log, CONFIG_FEW, store=store)
    assert told(log) == expected


def test_every_partition_beats_with_and_without_jobs() -> None:
    for busy in (steady("one", 2, 200).recording, None):
        log = written_log(busy, 3) if busy else idle(3, 260)
        driver = Driver(log, CONFIG)
        driver.run()
        beats: dict[str, list[int]] = {}
        for one in records(log, "meta"):
            beats.setdefault(one.subject, []).append(one.time)
        assert sorted(beats) == ["partition 0", "partition 1", "partition 2"]
        for times in beats.values():
            assert times == sorted(set(times)) and all(time % BEAT_NS == 0 for time in times)


def test_a_partition_that_does_not_get_on_silences_all() -> None:
    log = idle(2, 130, behind={1: 70})
    run(log)
    last: dict[str, int] = {}
    for one in records(log, "meta"):
        last[one.subject] = max(last.get(one.subject, 0), one.time)
    assert last == dict.fromkeys(("partition 0", "partition 1"), at(70) // BEAT_NS * BEAT_NS)


def idle(partitions: int, seconds: int, behind: dict[int, int] | None = None) -> Any:
    """A log in which time passes and nothing happens; some partitions' time comes to an end before."""
    log = MemoryLog(partitions)
    for second in range(0, seconds, 5):
        alive = [number for number in range(partitions) if second < (behind or {}).get(number, seconds)]
        tick(log, second, partitions=alive)
    return log
