"""The commands of a running pipeline over a Kafka cluster: their arguments, and who runs them."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

DEFAULT_PARTITIONS = 8
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


def add_commands(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    command: Callable[..., argparse.ArgumentParser],
    positive: Callable[[str], int],
) -> argparse.ArgumentParser:
    """The parsers of these commands; returns the one that needs a database."""
    topics = command(commands, "topics", "make or check the topics of a deployment", TOPICS_EXAMPLES)
    topics.add_argument(
        "action", choices=("create", "check", "forget"), help="forget: what the stages wrote down of themselves"
    )
    topics.add_argument(
        "--partitions", type=positive, default=DEFAULT_PARTITIONS, help="of each topic; fixed for good (default 8)"
    )
    topics.add_argument(
        "--ticks",
        choices=("workers", "publisher"),
        default="workers",
        help="whose clock counts: the workers' (default), or event time by whoever publishes recordings",
    )
    topics.add_argument("--replication", type=positive, help="copies of each partition (default 3, or all brokers)")
    topics.add_argument("--retention-days", type=positive, default=7, help="how long records are kept (default 7)")
    publish = command(commands, "publish", "recorded files into Kafka, in event time", PUBLISH_EXAMPLES)
    publish.add_argument("folders", type=Path, nargs="+", metavar="DIR", help="recorded files, of one job or several")
    worker = command(commands, "worker", "run the stages over the partitions that the group gives", WORKER_EXAMPLES)
    worker.add_argument("--stage", choices=("rank", "job", "both"), default="both", help="(default both)")
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
        help="after which a dead worker is replaced (default 15)",
    )
    sink = command(commands, "sink", "store what the stages say in ClickHouse", SINK_EXAMPLES)
    feed = command(commands, "feed", "notices and incidents as they are published", FEED_EXAMPLES)
    feed.add_argument("--from-beginning", action="store_true", help="first what the topics still hold")
    feed.add_argument("--format", choices=("text", "json"), default="text", help="json: one object a line")
    for one in (topics, publish, worker, sink, feed):
        _kafka_arguments(one)
    for one in (worker, sink):
        one.add_argument(
            "--patience-s",
            type=_seconds,
            default=300.0,
            metavar="S",
            help="without progress before it ends itself, for others to take over (default 300)",
        )
        one.add_argument("--listen", metavar="HOST:PORT", help="answer /metrics and /healthz there")
    return sink


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


def _kafka_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--kafka", metavar="HOST:PORT", help="where the cluster is (or $KAFKA_BOOTSTRAP_SERVERS)")
    command.add_argument(
        "--kafka-config", type=Path, metavar="FILE", help="a client.properties, with TLS and SASL settings where needed"
    )
    command.add_argument(
        "--topic-prefix", metavar="TEXT", help="before the names of topics and groups (default rankwatch.)"
    )


def _runs(module: str) -> Callable[[argparse.Namespace], int]:
    """Imports a command's module when it is called: `--help` needs none of them."""

    def run(arguments: argparse.Namespace) -> int:
        code: int = import_module(module).run(arguments)
        return code

    return run


COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "topics": _runs("rankwatch.topics"),
    "publish": _runs("rankwatch.publish"),
    "worker": _runs("rankwatch.worker"),
    "sink": _runs("rankwatch.store"),
    "feed": _runs("rankwatch.feed"),
}
