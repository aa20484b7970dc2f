"""How records are sent to Kafka, whoever sends them: idempotent, by the key's partition everywhere, compressed."""

from __future__ import annotations

from typing import Any

from schemas.topics import OVERHEAD, TOPICS

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
