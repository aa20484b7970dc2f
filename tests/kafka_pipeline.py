"""A deployment of its own in the tests' Kafka, real worker and sink processes, and what they said in the end."""

from __future__ import annotations

import itertools
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import msgspec
from streams_support import said

from producers.publish import publish, stream
from producers.recording import Recording
from schemas.deployment import Deployment
from streams.config import StreamConfig
from streams.log.kafka import KafkaLog
from streams.log.kafka_settings import KafkaSettings, kafka_settings
from streams.log.kafka_topics import create_topics, open_deployment
from streams.log.memory import MemoryLog

SESSION_S = "2"
WAIT_S = 120.0
CLOSING_NS = StreamConfig().settling_ns
_numbers = itertools.count()


class Pipeline:
    """One deployment; ``log`` reads and writes its topics, ``start`` starts a process of the command line."""

    def __init__(
        self, address: str, root: Path, partitions: int, ticks: Literal["workers", "publisher"], config: Path | None
    ) -> None:
        prefix = f"t{os.getpid()}-{next(_numbers)}."
        self.settings: KafkaSettings = kafka_settings(None if config else address, config, prefix=prefix)
        self.where = ["--kafka-config", str(config)] if config else ["--kafka", address]
        self.where += ["--topic-prefix", prefix]
        create_topics(self.settings, Deployment(partitions=partitions, ticks=ticks))
        self.log: KafkaLog = open_deployment(self.settings)[0]
        self.root = root
        self.processes: list[subprocess.Popen[str]] = []

    def publish(self, recording: Recording) -> None:
        publish(recording, self.log, until=None, closing_ns=CLOSING_NS)
        self.log.flush()

    def publish_in(self, slices: int, recording: Recording) -> Iterator[None]:
        """Publish the recording in so many slices of equal event time, one each time that the next is asked for."""
        ticks = list(stream(recording, MemoryLog(1), until=None, closing_ns=CLOSING_NS))
        ends = [ticks[len(ticks) * (number + 1) // slices - 1] for number in range(slices)]
        for tick in stream(recording, self.log, until=None, closing_ns=CLOSING_NS):
            if tick in ends:
                self.log.flush()
                yield

    def start(self, *arguments: str, program: Sequence[str] = ("-m", "rankwatch")) -> subprocess.Popen[str]:
        where = self.where + (["--session-s", SESSION_S] if arguments[0] == "worker" else [])
        output = self.root / f"{arguments[0]}-{len(self.processes)}.err"
        with output.open("w") as errors:
            process = subprocess.Popen(
                [sys.executable, *program, *arguments, *where],
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=subprocess.STDOUT,
                text=True,
                env={**os.environ, "PYTHONFAULTHANDLER": "1"},
            )
        self.processes.append(process)
        return process

    def said_by(self, process: subprocess.Popen[str]) -> str:
        """What a process has printed."""
        number = self.processes.index(process)
        return next(self.root.glob(f"*-{number}.err")).read_text(errors="replace")

    def printed(self) -> str:
        """What all processes have printed, for the message of a test that failed."""
        return "\n".join(f"{path.name}: {path.read_text(errors='replace')}" for path in sorted(self.root.glob("*.err")))

    def until_said(self, expected: dict[str, list[bytes]], wait_s: float = WAIT_S) -> dict[str, list[bytes]]:
        """Wait until the topics hold at least these values, each at least once; returns what they hold."""
        until = time.monotonic() + wait_s
        while True:
            found = {topic: sorted(set(values)) for topic, values in said(self.log, list(expected)).items()}
            if all(set(expected[topic]) <= set(found[topic]) for topic in expected):
                return found
            if time.monotonic() > until:
                counts = {topic: (len(expected[topic]), len(found[topic])) for topic in expected}
                raise AssertionError(f"not said in {wait_s} s (expected, found): {counts}\n{self.printed()}")
            time.sleep(0.3)

    def stop(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait(30)
        self.log.close()


@contextmanager
def pipeline(
    address: str,
    root: Path,
    *,
    partitions: int = 3,
    ticks: Literal["workers", "publisher"] = "publisher",
    config: Path | None = None,
) -> Iterator[Pipeline]:
    """A deployment and its processes for as long as the context lasts; ``config`` stands in for the address."""
    made = Pipeline(address, root, partitions, ticks, config)
    try:
        yield made
    finally:
        made.stop()


def run_all(commands: Mapping[str, Sequence[str]], *where: str, wait_s: float = 60) -> dict[str, tuple[int, str]]:
    """Run commands side by side to their ends; their exit codes, and what they printed."""
    running = {
        name: subprocess.Popen(
            [sys.executable, "-m", "rankwatch", *command, *where],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for name, command in commands.items()
    }
    try:
        said = {name: process.communicate(timeout=wait_s)[0] for name, process in running.items()}
    finally:
        for process in running.values():
            process.kill()
    return {name: (process.returncode, said[name]) for name, process in running.items()}


def free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def until(true: Callable[[], bool], said: Callable[[], str] = str, wait_s: float = WAIT_S) -> None:
    """Wait until it is true; ``said`` is the message if it never is."""
    end = time.monotonic() + wait_s
    while not true():
        assert time.monotonic() < end, said()
        time.sleep(0.2)


def stored_everything(address: str, rows: int) -> bool:
    """Whether the sink there has nothing left to do and stored at least so many rows."""
    found = metrics_at(address)
    unread = sum(value for name, value in found.items() if name.startswith("rankwatch_lag_entries{"))
    stored = sum(value for name, value in found.items() if name.startswith("rankwatch_rows_total{"))
    return stored >= rows and not unread and not found["rankwatch_held_entries"]


def metrics_at(address: str) -> dict[str, float]:
    """Samples of an endpoint by name and labels as they stand there."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}


def folded(values: dict[str, list[bytes]]) -> dict[str, list[bytes]]:
    """Each value once."""
    return {topic: sorted(set(found)) for topic, found in values.items()}


def moved(recording: Recording, by_ns: int) -> Recording:
    """The recording as if it had happened later."""
    arrivals = []
    for arrival in recording.arrivals:
        events: list[Any] = []
        for event in arrival.batch.events:
            changes = {"time": event.time + by_ns}
            if getattr(event, "created", 0):
                changes["created"] = getattr(event, "created") + by_ns  # noqa: B009
            events.append(msgspec.structs.replace(event, **changes))
        batch = msgspec.structs.replace(arrival.batch, events=events)
        arrivals.append(msgspec.structs.replace(arrival, time=arrival.time + by_ns, batch=batch))
    return msgspec.structs.replace(recording, arrivals=arrivals)


def side_by_side(recordings: Sequence[Recording]) -> list[Recording]:
    """The recordings moved so that all begin in the same second as the first."""
    second = 1_000_000_000
    first = recordings[0].span[0] // second
    return [moved(recording, (first - recording.span[0] // second) * second) for recording in recordings]
