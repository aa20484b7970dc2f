"""Sends records of a node's producer to Kafka without ever waiting, over confluent-kafka."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from confluent_kafka import KafkaError, KafkaException, Producer

from schemas.ports import Refusal
from schemas.topics import TOPICS
from streams.log.kafka_client import TIME_HEADER, Errors, made, reason_of
from streams.log.kafka_producer import PRODUCER
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
        self._broken = False
        self._refused: list[tuple[Done, str]] = []

    def _new_producer(self) -> Producer:
        own = {**PRODUCER, "message.timeout.ms": int(self._timeout_s * 1000)}
        return made(Producer, self._settings, self._errors, **own)

    def send(self, topic: str, key: bytes, value: bytes, headers: Mapping[str, str], time: int, done: Done) -> bool:
        """Take the record over; false if there is no room now."""
        if not TOPICS[topic].takes(len(key) + len(value)):
            self._refused.append((done, f"{Refusal.TOO_LARGE}: topic {topic} takes no record of {len(value)} bytes"))
            return True
        sent: list[tuple[str, str | bytes | None]] = [*headers.items(), (TIME_HEADER, str(time))]
        try:
            self._producer.produce(
                self._settings.prefix + topic,
                value,
                key or None,
                headers=sent,
                on_delivery=lambda error, message: done(None if error is None else self._reason(error)),
            )
        except BufferError:
            return False
        except KafkaException as error:
            if error.args[0].fatal():
                self._broken = True
                return False
            self._refused.append((done, self._reason(error.args[0])))
        return True

    def _reason(self, error: KafkaError) -> str:
        refusal = _REFUSALS.get(error.code())
        said = reason_of(self._settings, error, Errors() if refusal else self._errors)
        return f"{refusal}: {said}" if refusal else said

    def _rebuild(self) -> None:
        """Everything that is on its way is given back first, by the old producer's own callbacks."""
        self._producer.purge()
        self._producer.poll(0)
        self._producer = self._new_producer()
        self._broken = False
        self.rebuilt += 1

    def poll(self) -> None:
        """Run the callbacks that are due; never waits."""
        if self._broken:
            self._rebuild()
        self._producer.poll(0)
        refused, self._refused = self._refused, []
        for done, reason in refused:
            done(reason)

    def close(self, wait_s: float) -> None:
        """Wait so long for what is on its way; what is not safe then is given back."""
        self._producer.flush(wait_s)
        self._producer.purge()
        self.poll()
