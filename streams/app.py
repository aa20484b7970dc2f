"""The Faust wiring, the only place that knows Faust: it owns group membership, fetching and offsets, and nothing else.

Bytes come in as they are; one thread beside the event loop runs the stages and appends to the log; offsets are
committed up to what the stages wrote down. Faust's tables, windows, acknowledgements and codecs are not used.
"""

from __future__ import annotations

import asyncio
import io
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NoReturn, TypeVar

import faust
import msgspec
from faust.exceptions import ConsumerNotStarted
from faust.types import TP

from schemas.identity import rank_ranges
from schemas.ports import Entry
from streams.complaints import complain_on
from streams.ending import asked_to_stop, die, leave_when, say
from streams.inbox import Inbox
from streams.live import INPUTS, LiveStages
from streams.log.kafka_client import make_entry
from streams.log.kafka_login import login_of, tls_of
from streams.log.kafka_settings import KafkaSettings
from streams.runner import Place
from streams.watchdog import Vitals

T = TypeVar("T")


class WorkerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a worker behaves in its group.

    ``tick_s``: how often time is appended; 0 where the publisher does it. ``session_s``: after how long without a
    heartbeat, sent every ``heartbeat_s``, the group gives its partitions to others; brokers take 6 to 1800 unless they
    are told otherwise. ``beat_s``: how often it shows the watchdog that it lives. ``inbox_bytes``: how much read and
    not yet processed may lie in memory. ``poll_records``: how many records one fetch hands over at most.
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
        self._inbox = Inbox(self._options.inbox_bytes)
        self._owning = asyncio.Event()
        self._assignment = 0
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
            broker_credentials=_credentials(kafka),
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
            # With none at all Faust would not assign the partitions of one number together.
            table_standby_replicas=1,
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
            app.task(self._tick)

    def _reader(self, topic: str) -> Callable[[Any], Any]:
        async def read(stream: Any) -> None:
            async for event in stream.noack().events():
                await self._put(topic, event.message)

        return read

    async def _put(self, topic: str, message: Any) -> None:
        timestamp_ms = int((message.timestamp or 0.0) * 1000)
        entry = make_entry(message.offset, message.key, message.value, message.headers, timestamp_ms)
        await self._inbox.put((topic, message.partition), entry)

    async def _pump(self) -> None:
        """Whatever has arrived goes through the stages in one go; then what is safe is committed."""
        while not self.app.should_stop:
            read = await self._inbox.taken()
            assignment = self._assignment
            safe, ahead = await self._in_thread(self._work, read)
            self.vitals.taken += sum(len(entries) for _, entries in read)
            # What a former assignment committed or held back is no business of the next one.
            if safe and assignment == self._assignment:
                await self._commit(safe)
            if assignment == self._assignment:
                self._hold_back(ahead)

    def _work(self, read: list[tuple[Place, list[Entry]]]) -> tuple[dict[Place, int], set[Place]]:
        return self._live.take(read), self._live.ahead()

    async def _in_thread(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run ``work`` beside the event loop, which must answer the broker meanwhile.

        What fails there ends the process: everything that counts is in the log, and the next one begins from there.
        """
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)
        except Exception as error:
            die(str(error) or type(error).__name__)

    async def _commit(self, offsets: dict[Place, int]) -> bool:
        # Faust's own bookkeeping commits what was acknowledged, and past gaps in it; the stages know what is safe.
        places = {TP(self._prefix + topic, number): at for (topic, number), at in offsets.items()}
        return bool(await self.app.consumer._commit(places))

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
        self._forget()
        # Whatever is being worked on has to be finished before somebody else may begin.
        await self._in_thread(lambda: None)

    def _forget(self) -> None:
        """The assignment changes: what was read is read again, and Faust begins with all partitions going."""
        self._assignment += 1
        self._inbox.emptied()
        self._paused = set()

    async def _on_assigned(self, app: Any, assigned: set[TP], **_: Any) -> None:
        self._forget()
        owned: dict[int, set[str]] = {}
        for place in assigned:
            if place.topic in self._topics:
                owned.setdefault(place.partition, set()).add(place.topic)
        for number, topics in owned.items():
            if topics != self._topics.keys():
                die(
                    f"the group gave only some topics of partition {number} to this worker: {', '.join(sorted(topics))}"
                )
        before = set(self._live.runners)
        begin = self._begin | await self._in_thread(self._live.own, set(owned))
        self._begin = {place: at for place, at in begin.items() if place[1] in owned}
        if before != set(owned) or not owned:
            say(f"stage {self._live.stage}: partitions {rank_ranges(owned) or 'none'}")
        self._owning.set()

    async def _on_rebalanced(self, app: Any, **_: Any) -> None:
        # Faust now goes to what is committed. The snapshots decide where that is: whoever owned the partition before
        # may have committed and lost the race for the last snapshot. It does not wait for what was assigned by itself.
        await self._owning.wait()
        if self._begin and await self._commit(self._begin):
            self._begin = {}

    async def _tick(self) -> None:
        """Append the time just after each whole second, or whatever ``tick_s`` is: windows can be closed then."""
        step = self._options.tick_s
        while not self.app.should_stop:
            await asyncio.sleep(step - time.time() % step)
            await self._in_thread(self._live.tick, time.time_ns())

    async def _beat(self) -> None:
        """A sign of life, and how much there is to read, as the last fetches saw it."""
        self.vitals.busy = bool(self.app.rebalancing)
        self.vitals.beats += 1
        with suppress(AssertionError, ConsumerNotStarted):  # what was asked for may just have gone to others
            self.vitals.lags = self._lags()

    def _lags(self) -> dict[Place, int]:
        consumer = self.app.consumer
        lags = {}
        for place, offset in self._live.next_offsets().items():
            high = consumer.highwater(TP(self._prefix + place[0], place[1]))
            # Before the first fetch nobody knows: something may be there, and a fetch that never comes is a standstill.
            lags[place] = 1 if high is None else max(high - offset, 0)
        return lags


class _Worker(faust.Worker):  # type: ignore[misc]
    """Runs apps until a signal; ``away`` is whether the cluster is."""

    def __init__(self, apps: Sequence[Any], away: Callable[[], bool]) -> None:
        # What Faust draws on a terminal is not ours.
        super().__init__(*apps, override_logging=False, redirect_stdouts=False, quiet=True, stdout=io.StringIO())
        self._away = away

    def _schedule_shutdown(self, signal: Any) -> None:
        asked_to_stop(away=self._away())
        super()._schedule_shutdown(signal)


def run(wirings: Sequence[Wiring], away: Callable[[], bool]) -> NoReturn:
    """Run these apps in one event loop until the process is told to stop; ends it.

    ``away`` is whether the cluster does not answer; asked from any thread.
    """
    apps = [wiring.app for wiring in wirings]
    complain_on(sys.stderr, away)
    leave_when(lambda: any(app.should_stop for app in apps), lambda: any(app.crashed for app in apps))
    _Worker(apps, away).execute_from_commandline()
    sys.exit(0)


def _credentials(kafka: KafkaSettings) -> Any:
    """The login for Faust's client; null for plaintext. Raises KafkaSettingsError for what it cannot do."""
    login, context = login_of(kafka), tls_of(kafka)
    if login is not None:
        return faust.SASLCredentials(
            username=login.username, password=login.password, mechanism=login.mechanism, ssl_context=context
        )
    return None if context is None else faust.SSLCredentials(context)
