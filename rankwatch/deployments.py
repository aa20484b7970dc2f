"""The deployment that a command works with."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from schemas.deployment import Deployment
from streams.log.kafka import KafkaLog
from streams.log.kafka_settings import KafkaSettings, kafka_settings
from streams.log.kafka_topics import open_deployment


def settings_of(arguments: argparse.Namespace) -> KafkaSettings:
    """Where the cluster is, from the command line, the file it names and the environment."""
    return kafka_settings(arguments.kafka, arguments.kafka_config, os.environ, arguments.topic_prefix)


@contextmanager
def deployment_of(arguments: argparse.Namespace) -> Iterator[tuple[KafkaLog, Deployment]]:
    """The log of the deployment, its topics checked."""
    log, deployment = open_deployment(settings_of(arguments))
    try:
        yield log, deployment
    finally:
        log.close()


def announce(text: str, address: str) -> None:
    """Say on stderr that a service runs, and where its endpoint is."""
    where = f"; http://{address}/metrics" if address else ""
    print(f"rankwatch: {text}{where}", file=sys.stderr, flush=True)
