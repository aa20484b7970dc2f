"""What the stages carry stops growing, whatever goes on and on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from streams_support import (
    WAITING,
    Script,
    agent,
    at,
    node_of,
    pid_of,
    put,
    tick,
    worker,
)

from producers.batches import batch
from schemas.codec import encode
from schemas.events import Heartbeat, Log, Metric, Stack, Topology
from streams.config import StreamConfig
from streams.driver import Driver
from streams.log.memory import MemoryLog
from streams.snapshots import MemorySnapshots

RANKS = 2
EVERY = 10
"""Snapshots are weighed each so many windows."""


def step(script: Script, second: float, iteration: int, attempt: str = "0") -> None:
    for rank in range(RANKS):
        busy = 300 + (iteration * 7 + rank * 3) % 11
        text = f"step {iteration} timers (ms): forward_compute {busy}.0 data_load 20.0"
        script.log(worker(script.job, rank, attempt), second + rank / 1000, text, iteration)


def alive(script: Script, second: float, attempt: str = "0") -> None:
    for rank in range(RANKS):
        value = Metric(time=at(second), name="cpu_percent", value=90.0 + rank, pid=pid_of(rank))
        script.send(worker(script.job, rank, attempt), value)
    pids = [pid_of(rank) for rank in range(RANKS)]
    script.send(agent(script.job, node_of(0)), Heartbeat(time=at(second), pids=pids))


def steady(script: Script, window: int) -> None:
    for number in range(3):
        step(script, 10 * window + 3 * number + 1, 3 * window + number)
    alive(script, 10 * window + 5)


def new_signatures(script: Script, window: int) -> None:
    steady(script, window)
    letters = "".join("abcdefghij"[int(digit)] for digit in str(window))
    for rank in range(RANKS):
        text = f"{letters} event of {letters} kind {letters}"
        script.log(worker(script.job, rank), 10 * window + 6, text)


def new_jobs(script: Script, window: int) -> None:
    script.job = f"job-{window:06d}"
    steady(script, window)


def new_attempts(script: Script, window: int) -> None:
    """An attempt a minute: it starts, trains, fails and is restarted."""
    attempt, number = str(1000 + window // 6), window % 6
    if number == 0:
        for rank in range(RANKS):
            script.send(worker(script.job, rank, attempt), Topology(time=at(10 * window + 0.5), pid=7, world_size=2))
    for inner in range(3):
        step(script, 10 * window + 3 * inner + 1, 3 * number + inner, attempt)
    if number == 5:
        for rank in range(RANKS):
            text = "Traceback (most recent call last):\nValueError: again"
            script.send(worker(script.job, rank, attempt), Log(time=at(10 * window + 9), stream="stderr", text=text))


def new_loaders(script: Script, window: int) -> None:
    """Data loader processes are born anew all the time, as at each epoch."""
    steady(script, window)
    for rank in range(RANKS):
        who = worker(script.job, rank)
        loaders = [("dataloader", 5000 + 20 * window + 10 * rank + number) for number in range(8)]
        for process_type, pid in (("trainer", pid_of(rank)), *loaders):
            sample = Stack(
                time=at(10 * window + 7), process_type=process_type, pid=pid, thread="MainThread", frames=WAITING
            )
            script.send(who, sample)


def short_stalls(script: Script, window: int) -> None:
    """Every two minutes nothing moves for thirty seconds."""
    if window % 12 < 9:
        steady(script, window)
    else:
        alive(script, 10 * window + 5)


def new_exits(script: Script, window: int) -> None:
    """A launcher reports the ends of processes that no rank ever had."""
    steady(script, window)
    for number in range(4):
        failed = f"failed (exitcode: 1) local_rank: 9 (pid: {50_000 + 4 * window + number}) of binary: python"
        script.log(agent(script.job, node_of(0)), 10 * window + 8, failed)


CONFIG = StreamConfig(idle_windows=8, remembered_windows=8, templates_per_job=60)
CASES: dict[str, tuple[Callable[[Script, int], None], int]] = {
    "a steady job": (steady, 2000),
    "ever new signatures": (new_signatures, 900),
    "ever new jobs": (new_jobs, 600),
    "an attempt a minute": (new_attempts, 900),
    "ever new loader processes": (new_loaders, 900),
    "a short stall every two minutes": (short_stalls, 1200),
    "exits of unknown processes": (new_exits, 900),
}


def weights(scene: Callable[[Script, int], None], windows: int) -> dict[str, list[int]]:
    """Bytes of each stage's snapshot, every few windows."""
    log = MemoryLog(1)
    driver = Driver(log, CONFIG, store=MemorySnapshots())
    found: dict[str, list[int]] = {stage.name: [] for stage in driver.stages}
    script = Script("job")
    seq = 0
    for window in range(windows):
        script.observations.clear()
        scene(script, window)
        for arrival in batch(script.observations):
            put(log, _numbered(arrival.batch, seq))
            seq += 1
        tick(log, 10 * window + 12)
        driver.run()
        if window % EVERY == EVERY - 1:
            for stage in driver.stages:
                found[stage.name].append(len(encode(stage.written())))
    return found


def _numbered(one: Any, seq: int) -> Any:
    return msgspec.structs.replace(one, seq=seq)


@pytest.mark.parametrize("case", CASES)
def test_what_is_carried_stops_growing(case: str) -> None:
    scene, windows = CASES[case]
    for stage, sizes in weights(scene, windows).items():
        third = len(sizes) // 3
        middle, last = max(sizes[third : 2 * third]), max(sizes[2 * third :])
        assert last <= 1.2 * middle, f"{stage}: {sizes[third - 1]}, {middle}, {last} bytes"


def test_open_windows_hold_no_more_than_lateness_lets_them() -> None:
    log = MemoryLog(1)
    driver = Driver(log, CONFIG)
    script = Script("job")
    most = 0
    for window in range(60):
        script.observations.clear()
        steady(script, window)
        for number, arrival in enumerate(batch(script.observations)):
            put(log, _numbered(arrival.batch, 1000 * window + number))
        for second in range(10):
            tick(log, 10 * window + second)
        driver.run()
        most = max(most, sum(getattr(stage, "held_events", 0) for stage in driver.stages))
    assert 0 < most < 40


@pytest.mark.parametrize("store", [None, MemorySnapshots()], ids=["without a store", "with a store"])
def test_a_driver_holds_no_history_of_ticks_and_reports(store: MemorySnapshots | None) -> None:
    """A process that runs for weeks ticks once a second on nine topics, whether it writes snapshots or not."""
    log = MemoryLog(1)
    driver = Driver(log, CONFIG, store=store)
    for window in range(400):
        tick(log, 10 * window + 2)
        driver.run()
    rank, *others = driver.stages
    kept = max(map(len, rank._buffer._ticks.values()))  # type: ignore[attr-defined]
    assert kept < 50
    for stage in others:
        assert len(stage._progress._reports) < 50  # type: ignore[attr-defined]
