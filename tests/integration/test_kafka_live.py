"""Live: a node's producer sends as things happen, the workers' clock ticks, and an incident comes in bounded time."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
from kafka_node import Node, node
from kafka_pipeline import Pipeline, pipeline, until
from streams_support import TRACEBACK, agent, node_of, pid_of, records, said, worker

from schemas.events import Log, Metric, Topology

pytestmark = [pytest.mark.xdist_group("kafka"), pytest.mark.slow]
RANKS = 4
BOUND_S = 30.0
"""A window of ten seconds, two for what is late, and what a slow machine needs."""


def log(one: Node, job: str, rank: int, text: str, iteration: int | None = None) -> None:
    one.send(worker(job, rank), Log(time=time.time_ns(), stream="stdout", text=text, iteration=iteration))


def trains(one: Node, job: str, steps: range) -> None:
    for rank in range(RANKS) if steps.start == 1 else ():
        one.send(worker(job, rank), Topology(time=time.time_ns(), pid=pid_of(rank), world_size=RANKS))
        log(one, job, rank, f"[rank {rank}] starting, world size: {RANKS}")
    for step in steps:
        for rank in range(RANKS):
            log(one, job, rank, f"step {step} timers (ms): forward_compute 300.0 data_load 20.0", step)
            one.send(worker(job, rank), Metric(time=time.time_ns(), name="cpu_percent", value=95.0, pid=pid_of(rank)))
        log(
            one, job, 0, f"iteration {step:8d}/ 500 | elapsed time per iteration (ms): 100.0 | lm loss: 1.0E+00 |", step
        )
        time.sleep(0.05)


def fails(one: Node, job: str, culprit: int) -> None:
    log(one, job, culprit, TRACEBACK)
    for rank in range(RANKS):
        if rank != culprit:
            log(one, job, rank, f"[rank{rank}]: RuntimeError: Connection closed by peer")
    for rank in range(RANKS):
        failed = f"failed (exitcode: 1) local_rank: {rank % 2} (pid: {pid_of(rank)}) of binary: python"
        one.send(agent(job, node_of(rank)), Log(time=time.time_ns(), stream="stderr", text=failed))


def blamed(live: Pipeline) -> dict[str, list[int]]:
    """The suspects of each job's newest incident."""
    return {one.job: [suspect.rank for suspect in one.suspects] for one in records(live.log, "incidents")}


def test_faults_are_found_in_bounded_time_also_by_a_worker_that_took_over(
    kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool, temporary = tmp_path / "spool", tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    with pipeline(kafka, tmp_path, partitions=2, ticks="workers") as live, node(live.settings, spool) as one:
        first = live.start("worker")
        until(lambda: any(live.log.end("windows", n) for n in range(2)), live.printed)
        trains(one, "first", range(1, 20))
        fails(one, "first", 2)
        trains(one, "second", range(1, 10))
        one.until_idle()
        # In the middle of the window that holds all this.
        time.sleep(1)
        first.send_signal(signal.SIGKILL)
        first.wait(30)
        live.start("worker")
        trains(one, "second", range(10, 30))
        fails(one, "second", 1)
        began = time.monotonic()
        until(lambda: blamed(live) == {"first": [2], "second": [1]}, lambda: str(blamed(live)), BOUND_S)
        assert time.monotonic() - began < BOUND_S
        assert said(live.log, ["dead-letters"]) == {"dead-letters": []}
        windows = records(live.log, "windows")
        assert {(one.identity.job, one.identity.rank) for one in windows} >= {
            (job, rank) for job in ("first", "second") for rank in range(RANKS)
        }
    assert list(temporary.iterdir()) == [], "a worker that was killed has left something behind"
