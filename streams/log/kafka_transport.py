"""Sends records of a node's producer to Kafka without ever waiting, over confluent-kafka."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from contextlib import suppress

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from schemas.ports import Refusal
from schemas.topics import TOPICS
from streams.log.kafka_client import Errors, made, reason_of
from streams.log.kafka_producer import PRODUCER, described
from streams.log.kafka_settings import KafkaSettings

_REFUSALS = {
    KafkaError.MSG_SIZE_TOO_LARGE: Refusal.TOO_LARGE,
    KafkaError.RECORD_LIST_TOO_LARGE: Refusal.TOO_LARGE,
    KafkaError.UNKNOWN_TOPIC_OR_PART: Refusal.UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_TOPIC: Refusal.UNKNOWN_TOPIC,
    KafkaError.TOPIC_AUTHORIZATION_FAILED: Refusal.NOT_AUTHORISED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: Refusal.NOT_AUTHORISED,
}

Done = Callable[[str | None], None]


class KafkaTransport:
    """A ``schemas.ports.Transport``. For one thread.

    A record that the cluster does not take within ``timeout_s`` is given back with the reason; its sender keeps it and
    tries again. After an error that ends an idempotent producer a new one is made: what was on its way may then arrive
    twice, and consumers drop it by producer, boot and number.
    """

    def __init__(self, settings: KafkaSettings, *, timeout_s: float = 30.0) -> None:
        self._settings = settings
        self._timeout_s = timeout_s
        self._errors = Errors()
        self._producer = self._new_producer()
        self.rebuilt = 0
        self._refused: list[tuple[Done, str]] = []
        self._serials = itertools.count()
        self._on_their_way: dict[int, Done] = {}

    def _new_producer(self) -> Producer:
        own = {**PRODUCER, "message.timeout.ms": int(self._timeout_s * 1000)}
        return made(Producer, self._settings, self._errors, **own)

    def send(self, topic: str, key: bytes, value: bytes, headers: Mapping[str, str], time: int, done: Done) -> bool:
        """Take the record over; false if there is no room now."""
        if not TOPICS[topic].takes(len(key) + len(value)):
            self._refused.append((done, f"{Refusal.TOO_LARGE}: topic {topic} takes no record of {len(value)} bytes"))
            return True
        serial = next(self._serials)
        try:
            self._producer.produce(
                self._settings.full(topic),
                value,
                key or None,
                headers=described(headers, time),
                on_delivery=lambda error, message: self._delivered(serial, error, message),
            )
        except BufferError:
            return False
        except KafkaException as error:
            if _ends(error):
                self._rebuild(error)
                return False
            self._refused.append((done, self._reason(error.args[0])))
        else:
            self._on_their_way[serial] = done
        return True

    def _delivered(self, serial: int, error: KafkaError | None, message: Message) -> None:
        done = self._on_their_way.pop(serial, None)
        if done is not None:
            done(None if error is None else self._reason(error))

    def _reason(self, error: KafkaError) -> str:
        refusal = _REFUSALS.get(error.code())
        said = reason_of(self._settings, error, Errors() if refusal else self._errors)
        return f"{refusal}: {said}" if refusal else said

    def _rebuild(self, error: KafkaException) -> None:
        """A new producer; everything that was on its way is given back, whatever the old one still says of it."""
        old, self._producer = self._producer, self._new_producer()
        with suppress(KafkaException):
            old.purge(blocking=False)
        reason = self._reason(error.args[0])
        self._refused += [(done, reason) for done in self._on_their_way.values()]
        self._on_their_way = {}
        self.rebuilt += 1

    def poll(self) -> None:
        """Run the callbacks that are due; never waits."""
        try:
            self._producer.poll(0)
        except KafkaException as error:
            # What ends a producer is raised here, in the middle of its callbacks.
            self._rebuild(error)
        refused, self._refused = self._refused, []
        for done, reason in refused:
            done(reason)

    def close(self, wait_s: float) -> None:
        """Wait so long for what is on its way; what is not safe then is given back."""
        with suppress(KafkaException):
            self._producer.flush(wait_s)
        with suppress(KafkaException):
            self._producer.purge()
        self.poll()
        left, self._on_their_way = self._on_their_way, {}
        for done in left.values():
            done("the transport was closed")


def _ends(error: KafkaException) -> bool:
    """Whether the producer is of no use any more; only what is raised from a callback says so of itself."""
    said: KafkaError = error.args[0]
    return said.fatal() or said.code() == KafkaError._FATAL
