"""A member of a consumer group, over confluent-kafka; its offsets are committed by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from schemas.ports import Entry, LogError
from schemas.topics import TOPICS
from streams.log.kafka_client import PASSING, WAIT_S, Errors, entry_of, made, reason_of
from streams.log.kafka_settings import KafkaSettings

SESSION_MS = 15_000

COMMITTED_S = 5.0
"""How long a new assignment waits to be told where the group stands; only the count of what is gone rests on it."""

LOOK_EVERY = 10
"""After how many polls to look again how much is unread."""

_REJOINS = (
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.FENCED_INSTANCE_ID,
)
"""The partitions went to somebody else, who reads again what was not committed."""

_MISSING = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC)


def _fifth(milliseconds: str) -> str:
    # What is no number is refused by the client, in its own words.
    return str(int(milliseconds) // 5) if milliseconds.isdecimal() else milliseconds


class KafkaGroup:
    """Reads ``topics`` of the deployment together with the other members of ``group``.

    ``forget`` is called when partitions go to others: whatever was read and not committed will be read again. Set it
    before the first poll. ``gone`` counts entries that the cluster did not keep until they were read.
    """

    def __init__(self, settings: KafkaSettings, group: str, topics: Sequence[str]) -> None:
        self.forget: Callable[[], None] = lambda: None
        self.gone = 0
        self._settings = settings
        self._errors = Errors()
        self._held = False
        self._positions: dict[tuple[str, int], int] = {}
        self._begins: dict[tuple[str, int], int] = {}
        self._counted: dict[tuple[str, int], int] = {}
        self._polls = 0
        self._lags: dict[tuple[str, int], int] = {}
        session_ms = settings.get("session.timeout.ms", str(SESSION_MS))
        own: dict[str, Any] = {
            "group.id": settings.prefix + group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            # All partitions are given back before any is given out anew, so forgetting everything is right.
            "partition.assignment.strategy": "roundrobin",
            "session.timeout.ms": session_ms,
            # With the default of three seconds a shorter session would end again and again.
            "heartbeat.interval.ms": settings.get("heartbeat.interval.ms", _fifth(session_ms)),
            "fetch.message.max.bytes": 4 * 1024 * 1024,
            "queued.max.messages.kbytes": 65_536,
            # One insert may take as long as the database lets it.
            "max.poll.interval.ms": 900_000,
        }
        if instance := settings.get("group.instance.id"):
            own["group.instance.id"] = f"{instance}-{group}"
        self._consumer = made(Consumer, settings, self._errors, **own)
        names = [settings.full(topic) for topic in topics]
        self._consumer.subscribe(names, on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked)

    def _assigned(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        self._positions, self._begins = {}, self._committed(consumer, places)
        consumer.assign(places)
        # This is called within a poll, and one that holds back brings nothing of what is new either. Otherwise what
        # was paused when it was taken away would be paused for ever.
        (consumer.pause if self._held else consumer.resume)(places)

    def _revoked(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        self._positions, self._begins = {}, {}
        self.forget()
        consumer.unassign()

    def _committed(self, consumer: Consumer, places: list[TopicPartition]) -> dict[tuple[str, int], int]:
        """Where the group stands, for the places where it ever committed; empty where the cluster does not say."""
        try:
            found: Any = consumer.committed(places, COMMITTED_S) if places else []
        except KafkaException:
            return {}
        known = [one for one in found if one.error is None and one.offset >= 0]
        return {(self._settings.short(one.topic), one.partition): one.offset for one in known}

    def poll(self, limit: int, wait_s: float, *, hold: bool = False) -> Sequence[tuple[str, int, Entry]]:
        """Up to ``limit`` (topic, partition, entry); with ``hold`` none, but it stays a member. Raises LogError."""
        self._hold(hold)
        found = []
        for message in self._consume(limit, wait_s):
            error = message.error()
            if error is None:
                found.append(self._taken(message))
            else:
                self._check(error)
        self._polls += 1
        if self._polls % LOOK_EVERY == 0:
            self._lags = self._unread()
        return found

    def _consume(self, limit: int, wait_s: float) -> Sequence[Message]:
        # What it had before partitions went to others within the call it drops by itself, so nothing that was read
        # before `forget` comes after it.
        try:
            return self._consumer.consume(limit, wait_s)
        except KafkaException as error:
            raise LogError(reason_of(self._settings, error, self._errors)) from None

    def _taken(self, message: Message) -> tuple[str, int, Entry]:
        entry = entry_of(message)
        raw: Any = message
        place = (self._settings.short(raw.topic()), raw.partition())
        # Compaction leaves out what was said anew; before the group's first entry nothing was expected.
        if TOPICS[place[0]].cleanup == "delete":
            expected = self._positions.get(place, self._begins.get(place, entry.offset))
            # After a rebalance it begins anew where the group stands: what was gone then was counted.
            self.gone += max(entry.offset - max(expected, self._counted.get(place, 0)), 0)
            self._counted[place] = max(entry.offset, self._counted.get(place, 0))
        self._positions[place] = entry.offset + 1
        return (*place, entry)

    def _hold(self, hold: bool) -> None:
        if hold != self._held:
            places = self._consumer.assignment()
            (self._consumer.pause if hold else self._consumer.resume)(places)
            self._held = hold

    def _check(self, error: KafkaError) -> None:
        if error.code() in _MISSING:
            raise LogError(f"{error.str()}; {self._settings.command('topics create')} makes what is missing")
        if error.code() not in PASSING:
            raise LogError(reason_of(self._settings, error, self._errors))

    def commit(self, offsets: Mapping[tuple[str, int], int]) -> bool:
        """Let the group begin at these offsets; false where the cluster is away. Raises LogError for a refusal."""
        places = [
            TopicPartition(self._settings.full(topic), partition, at)
            for (topic, partition), at in sorted(offsets.items())
        ]
        try:
            self._consumer.commit(offsets=places, asynchronous=False)
        except KafkaException as error:
            if error.args[0].code() in _REJOINS:
                return True
            if error.args[0].retriable() or error.args[0].code() in PASSING:
                return False
            raise LogError(reason_of(self._settings, error, self._errors)) from None
        return True

    def lags(self) -> dict[tuple[str, int], int]:
        """How many entries were not read a moment ago, as the last fetches show; from any thread, never waits."""
        return self._lags

    def _unread(self) -> dict[tuple[str, int], int]:
        # Asked by the thread that polls: while it commits, every other question to the client waits behind that.
        found = {}
        for (topic, partition), position in self._positions.items():
            name = TopicPartition(self._settings.full(topic), partition)
            _, high = self._consumer.get_watermark_offsets(name, WAIT_S, cached=True)
            # Before the first fetch the end is not known (below 0): something may be there.
            found[topic, partition] = 1 if high < 0 else max(high - position, 0)
        return found

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()
