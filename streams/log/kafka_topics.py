"""The topics of a deployment in a Kafka cluster: made once, and compared with what everybody expects."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ConfigResource, NewTopic, ResourceType

from schemas.codec import CodecError, decode, encode, headers
from schemas.deployment import Deployment, Ticks
from schemas.ports import LogError
from schemas.topics import TOPICS, Topic
from streams.log.kafka import KafkaLog
from streams.log.kafka_admin import admin_client
from streams.log.kafka_client import WAIT_S, reason_of
from streams.log.kafka_settings import KafkaSettings

RETENTION_H = 7 * 24
"""How long records are kept by default."""
MOST_NAMED = 8
FEW = 2
"""Up to so many missing topics are told one by one, with what makes them."""

COMPACTED = {
    # Snapshots replace one another every few seconds: without this a partition would keep hours of them.
    "segment.ms": str(600_000),
    "segment.bytes": str(128 * 1024 * 1024),
    "min.cleanable.dirty.ratio": "0.2",
}


def create_topics(
    settings: KafkaSettings, deployment: Deployment, *, replication: int | None = None, retention_h: float = RETENTION_H
) -> list[str]:
    """Make the topics that are missing and write down what is fixed; returns the names made.

    ``replication`` is by default three, or as many brokers as there are. Raises LogError where the cluster refuses, or
    where a deployment with other partitions or ticks is there already.
    """
    log = KafkaLog(settings)
    try:
        _compare(written_deployment(log), deployment)
        there = log.partition_counts()
        missing = [topic for topic in TOPICS.values() if log.name_of(topic.name) not in there]
        made_now = _create(settings, missing, deployment.partitions, replication, retention_h)
        log.append("deployment", b"deployment", encode(deployment), headers("deployment"), 0)
        log.flush()
    finally:
        log.close()
    return made_now


def _compare(there: Deployment | None, wanted: Deployment) -> None:
    if there not in (None, wanted):
        raise LogError(
            f"a deployment with {there.partitions} partitions and ticks by {there.ticks} is there already; "
            "both are fixed when it is created"
        )


def _create(
    settings: KafkaSettings, topics: list[Topic], partitions: int, replication: int | None, retention_h: float
) -> list[str]:
    if not topics:
        return []
    admin, errors = admin_client(settings)
    if replication is None:
        try:
            replication = min(3, len(admin.list_topics(timeout=WAIT_S).brokers))
        except KafkaException as error:
            raise LogError(reason_of(settings, error, errors.heard(admin.poll))) from None
    wanted = [
        NewTopic(
            settings.full(topic.name),
            num_partitions=1 if topic.single else partitions,
            replication_factor=replication,
            # One copy may be away; two that agree are what an acknowledgement is worth.
            config={**topic_config(topic, retention_h), "min.insync.replicas": str(min(2, replication))},
        )
        for topic in topics
    ]
    made_now = []
    for name, future in admin.create_topics(wanted, operation_timeout=WAIT_S).items():
        try:
            future.result()
            made_now.append(name)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                # What a cluster's own policy says may have several lines.
                reason = " ".join(reason_of(settings, error, errors).split())
                raise LogError(f"topic {name}: {reason}") from None
    return made_now


def topic_config(topic: Topic, retention_h: float) -> dict[str, str]:
    """The settings of a topic in the cluster."""
    retention = {"retention.ms": str(int(retention_h * 3_600_000))}
    compacted = COMPACTED if "compact" in topic.cleanup else {}
    kept = {**compacted, "cleanup.policy": topic.cleanup, **(retention if "delete" in topic.cleanup else {})}
    return {**kept, "max.message.bytes": str(topic.most_bytes), "message.timestamp.type": "CreateTime"}


def written_deployment(log: KafkaLog) -> Deployment | None:
    """What was fixed at creation; null if nobody wrote it down. Raises LogError."""
    if log.name_of("deployment") not in log.partition_counts():
        return None
    for entry in reversed(log.read("deployment", 0, log.begin("deployment", 0), 1000)):
        try:
            found: Deployment = decode("deployment", entry.value)
        except CodecError as error:
            raise LogError(f"topic {log.name_of('deployment')}: {error}") from None
        return found
    return None


def open_deployment(settings: KafkaSettings, ticks: Ticks = "workers") -> tuple[KafkaLog, Deployment]:
    """The log of a deployment whose topics are as they should be; ``ticks`` as in ``check_topics``.

    Raises LogError, which names what is not.
    """
    log = KafkaLog(settings)
    try:
        problems, deployment = check_topics(log, ticks)
        if deployment is None or problems:
            raise LogError("; ".join(problems))
    except BaseException:
        log.close()
        raise
    return log, deployment


def check_topics(log: KafkaLog, ticks: Ticks = "workers") -> tuple[list[str], Deployment | None]:
    """What is wrong with the topics, in words, and what was fixed at creation.

    ``ticks`` is what a deployment should be made with where there is none. Raises LogError for no answer.
    """
    counts = log.partition_counts()
    create = log.settings.command("topics create" + (f" --ticks {ticks}" if ticks != "workers" else ""))
    if log.name_of("deployment") not in counts:
        return [f"topic {log.name_of('deployment')} is missing; {create} makes it{_others(counts)}"], None
    deployment = written_deployment(log)
    if deployment is None:
        return [f"topic {log.name_of('deployment')} is empty; {create} fills it"], None
    create = log.settings.command("topics create")
    problems = []
    missing = [name for topic in TOPICS.values() if (name := log.name_of(topic.name)) not in counts]
    if len(missing) > FEW:
        # As after an upgrade.
        problems.append(f"topics {', '.join(missing)} are missing; {create} makes them")
    for topic in TOPICS.values():
        name, wanted = log.name_of(topic.name), 1 if topic.single else deployment.partitions
        if name in missing:
            problems += [f"topic {name} is missing; {create} makes it"] if len(missing) <= FEW else []
        elif counts[name] != wanted:
            problems.append(f"topic {name} has {counts[name]} partitions, the deployment {wanted}")
    return problems or _unfit_topics(log), deployment


def _others(counts: Mapping[str, int]) -> str:
    """The deployments that are there, by their prefixes: whoever mistypes one should not have to look for it."""
    known = "deployment", "windows", "incidents"
    heads = [name.removesuffix(known[0]) for name in sorted(counts) if name.endswith(known[0])]
    there = [head for head in heads if all(head + name in counts for name in known)]
    more = f" and {len(there) - MOST_NAMED} more" if len(there) > MOST_NAMED else ""
    named = ", ".join(repr(head) for head in there[:MOST_NAMED])
    return f" (topic prefixes of deployments that are there: {named}{more})" if there else ""


_UNASKABLE = (KafkaError.CLUSTER_AUTHORIZATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED)


def _unfit_topics(log: KafkaLog) -> list[str]:
    """Topics that would refuse or forget records of ours; none where this user may not ask."""
    admin, errors = admin_client(log.settings)
    resources = [ConfigResource(ResourceType.TOPIC, log.name_of(name)) for name in TOPICS]
    problems = []
    for resource, future in admin.describe_configs(resources, request_timeout=WAIT_S).items():
        try:
            found = {name: entry.value for name, entry in future.result().items()}
        except KafkaException as error:
            if error.args[0].code() in _UNASKABLE:
                return []
            raise LogError(reason_of(log.settings, error, errors)) from None
        topic = TOPICS[log.settings.short(resource.name)]
        if int(found["max.message.bytes"]) < topic.most_bytes:
            said = f"takes records of {found['max.message.bytes']} bytes, {topic.most_bytes} are needed"
            problems.append(f"topic {resource.name} {said}")
        if set(found["cleanup.policy"].split(",")) != set(topic.cleanup.split(",")):
            problems.append(f"topic {resource.name} has cleanup.policy {found['cleanup.policy']}, not {topic.cleanup}")
    return problems
