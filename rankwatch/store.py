"""``rankwatch sink``: what the stages say into ClickHouse."""

from __future__ import annotations

import argparse
import threading
import time
from contextlib import ExitStack
from functools import partial

from rankwatch import home
from rankwatch.database import database
from rankwatch.deployments import announce, deployment_of, settings_of
from rankwatch.endpoint import check_address, serving
from rankwatch.errors import UsageError
from rankwatch.guard import guard, trouble_of
from rankwatch.meta_teller import tell_sink_meta
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
        stop, standing = stopping(), Standing()
        vitals = Vitals()
        metrics = SinkMetrics(
            lambda: standing.sink, lambda: bool(standing.trouble), lambda: vitals.lags, lambda: standing.gone
        )
        # Asked for before there is a database: it may never be there.
        address = stack.enter_context(serving(arguments.listen, [metrics], partial(_health, standing)))
        outage = stack.enter_context(outages_told(settings))
        tell_sink_meta(settings, lambda: standing.trouble)
        client = _database(stack, arguments.clickhouse, stop, standing)
        if client is None:
            return 0
        group = KafkaGroup(settings, "sink", SINK_TOPICS)
        stack.callback(group.close)
        sink = standing.sink = LiveSink(client, group, run_id=run_id_of(settings))
        group.forget = sink.forget
        where = f"Kafka at {settings.bootstrap}, ClickHouse at {safe_dsn(arguments.clickhouse)}"
        announce(f"sink, group {settings.prefix}sink, {where}", address)
        # Only from now on it can stand still.
        standing.dogs = [Watchdog(vitals, patience_s=arguments.patience_s, now=time.monotonic())]
        guard(standing.dogs, lambda: outage.is_on)
        _loop(sink, group, vitals, stop, outage, standing)
        sink.finish()
        say(f"stored {sum(sink.counts.values())} rows")
    return 0


class Standing:
    """How the sink stands, for whoever asks from another thread; null is one that has not reached its database yet.

    ``trouble`` is why nothing is stored now, empty while all is well; ``gone`` how many entries were never read.
    """

    def __init__(self) -> None:
        self.sink: LiveSink | None = None
        self.dogs: list[Watchdog] = []
        self.trouble = ""
        self.gone = 0


def _health(standing: Standing) -> str:
    """What is wrong with it."""
    waits = standing.trouble if standing.sink is None else standing.sink.trouble
    return waits or trouble_of(standing.dogs)


def run_id_of(settings: KafkaSettings) -> str:
    """The run id of a deployment's rows: its prefix, so that several can share a database; empty for the default."""
    return "" if settings.prefix == DEFAULT_PREFIX else settings.prefix


def _loop(
    sink: LiveSink, group: KafkaGroup, vitals: Vitals, stop: threading.Event, outage: Outage, standing: Standing
) -> None:
    looked = 0.0
    while not stop.is_set():
        now = time.monotonic()
        sink.step(now)
        vitals.beats += 1
        vitals.taken = sink.entries
        if now - looked >= LAGS_S:
            looked = now
            vitals.lags = group.lags()
            if group.gone > standing.gone:
                standing.gone = group.gone
                say(GONE.format(standing.gone))
        # While the database is away nothing moves on, and that is no fault of this process.
        vitals.excused = bool(sink.trouble)
        # Of an outage of Kafka the operator is told as such.
        trouble = "" if outage.is_on and sink.trouble == NOT_COMMITTED else sink.trouble
        if trouble != standing.trouble:
            standing.trouble = trouble
            say(f"waiting: {trouble}" if trouble else "going on")


def _database(stack: ExitStack, dsn: str, stopping: threading.Event, standing: Standing) -> Client | None:
    """The database, its tables up to date; a server that is away is waited for, until the process is asked to stop."""
    wait_s, waited_s, said_s = 0.5, 0.0, 0.0
    while not stopping.is_set():
        with ExitStack() as opening:
            try:
                client = opening.enter_context(database(dsn, "sink"))
                migrate(client)
                stack.push(opening.pop_all())
                standing.trouble = ""
                return client
            except SinkError as error:
                if scheme(dsn) == "chdb":
                    raise
                standing.trouble = str(error)
                if waited_s >= said_s:
                    lasts = f"for {waited_s:.0f} s now" if waited_s else "nothing is stored until it answers"
                    say(f"waiting: {error}; {lasts}")
                    said_s = max(2 * waited_s, 30.0)
        stopping.wait(wait_s)
        waited_s += wait_s
        wait_s = min(wait_s * 2, 30.0)
    return None
