"""Follows some topics of a deployment from where one wants; belongs to no group, commits nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, TopicPartition

from schemas.ports import Entry, LogError
from streams.log.kafka import KafkaLog
from streams.log.kafka_client import PASSING, Errors, entry_of, made, reason_of


class KafkaTail:
    """All partitions of ``topics`` from now on; with ``beginning`` what is kept comes first.

    ``ends`` are offsets by topic and partition to begin at instead.
    """

    def __init__(
        self,
        log: KafkaLog,
        topics: Sequence[str],
        *,
        beginning: bool,
        ends: Mapping[tuple[str, int], int] | None = None,
    ) -> None:
        self._settings = log.settings
        self._errors = Errors()
        own = {"group.id": f"{log.settings.prefix}tail", "enable.auto.commit": False, "auto.offset.reset": "earliest"}
        self._consumer = made(Consumer, log.settings, self._errors, **own)
        since = OFFSET_BEGINNING if beginning else OFFSET_END
        self._consumer.assign(
            [
                TopicPartition(log.name_of(topic), number, (ends or {}).get((topic, number), since))
                for topic in topics
                for number in range(log.partitions(topic))
            ]
        )

    def poll(self, limit: int, wait_s: float) -> list[tuple[str, Entry]]:
        """Up to ``limit`` (topic, entry), once there are any. Raises LogError; a cluster that is away is waited for."""
        found = []
        # Asked for many at once it would wait for all of them.
        first = self._consumer.consume(1, wait_s)
        for message in [*first, *(self._consumer.consume(limit - 1, 0) if first and limit > 1 else ())]:
            error = message.error()
            if error is None:
                raw: Any = message
                found.append((self._settings.short(raw.topic()), entry_of(message)))
            elif error.code() not in PASSING:
                raise LogError(reason_of(self._settings, error, self._errors))
        return found

    def close(self) -> None:
        """Let go of the cluster."""
        self._consumer.close()
