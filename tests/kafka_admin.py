"""What an operator or a cluster may do to topics behind everybody's back."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    ResourceType,
)
from kafka_pipeline import Pipeline


def _admin(live: Pipeline) -> AdminClient:
    return AdminClient({"bootstrap.servers": live.settings.bootstrap})


def altered(live: Pipeline, topic: str, settings: Mapping[str, str]) -> None:
    """Change settings of a topic."""
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in settings.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, live.log.name_of(topic), incremental_configs=entries)
    admin = _admin(live)
    for future in admin.incremental_alter_configs([resource]).values():
        future.result()


def widened(live: Pipeline, topic: str, partitions: int) -> None:
    """Give a topic more partitions."""
    admin = _admin(live)
    for future in admin.create_partitions([NewPartitions(live.log.name_of(topic), partitions)]).values():
        future.result()


def deleted(live: Pipeline, *topics: str) -> None:
    """Delete topics."""
    admin = _admin(live)
    for future in admin.delete_topics([live.log.name_of(topic) for topic in topics]).values():
        future.result()


def emptied(live: Pipeline, topic: str, keep: int = 0) -> None:
    """Remove all records but the last ``keep`` of each partition, as retention does."""
    ends = [(number, live.log.end(topic, number)) for number in range(live.log.partitions(topic))]
    places = [TopicPartition(live.log.name_of(topic), number, max(end - keep, 0)) for number, end in ends]
    admin = _admin(live)
    for future in admin.delete_records(places).values():
        future.result()
