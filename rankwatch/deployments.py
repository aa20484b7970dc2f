"""The deployment that a command works with."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager

from rankwatch.errors import UsageError
from schemas.deployment import Deployment, Ticks
from schemas.topics import TOPICS
from streams.ending import say
from streams.log.kafka import KafkaLog
from streams.log.kafka_settings import KafkaSettings, kafka_settings
from streams.log.kafka_topics import open_deployment

SEPARATORS = (".", "-", "_")


def settings_of(arguments: argparse.Namespace) -> KafkaSettings:
    """Where the cluster is, from the command line, the file it names and the environment."""
    settings = kafka_settings(arguments.kafka, arguments.kafka_config, os.environ, arguments.topic_prefix)
    check_prefix(settings.prefix)
    return settings


def check_prefix(prefix: str) -> None:
    """Raise UsageError for a prefix under which topics of two deployments could have one name.

    With a separator at the end, names under two prefixes can only be equal where a topic's own name has one in it.
    """
    if not prefix.endswith(SEPARATORS):
        raise UsageError(f"topic prefix {prefix!r}: it has to end in '.', '-' or '_', as in '{prefix or 'recorded'}.'")
    for head in sorted({name[: -len(rest)] for name in TOPICS for rest in TOPICS if name.endswith(rest)} - {""}):
        if prefix.removesuffix(head) != prefix and prefix.removesuffix(head).endswith(SEPARATORS):
            raise UsageError(
                f"topic prefix {prefix!r}: {prefix}* are topics of the prefix {prefix.removesuffix(head)!r}; "
                "take another one"
            )


@contextmanager
def deployment_of(arguments: argparse.Namespace, ticks: Ticks = "workers") -> Iterator[tuple[KafkaLog, Deployment]]:
    """The log of the deployment, its topics checked; ``ticks`` is what to make it with, should it be missing."""
    log, deployment = open_deployment(settings_of(arguments), ticks)
    try:
        yield log, deployment
    finally:
        log.close()


def announce(text: str, address: str) -> None:
    """Say on stderr that a service runs, and where its endpoint is."""
    where = f"; http://{address}/metrics" if address else ""
    say(f"{text}{where}")
