"""How records are sent to Kafka, whoever sends them: idempotent, by the key's partition everywhere, compressed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schemas.topics import OVERHEAD, TOPICS
from streams.log.kafka_client import TIME_HEADER

PRODUCER: dict[str, Any] = {
    "enable.idempotence": True,
    "partitioner": "murmur2_random",
    "compression.type": "lz4",
    "linger.ms": 20,
    "batch.size": 1_000_000,
    "queue.buffering.max.kbytes": 131_072,
    "queue.buffering.max.messages": 100_000,
    # A broker that is away is waited for; what it refuses for good is reported all the same.
    "message.timeout.ms": 0,
    "message.max.bytes": max(topic.most_bytes for topic in TOPICS.values()) + OVERHEAD,
}


def described(headers: Mapping[str, str], time: int) -> list[tuple[str, str | bytes | None]]:
    """The headers of a record that is sent at ``time`` (ns)."""
    return [*headers.items(), (TIME_HEADER, str(time))]
