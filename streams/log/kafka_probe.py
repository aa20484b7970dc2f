"""Whether a cluster answers, asked by a client of its own: those that work may be busy, or wait without a word."""

from __future__ import annotations

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from streams.log.kafka_client import Errors, made, reason_of
from streams.log.kafka_settings import KafkaSettings


class KafkaProbe:
    """Asks for one topic, the smallest question that there is. For one thread."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._topic = settings.full("deployment")
        self._errors = Errors()
        self._client = made(AdminClient, settings, self._errors)

    def rest(self, wait_s: float) -> None:
        """Wait so long, or until a connection breaks."""
        self._client.poll(wait_s)

    def silent(self, wait_s: float) -> str | None:
        """Null if it answers within this time; else why not, or "" where that is only that nobody is there."""
        # What it said of the last question explains nothing of this one.
        self._errors.last = None
        try:
            self._client.list_topics(self._topic, timeout=wait_s)
        except KafkaException as error:
            said = self._errors.heard(self._client.poll)
            return reason_of(self._settings, error, said) if said.final else ""
        return None
