"""The commands of a running pipeline over a Kafka cluster: their arguments, and who runs them."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from schemas.deployment import DEFAULT_PARTITIONS, MOST_PARTITIONS

TOPICS_EXAMPLES = """examples:
  rankwatch topics create --kafka broker1:9092 --partitions 64
  rankwatch topics create --kafka broker1:9092 --topic-prefix recorded. --ticks publisher
  rankwatch topics check --kafka-config client.properties
"""
WORKER_EXAMPLES = """examples:
  rankwatch worker --kafka broker1:9092 --listen :9100
  rankwatch worker --stage rank                   a worker for one stage only; start as many as there is work for
"""
PUBLISH_EXAMPLES = """examples:
  rankwatch publish /logs/job-812345 --kafka broker1:9092 --topic-prefix recorded.
  rankwatch publish /logs/job-1 /logs/job-2       as if both jobs had run side by side, in event time
"""
FEED_EXAMPLES = """examples:
  rankwatch feed --kafka broker1:9092
  rankwatch feed --from-beginning --format json
"""
SINK_EXAMPLES = """examples:
  rankwatch sink --kafka broker1:9092 --clickhouse http://writer:secret@clickhouse1:8123/rankwatch
  rankwatch sink --kafka-config client.properties --listen :9101
"""


Whole = Callable[[str], int]
"""Reads a whole number, or raises ArgumentTypeError."""


def add_commands(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    command: Callable[..., argparse.ArgumentParser],
    positive: Whole,
) -> argparse.ArgumentParser:
    """The parsers of these commands; returns the one that needs a database."""
    _topics_arguments(command(commands, "topics", "make or check the topics of a deployment", TOPICS_EXAMPLES))
    _publish_arguments(command(commands, "publish", "recorded files into Kafka, in event time", PUBLISH_EXAMPLES))
    said = "run the stages over the partitions that the group gives"
    _worker_arguments(command(commands, "worker", said, WORKER_EXAMPLES), positive)
    sink = command(commands, "sink", "store what the stages say in ClickHouse", SINK_EXAMPLES)
    kafka_arguments(sink)
    _service_arguments(sink)
    _feed_arguments(command(commands, "feed", "notices and incidents as they are published", FEED_EXAMPLES))
    return sink


def _topics_arguments(topics: argparse.ArgumentParser) -> None:
    topics.add_argument(
        "action",
        choices=("create", "check", "forget"),
        help="check: ends with 0 where all is as it should be, with 1 where it is not; forget: delete what workers "
        "keep to go on where they stopped, so that they begin again with what the topics still hold; stop them first",
    )
    topics.add_argument(
        "--partitions",
        type=_up_to(MOST_PARTITIONS, "in each window every partition reports to every other"),
        metavar="N",
        help=f"of each topic; fixed for good (default {DEFAULT_PARTITIONS}, at most {MOST_PARTITIONS})",
    )
    topics.add_argument(
        "--ticks",
        choices=("workers", "publisher"),
        help="whose clock counts: the workers' (default), or event time by whoever publishes recordings",
    )
    topics.add_argument(
        "--replication", type=_up_to(100), metavar="N", help="copies of each partition (default 3, or all brokers)"
    )
    topics.add_argument(
        "--retention-days", type=_up_to(36_500), metavar="N", help="how long records are kept (default 7)"
    )
    kafka_arguments(topics)


def _publish_arguments(publish: argparse.ArgumentParser) -> None:
    publish.add_argument("folders", type=Path, nargs="+", metavar="DIR", help="recorded files, of one job or several")
    kafka_arguments(publish)


def _worker_arguments(worker: argparse.ArgumentParser, positive: Whole) -> None:
    worker.add_argument(
        "--stage", choices=("rank", "job", "fleet", "all"), default="all", help="which of them to run (default all)"
    )
    worker.add_argument(
        "--memory-mb", type=positive, default=1024, metavar="N", help="for open windows, about (default 1024)"
    )
    worker.add_argument(
        "--most-poison",
        type=_not_negative,
        default=100,
        metavar="N",
        help="more unreadable records in a row stop it; 0 for no limit (default 100)",
    )
    worker.add_argument(
        "--session-s",
        type=_seconds,
        default=15.0,
        metavar="S",
        help="after which a dead worker is replaced; brokers take no less than 6 unless told so (default 15)",
    )
    worker.add_argument(
        "--library",
        metavar="NAME",
        help="hold jobs against this library of healthy jobs' templates; imported before, the same for all workers",
    )
    kafka_arguments(worker)
    _service_arguments(worker)


def _feed_arguments(feed: argparse.ArgumentParser) -> None:
    feed.add_argument(
        "--from-beginning", action="store_true", help="first what the topics still hold, in order of time"
    )
    feed.add_argument("--format", choices=("text", "json"), default="text", help="json: one object a line")
    kafka_arguments(feed)


def _service_arguments(service: argparse.ArgumentParser) -> None:
    service.add_argument(
        "--patience-s",
        type=_seconds,
        default=300.0,
        metavar="S",
        help="without progress before it ends itself, for others to take over (default 300)",
    )
    service.add_argument("--listen", metavar="HOST:PORT", help="answer /metrics and /healthz there")


def _up_to(most: int, why: str = "") -> Whole:
    """Whole numbers from 1 to ``most``."""

    def number(text: str) -> int:
        if not (text.isascii() and text.isdecimal() and 1 <= int(text[:20]) <= most):
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 to {most}{why and f': {why}'}")
        return int(text)

    return number


def _not_negative(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of at least 0")
    return int(text)


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0.1 <= number <= 86_400:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds from 0.1 to 86400")
    return number


def kafka_arguments(command: argparse.ArgumentParser) -> None:
    """Where the cluster is, and which deployment in it."""
    command.add_argument("--kafka", metavar="HOST:PORT", help="where the cluster is (or $KAFKA_BOOTSTRAP_SERVERS)")
    command.add_argument(
        "--kafka-config", type=Path, metavar="FILE", help="a client.properties, with TLS and SASL settings where needed"
    )
    command.add_argument(
        "--topic-prefix", metavar="TEXT", help="before the names of topics and groups (default rankwatch.)"
    )


def runs(module: str) -> Callable[[argparse.Namespace], int]:
    """Imports a command's module when it is called: `--help` needs none of them."""

    def run(arguments: argparse.Namespace) -> int:
        code: int = import_module(module).run(arguments)
        return code

    return run


COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "topics": runs("rankwatch.topics"),
    "publish": runs("rankwatch.publish"),
    "worker": runs("rankwatch.worker"),
    "sink": runs("rankwatch.store"),
    "feed": runs("rankwatch.feed"),
}
