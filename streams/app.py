"""The Faust wiring, the only place that knows Faust: it owns group membership, fetching and offsets, and nothing else.

Bytes come in as they are; one thread beside the event loop runs the stages and appends to the log; offsets are
committed up to what the stages wrote down. Faust's tables, windows, acknowledgements and codecs are not used.
"""

from __future__ import annotations

import asyncio
import io
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn, TypeVar

import faust
import msgspec
from faust.types import TP

from schemas.ports import Entry
from streams.complaints import complain_on
from streams.live import INPUTS, LiveStages
from streams.log.kafka_client import make_entry
from streams.log.kafka_settings import KafkaSettings, KafkaSettingsError
from streams.log.kafka_tls import tls_context
from streams.runner import Place
from streams.watchdog import Vitals

T = TypeVar("T")

ENTRY_BYTES = 500
"""What an entry takes in memory besides its bytes: ticks are small and many."""

STOP_S = 5.0
"""How long to leave the group in order may take."""


class WorkerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a worker behaves in its group.

    ``tick_s``: how often time is appended; 0 where the publisher does it. ``inbox_bytes``: how much read and not yet
    processed may lie in memory. ``poll_records``: how many records one fetch hands over at most.
    """

    tick_s: float = 0.0
    session_s: float = 15.0
    heartbeat_s: float = 3.0
    beat_s: float = 1.0
    inbox_bytes: int = 64 * 1024 * 1024
    poll_records: int = 500


class _App(faust.App):  # type: ignore[misc]
    """Faust's tables lie in memory, and there are none: it needs no folders, and would leave them behind."""

    def _create_directories(self) -> None:
        pass


