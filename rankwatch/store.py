"""``rankwatch sink``: what the stages say into ClickHouse."""

from __future__ import annotations

import argparse
import threading
import time
from contextlib import ExitStack

from rankwatch import home
from rankwatch.database import database
from rankwatch.deployments import announce, deployment_of, settings_of
from rankwatch.endpoint import check_address, serving
from rankwatch.errors import UsageError
from rankwatch.guard import guard, trouble_of
from rankwatch.outages import outages_told
from rankwatch.signals import stopping
from sinks.address import check_dsn, safe_dsn, scheme
from sinks.clickhouse import Client
from sinks.errors import SinkError
from sinks.live import NOT_COMMITTED, LiveSink
from sinks.metrics import SinkMetrics
from sinks.migrate import migrate
from sinks.sink import SINK_TOPICS
from streams.ending import say
from streams.log.kafka_group import KafkaGroup
from streams.log.kafka_settings import DEFAULT_PREFIX, KafkaSettings
from streams.outage import Outage
from streams.watchdog import Vitals, Watchdog

GONE = "{} entries were removed from Kafka before they were read, and ClickHouse does not have them"

LAGS_S = 1.0
"""How often it is asked how much is unread."""


def run(arguments: argparse.Namespace) -> int:
    """What the stages say into ClickHouse."""
    # What is wrong with the command is said before anybody is waited for.
    check_address(arguments.listen)
    if arguments.clickhouse == home.NO_DATABASE:
        raise UsageError("sink needs a database: give --clickhouse DSN")
    check_dsn(arguments.clickhouse)
    with deployment_of(arguments):
        settings = settings_of(arguments)
    with ExitStack() as stack:
        stop = stopping()
        client = _database(stack, arguments.clickhouse, stop)
        if client is None:
            return 0
        group = KafkaGroup(settings, "sink", SINK_TOPICS)
        stack.callback(group.close)
        sink = LiveSink(client, group, run_id=run_id_of(settings))
        group.forget = sink.forget
        vitals = Vitals()
        dog = Watchdog(vitals, patience_s=arguments.patience_s, now=time.monotonic())
        metrics = SinkMetrics(sink, lambda: vitals.lags, lambda: group.gone)
        address = stack.enter_context(serving(arguments.listen, [metrics], lambda: sink.trouble or trouble_of([dog])))
        where = f"Kafka at {settings.bootstrap}, ClickHouse at {safe_dsn(arguments.clickhouse)}"
        announce(f"sink, group {settings.prefix}sink, {where}", address)
        outage = stack.enter_context(outages_told(settings))
        guard([dog], lambda: outage.is_on)
        _loop(sink, group, vitals, stop, outage)
        sink.finish()
        say(f"stored {sum(sink.counts.values())} rows")
    return 0


def run_id_of(settings: KafkaSettings) -> str:
    """The run id of a deployment's rows: its prefix, so that several can share a database; empty for the default."""
    return "" if settings.prefix == DEFAULT_PREFIX else settings.prefix


def _loop(sink: LiveSink, group: KafkaGroup, vitals: Vitals, stop: threading.Event, outage: Outage) -> None:
    said = ""
    looked = 0.0
    gone = 0
    while not stop.is_set():
        now = time.monotonic()
        sink.step(now)
        vitals.beats += 1
        vitals.taken = sink.entries
        if now - looked >= LAGS_S:
            looked = now
            vitals.lags = group.lags()
            if group.gone > gone:
                gone = group.gone
                say(GONE.format(gone))
        # While the database is away nothing moves on, and that is no fault of this process.
        vitals.excused = bool(sink.trouble)
        # Of an outage of Kafka the operator is told as such.
        trouble = "" if outage.is_on and sink.trouble == NOT_COMMITTED else sink.trouble
        if trouble != said:
            said = trouble
            say(f"waiting: {said}" if said else "going on")


def _database(stack: ExitStack, dsn: str, stopping: threading.Event) -> Client | None:
    """The database, its tables up to date; a server that is away is waited for, until the process is asked to stop."""
    wait_s, waited_s, said_s = 0.5, 0.0, 0.0
    while not stopping.is_set():
        with ExitStack() as opening:
            try:
                client = opening.enter_context(database(dsn, "sink"))
                migrate(client)
                stack.push(opening.pop_all())
                return client
            except SinkError as error:
                if scheme(dsn) == "chdb":
                    raise
                if waited_s >= said_s:
                    say(f"waiting: {error}{f', for {waited_s:.0f} s now' if waited_s else ''}")
                    said_s = max(2 * waited_s, 30.0)
        stopping.wait(wait_s)
        waited_s += wait_s
        wait_s = min(wait_s * 2, 30.0)
    return None
