"""``rankwatch topics``: make the topics of a deployment, check them, or let its stages begin anew."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import closing

from rankwatch.deployments import deployment_of, settings_of
from rankwatch.errors import UsageError
from schemas.deployment import DEFAULT_PARTITIONS, Deployment
from streams.live import INPUTS
from streams.log.kafka import KafkaLog
from streams.log.kafka_admin import groups_with_members
from streams.log.kafka_settings import KafkaSettings
from streams.log.kafka_snapshots import KafkaSnapshots
from streams.log.kafka_topics import check_topics, create_topics, written_deployment

DEFAULT_RETENTION_DAYS = 7

OPTIONS = {"create": ("partitions", "ticks", "replication", "retention_days"), "check": ("partitions", "ticks")}
"""What each action can be told."""


def run(arguments: argparse.Namespace) -> int:
    """Make, check or forget."""
    for name in OPTIONS["create"]:
        if getattr(arguments, name) is not None and name not in OPTIONS.get(arguments.action, ()):
            raise UsageError(f"topics {arguments.action} has no use for --{name.replace('_', '-')}")
    return ACTIONS[arguments.action](arguments, settings_of(arguments))


def _create(arguments: argparse.Namespace, settings: KafkaSettings) -> int:
    """Make what is missing; what is not said is as in the deployment that is there."""
    with closing(KafkaLog(settings)) as log:
        there = written_deployment(log) or Deployment(partitions=DEFAULT_PARTITIONS)
    wanted = Deployment(partitions=arguments.partitions or there.partitions, ticks=arguments.ticks or there.ticks)
    days = arguments.retention_days or DEFAULT_RETENTION_DAYS
    made = create_topics(settings, wanted, replication=arguments.replication, retention_h=days * 24)
    print("\n".join(f"created {name}" for name in made) or "nothing to do")
    return 0


def _check(arguments: argparse.Namespace, settings: KafkaSettings) -> int:
    """Say what is wrong and what was fixed at creation; 1 if anything is wrong."""
    with closing(KafkaLog(settings)) as log:
        problems, there = check_topics(log, arguments.ticks or "workers")
    if there is not None:
        problems = [*_differences(arguments, there), *problems]
    for problem in problems:
        print(problem)
    if there is not None:
        print(f"{there.partitions} partitions, ticks by {there.ticks}")
    return 1 if problems else 0


def _differences(arguments: argparse.Namespace, there: Deployment) -> Iterator[str]:
    if arguments.partitions not in (None, there.partitions):
        yield f"the deployment has {there.partitions} partitions, not {arguments.partitions}"
    if arguments.ticks not in (None, there.ticks):
        yield f"the deployment has ticks by {there.ticks}, not by {arguments.ticks}"


def _forget(arguments: argparse.Namespace, settings: KafkaSettings) -> int:
    """Delete what the stages wrote down of themselves, unless they run."""
    with deployment_of(arguments) as (log, there):
        busy = groups_with_members(settings, [settings.full(stage) for stage in INPUTS])
        if busy:
            named = f"groups {' and '.join(busy)} have" if len(busy) > 1 else f"group {busy[0]} has"
            raise UsageError(
                f"workers are running, and would write down again what is forgotten: {named} members; "
                "stop them first (one that was killed is a member until its session ends)"
            )
        KafkaSnapshots(log).forget(INPUTS, there.partitions)
    print("forgotten: workers that are started from now on begin with what the topics still hold")
    return 0


ACTIONS: dict[str, Callable[[argparse.Namespace, KafkaSettings], int]] = {
    "create": _create,
    "check": _check,
    "forget": _forget,
}