class Wiring:
    """One Faust app around the stages that this worker owns."""

    def __init__(self, live: LiveStages, kafka: KafkaSettings, options: WorkerOptions | None = None) -> None:
        self.vitals = Vitals()
        self._live = live
        self._options = options or WorkerOptions()
        self._topics = {kafka.prefix + name: name for name in INPUTS[live.stage]}
        self._prefix = kafka.prefix
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="stages")
        self._inbox: dict[Place, list[Entry]] = {}
        self._inbox_bytes = 0
        self._arrived, self._room, self._owning = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._paused: set[Place] = set()
        self._begin: dict[Place, int] = {}
        self.app = self._new_app(kafka)
        self._connect()

    def _new_app(self, kafka: KafkaSettings) -> Any:
        options = self._options
        instance = kafka.get("group.instance.id")
        return _App(
            f"{kafka.prefix}{self._live.stage}",
            broker=[f"kafka://{address.strip()}" for address in kafka.bootstrap.split(",")],
            broker_credentials=credentials(kafka),
            consumer_group_instance_id=f"{instance}-{self._live.stage}" if instance else None,
            consumer_auto_offset_reset="earliest",
            consumer_max_fetch_size=4 * 1024 * 1024,
            broker_session_timeout=options.session_s,
            broker_heartbeat_interval=options.heartbeat_s,
            broker_rebalance_timeout=max(60.0, options.session_s),
            broker_request_timeout=max(90.0, options.session_s),
            broker_max_poll_records=options.poll_records,
            stream_buffer_maxsize=64,
            stream_wait_empty=False,
            topic_allow_declare=False,
            topic_disable_leader=True,
            web_enabled=False,
            store="memory://",
        )

    def _connect(self) -> None:
        app = self.app
        for name, topic in self._topics.items():
            channel = app.topic(
                name, key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw", acks=False
            )
            app.agent(channel, name=f"{self._prefix}read-{topic}", concurrency=1)(self._reader(topic))
        app.on_partitions_revoked.connect(self._on_revoked)
        app.on_partitions_assigned.connect(self._on_assigned)
        app.on_rebalance_complete.connect(self._on_rebalanced)
        app.task(self._pump)
        app.timer(interval=self._options.beat_s)(self._beat)
        if self._options.tick_s:
            app.timer(interval=self._options.tick_s)(self._tick)

    def _reader(self, topic: str) -> Callable[[Any], Any]:
        async def read(stream: Any) -> None:
            async for event in stream.noack().events():
                await self._put(topic, event.message)

        return read

    async def _put(self, topic: str, message: Any) -> None:
        while self._inbox_bytes > self._options.inbox_bytes:
            self._room.clear()
            await self._room.wait()
        timestamp_ms = int((message.timestamp or 0.0) * 1000)
        entry = make_entry(message.offset, message.key, message.value, message.headers, timestamp_ms)
        self._inbox.setdefault((topic, message.partition), []).append(entry)
        self._inbox_bytes += len(entry.value) + len(entry.key) + ENTRY_BYTES
        self._arrived.set()

    async def _pump(self) -> None:
        """Whatever has arrived goes through the stages in one go; then what is safe is committed."""
        while not self.app.should_stop:
            await self._arrived.wait()
            read = self._emptied()
            safe = await self._in_thread(self._live.take, read)
            self.vitals.taken += sum(len(entries) for _, entries in read)
            if safe:
                await self._commit(safe)
            self._hold_back(self._live.ahead())

    def _emptied(self) -> list[tuple[Place, list[Entry]]]:
        read, self._inbox, self._inbox_bytes = list(self._inbox.items()), {}, 0
        self._arrived.clear()
        self._room.set()
        return read

    async def _in_thread(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run ``work`` beside the event loop, which must answer the broker meanwhile.

        What fails there ends the process: everything that counts is in the log, and the next one begins from there.
        """
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)
        except Exception as error:
            die(str(error) or type(error).__name__)

    async def _commit(self, offsets: dict[Place, int]) -> None:
        # Faust's own bookkeeping commits what was acknowledged, and past gaps in it; the stages know what is safe.
        await self.app.consumer._commit(
            {TP(self._prefix + topic, number): at for (topic, number), at in offsets.items()}
        )

    def _hold_back(self, ahead: set[Place]) -> None:
        consumer = self.app.consumer
        for places, change in (
            (ahead - self._paused, consumer.pause_partitions),
            (self._paused - ahead, consumer.resume_partitions),
        ):
            if places:
                change({TP(self._prefix + topic, number) for topic, number in places})
        self._paused = ahead

    async def _on_revoked(self, app: Any, revoked: set[TP], **_: Any) -> None:
        self._owning.clear()
        self._emptied()
        self._paused = set()
        # Whatever is being worked on has to be finished before somebody else may begin.
        await self._in_thread(lambda: None)

    async def _on_assigned(self, app: Any, assigned: set[TP], **_: Any) -> None:
        self._emptied()
        self._paused = set()
        owned: dict[int, set[str]] = {}
        for place in assigned:
            if place.topic in self._topics:
                owned.setdefault(place.partition, set()).add(place.topic)
        for number, topics in owned.items():
            if topics != self._topics.keys():
                die(
                    f"the group gave only some topics of partition {number} to this worker: {', '.join(sorted(topics))}"
                )
        self._begin = await self._in_thread(self._live.own, set(owned))
        self._owning.set()

    async def _on_rebalanced(self, app: Any, **_: Any) -> None:
        # Faust now goes to what is committed. The snapshots decide where that is: whoever owned the partition before
        # may have committed and lost the race for the last snapshot. It does not wait for what was assigned by itself.
        await self._owning.wait()
        if self._begin:
            await self._commit(self._begin)
            self._begin = {}

    async def _tick(self) -> None:
        await self._in_thread(self._live.tick, time.time_ns())

    async def _beat(self) -> None:
        """A sign of life, and how much there is to read, as the last fetches saw it."""
        consumer = self.app.consumer
        lags = {}
        for place, offset in self._live.next_offsets().items():
            high = consumer.highwater(TP(self._prefix + place[0], place[1]))
            lags[place] = max((high or 0) - offset, 0)
        self.vitals.lags = lags
        self.vitals.busy = bool(self.app.rebalancing)
        self.vitals.beats += 1


def run(wirings: Sequence[Wiring]) -> NoReturn:
    """Run these apps in one event loop until the process is told to stop; ends it."""
    apps = [wiring.app for wiring in wirings]
    complain_on(sys.stderr)
    threading.Thread(target=_leave, args=(apps,), name="leave", daemon=True).start()
    # What Faust draws on a terminal is not ours.
    worker = faust.Worker(*apps, override_logging=False, redirect_stdouts=False, quiet=True, stdout=io.StringIO())
    worker.execute_from_commandline()
    sys.exit(0)


def _leave(apps: Sequence[Any]) -> None:
    """Ends the process if it cannot end in order, as in an outage: everything that counts is in the log."""
    while not any(app.should_stop for app in apps):
        time.sleep(1.0)
    time.sleep(STOP_S)
    failed = any(app.crashed for app in apps)
    print(f"rankwatch: still not at rest after {STOP_S:g} s: leaving", file=sys.stderr, flush=True)
    os._exit(1 if failed else 0)


def die(reason: str) -> NoReturn:
    """End the process at once, with the reason: the log holds all that the next one needs."""
    print(f"rankwatch: {reason}", file=sys.stderr, flush=True)
    os._exit(1)


def credentials(kafka: KafkaSettings) -> Any:
    """The login for Faust's client; null for plaintext. Raises KafkaSettingsError for what it cannot do."""
    protocol = kafka.get("security.protocol", "plaintext")
    context = tls_context(kafka) if protocol.endswith("ssl") else None
    if not protocol.startswith("sasl"):
        return None if context is None else faust.SSLCredentials(context)
    mechanism = kafka.get("sasl.mechanism") or kafka.get("sasl.mechanisms") or "PLAIN"
    if mechanism not in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
        raise KafkaSettingsError(f"sasl.mechanism {mechanism!r}: workers log in with PLAIN or SCRAM")
    return faust.SASLCredentials(
        username=kafka.get("sasl.username"),
        password=kafka.get("sasl.password"),
        ssl_context=context,
        mechanism=mechanism,
    )
