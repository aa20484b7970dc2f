"""``rankwatch worker``: the stages of the partitions that the group gives to this process."""

from __future__ import annotations

import argparse
import time
from contextlib import ExitStack

import streams.detectors  # noqa: F401  (registers all detectors)
from rankwatch.deployments import announce, deployment_of, settings_of
from rankwatch.endpoint import check_address, serving
from rankwatch.errors import UsageError
from rankwatch.guard import guard, trouble_of
from rankwatch.letters import DeadLetters, tell_dead_letters
from rankwatch.meta_teller import tell_meta
from rankwatch.outages import outages_told
from streams import app
from streams.config import StreamConfig
from streams.ending import say
from streams.library.known import Known
from streams.live import INPUTS, Limits, LiveStages, StageName
from streams.log.kafka import KafkaLog
from streams.log.kafka_admin import SESSION_S, session_bounds
from streams.log.kafka_library import stored_library
from streams.log.kafka_settings import KafkaSettings
from streams.log.kafka_snapshots import KafkaSnapshots
from streams.metrics import WorkerMetrics
from streams.watchdog import Watchdog

DECODED = 4
"""How much more memory decoded events take than their bytes in the log, about."""

TICK_S = 1.0
"""How often the owner of a partition appends the time, where the workers' clock counts."""


def run(arguments: argparse.Namespace) -> int:
    """The stages of the partitions that the group gives to this process."""
    check_address(arguments.listen)
    if arguments.library and arguments.stage not in ("job", "all"):
        raise UsageError(f"a worker for stage {arguments.stage} has no use for --library")
    with deployment_of(arguments) as (log, deployment):
        settings = settings_of(arguments)
        known = Known(stored_library(log, arguments.library)) if arguments.library else None
        _check_session(settings, arguments.session_s)
    names: tuple[StageName, ...] = tuple(INPUTS) if arguments.stage == "all" else (arguments.stage,)
    limits = Limits(held_bytes=arguments.memory_mb * 1024 * 1024 // DECODED // len(names), poison=arguments.most_poison)
    wirings, measured, dogs = [], [], []
    for name in names:
        log = KafkaLog(settings)
        live = LiveStages(name, log, KafkaSnapshots(log), StreamConfig(), limits, known)
        ticks = TICK_S if name == "rank" and deployment.ticks == "workers" else 0.0
        options = app.WorkerOptions(tick_s=ticks, session_s=arguments.session_s, heartbeat_s=arguments.session_s / 5)
        wiring = app.Wiring(live, settings, options)
        wirings.append(wiring)
        measured.append((live, wiring.vitals))
        dogs.append(Watchdog(wiring.vitals, patience_s=arguments.patience_s, now=time.monotonic()))
    with ExitStack() as stack:
        address = stack.enter_context(serving(arguments.listen, [WorkerMetrics(measured)], lambda: trouble_of(dogs)))
        against = f", library {known.label}" if known else ""
        stages_said = "all stages" if arguments.stage == "all" else f"stage {arguments.stage}"
        announce(
            f"worker for {stages_said}, group {settings.prefix}*, Kafka at {settings.bootstrap}{against}",
            address,
        )
        stages = [live for live, _ in measured]
        tell_dead_letters(DeadLetters(stages, settings.full("dead-letters")))
        tell_meta(stages, settings, lambda: trouble_of(dogs), follows_clock=deployment.ticks == "workers")
        outage = stack.enter_context(outages_told(settings))
        guard(dogs, lambda: outage.is_on)
        app.run(wirings, lambda: outage.is_on)
    return 0


def _check_session(settings: KafkaSettings, session_s: float) -> None:
    """A session that the brokers do not take would be asked for again and again, in silence."""
    known = session_bounds(settings)
    low, high = known or SESSION_S
    if low <= session_s <= high:
        return
    takes = f"sessions of {low:g} to {high:g} seconds"
    if known:
        raise UsageError(f"--session-s {session_s:g}: the brokers take {takes}")
    say(f"--session-s {session_s:g}: brokers take {takes} unless they are told otherwise, and these do not say")
