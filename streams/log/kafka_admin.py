"""What is asked of a cluster beside its records: who is in a group, and what its brokers are set to."""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from schemas.ports import LogError
from streams.log.kafka_client import WAIT_S, Errors, made, reason_of
from streams.log.kafka_settings import KafkaSettings

SESSION_S = (6.0, 1800.0)
"""The shortest and the longest session that brokers take unless they are told otherwise."""

_SESSION_MS = ("group.min.session.timeout.ms", "group.max.session.timeout.ms")


def admin_client(settings: KafkaSettings) -> tuple[AdminClient, Errors]:
    """A client for such questions, and what it complains of. Raises KafkaSettingsError."""
    errors = Errors()
    return made(AdminClient, settings, errors), errors


def groups_with_members(settings: KafkaSettings, names: Sequence[str]) -> list[str]:
    """Those of these consumer groups that somebody is a member of. Raises LogError where the cluster does not say."""
    admin, errors = admin_client(settings)
    found = []
    for name, future in admin.describe_consumer_groups(list(names), request_timeout=WAIT_S).items():
        try:
            if future.result().members:
                found.append(name)
        except KafkaException as error:
            # A group that never was is dead and has no members, or is not found: brokers differ.
            if error.args[0].code() != KafkaError.GROUP_ID_NOT_FOUND:
                raise LogError(f"group {name}: {reason_of(settings, error, errors.heard(admin.poll))}") from None
    return found


def session_bounds(settings: KafkaSettings) -> tuple[float, float] | None:
    """The shortest and the longest session (s) that the cluster takes; null where it does not tell us.

    Beyond them it lets nobody into a group, however often it is asked.
    """
    admin, _ = admin_client(settings)
    try:
        brokers = admin.list_topics(timeout=WAIT_S).brokers
        resource = ConfigResource(ResourceType.BROKER, str(min(brokers)))
        (future,) = admin.describe_configs([resource], request_timeout=WAIT_S).values()
        said = future.result()
        low, high = (int(said[name].value) / 1000 for name in _SESSION_MS)
    except (KafkaException, KeyError, TypeError, ValueError):
        # Not everybody may ask, and not every cluster answers.
        return None
    return low, high
