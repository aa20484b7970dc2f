"""``rankwatch topics``: make or check the topics of a deployment."""

from __future__ import annotations

import argparse

from rankwatch.deployments import deployment_of, settings_of
from schemas.deployment import Deployment
from streams.live import INPUTS
from streams.log.kafka import KafkaLog
from streams.log.kafka_snapshots import KafkaSnapshots
from streams.log.kafka_topics import check_topics, create_topics


def run(arguments: argparse.Namespace) -> int:
    """Make or check the topics."""

    settings = settings_of(arguments)
    if arguments.action == "create":
        wanted = Deployment(partitions=arguments.partitions, ticks=arguments.ticks)
        made = create_topics(
            settings, wanted, replication=arguments.replication, retention_h=arguments.retention_days * 24
        )
        print("\n".join(f"created {name}" for name in made) or "nothing to do")
        return 0
    if arguments.action == "forget":
        with deployment_of(arguments) as (log, there):
            KafkaSnapshots(log).forget(INPUTS, there.partitions)
        print("forgotten: workers that are started from now on begin with what the topics still hold")
        return 0
    log = KafkaLog(settings)
    try:
        problems, deployment = check_topics(log)
    finally:
        log.close()
    for problem in problems:
        print(problem)
    if deployment is not None:
        print(f"{deployment.partitions} partitions, ticks by {deployment.ticks}")
    return 1 if problems else 0
