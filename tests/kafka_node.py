"""A node's producer over Kafka: a thread that pumps, and callers that are watched for having to wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streams_support import worker

from producers.outgoing.config import OutgoingConfig
from producers.outgoing.sender import Sender
from schemas.events import Event, Log
from schemas.identity import Identity
from streams.log.kafka_settings import KafkaSettings
from streams.log.kafka_transport import KafkaTransport

SMALL = OutgoingConfig(
    batch_age_s=0.1,
    batch_bytes=4_000,
    record_bytes=900_000,
    open_bytes=100_000,
    inbox_bytes=1_000_000,
    flight_bytes=1_000_000,
    flight_records=200,
    unspooled_s=0.5,
    retry_s=0.2,
    segment_bytes=1_000_000,
)


class Node:
    """One boot of a producer: a thread pumps, ``log`` is called by others and notes how long it took."""

    def __init__(self, settings: KafkaSettings, root: Path, boot: str, timeout_s: float = 2.0) -> None:
        self.transport = KafkaTransport(settings, timeout_s=timeout_s)
        self.sender = Sender("node", boot, self.transport, root, SMALL)
        self.added = 0
        self.slowest_s = 0.0
        self.most_memory = 0
        self.said: list[str] = []
        self._boot = boot
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._pump)
        self._thread.start()

    def _pump(self) -> None:
        while not self._stopping.wait(0.02):
            self.said += self.sender.pump(time.time_ns())
            self.most_memory = max(self.most_memory, self.sender.memory_bytes)

    def log(self, text: str = "line " * 20) -> None:
        began = time.monotonic()
        event = Log(time=time.time_ns(), stream="stdout", text=f"{self._boot}/{self.added} {text}")
        self.sender.add(worker("job", self.added % 4), event, time.time_ns())
        self.slowest_s = max(self.slowest_s, time.monotonic() - began)
        self.added += 1

    def send(self, identity: Identity, event: Event) -> None:
        self.sender.add(identity, event, time.time_ns())

    def log_for(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.log()
            time.sleep(0.002)

    def until_idle(self, wait_s: float = 40.0) -> None:
        self.sender.flush(time.time_ns())
        until = time.monotonic() + wait_s
        while not self.sender.outbox.idle:
            assert time.monotonic() < until, (self.sender.counters, self.said)
            time.sleep(0.05)

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        self.transport.close(1.0)
        self.said += self.sender.close(time.time_ns())


@contextmanager
def node(settings: KafkaSettings, root: Path, boot: str = "b1", timeout_s: float = 2.0) -> Iterator[Node]:
    made = Node(settings, root, boot, timeout_s)
    try:
        yield made
    finally:
        made.stop()
