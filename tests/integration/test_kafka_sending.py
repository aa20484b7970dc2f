"""A node's producer over Kafka, with its disk spool: through an outage, restarts and refusals every event arrives."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from kafka_admin import deleted
from kafka_node import SMALL, node
from kafka_pipeline import Pipeline, pipeline
from kafka_support import Broker
from outgoing_support import dropped
from streams_support import worker

from producers.outgoing.sender import Sender
from schemas.codec import decode
from schemas.events import Log, Metric
from streams.log.kafka_settings import KafkaSettings
from streams.log.kafka_transport import KafkaTransport

pytestmark = pytest.mark.xdist_group("kafka")


def unordered(live: Pipeline, topic: str = "logs") -> Iterator[tuple[tuple[str, str, int], Any]]:
    """All that arrived, by partition, with what names a batch."""
    for number in range(live.log.partitions(topic)):
        for entry in live.log.read(topic, number, 0, live.log.end(topic, number)):
            batch = decode(entry.headers["schema"], entry.value)
            yield (batch.producer, batch.boot, batch.seq), batch


def batches(live: Pipeline, topic: str = "logs") -> dict[tuple[str, str, int], Any]:
    """What arrived, each batch once; all copies of one are equal, and a worker's stand in order."""
    found: dict[tuple[str, str, int], Any] = {}
    newest: Counter[tuple[str, str]] = Counter()
    for name, batch in unordered(live, topic):
        assert found.setdefault(name, batch) == batch
        lane = (batch.identity.key, batch.boot)
        assert batch.seq >= newest[lane], "an older batch behind a newer one"
        newest[lane] = batch.seq
    return found


def texts(live: Pipeline) -> list[str]:
    return sorted(event.text.split()[0] for batch in batches(live).values() for event in batch.events)


def test_every_event_arrives_through_outage_and_restart_and_no_caller_waits(broker: Broker, tmp_path: Path) -> None:
    root = tmp_path / "spool"
    with pipeline(broker.address, tmp_path, partitions=2) as live:
        with node(live.settings, root, "b1") as first:
            first.log_for(0.5)
            broker.stop(kill=True)
            first.log_for(3)
        # What the first could not send lies on disk; the next boot begins in the same outage.
        assert first.sender.counters.spooled_records > 0
        with node(live.settings, root, "b2") as second:
            second.log_for(1)
            broker.start()
            second.log_for(0.5)
            second.until_idle()
        wanted = [f"{boot}/{n}" for boot, one in (("b1", first), ("b2", second)) for n in range(one.added)]
        assert texts(live) == sorted(wanted)
        for one in (first, second):
            assert dropped(one.sender.counters) == {}
            assert one.slowest_s < 0.5, "a caller was made to wait"
            assert one.most_memory <= SMALL.open_bytes + SMALL.inbox_bytes + SMALL.flight_bytes
        assert list(root.glob("*.spool")) == []


def test_what_is_too_large_is_cut_or_becomes_a_dead_letter_and_holds_nobody_up(kafka: str, tmp_path: Path) -> None:
    with pipeline(kafka, tmp_path, partitions=2) as live:
        with node(live.settings, tmp_path / "spool") as one:
            one.log()
            one.log("x" * 5_000_000)
            metric = Metric(time=1, name="y" * 3_000_000, value=1.0)
            one.sender.add(worker("job", 1), metric, time.time_ns())
            one.log()
            one.until_idle()
        assert texts(live) == ["b1/0", "b1/1", "b1/2"]
        assert any("characters cut" in event.text for batch in batches(live).values() for event in batch.events)
        assert batches(live, "metrics") == {}
        (letter,) = [
            decode("dead_letter", entry.value) for n in (0, 1) for entry in live.log.read("dead-letters", n, 0, 9)
        ]
        assert (letter.topic, letter.stage) == ("metrics", "producer") and "too large for a record" in letter.reason
        assert one.sender.counters.letters == 1


def test_a_topic_that_is_gone_is_a_dead_letter_and_the_others_go_on(kafka: str, tmp_path: Path) -> None:
    with pipeline(kafka, tmp_path, partitions=2) as live:
        deleted(live, "metrics")
        hasty = live.settings.properties | {"topic.metadata.propagation.max.ms": "1000"}
        with node(msgspec.structs.replace(live.settings, properties=hasty), tmp_path / "spool") as one:
            one.sender.add(worker("job", 1), Metric(time=1, name="m", value=1.0), time.time_ns())
            one.log()
            one.until_idle()
        assert texts(live) == ["b1/0"]
        assert dropped(one.sender.counters) == {"refused": (1, 1)}, one.said
        (letter,) = [
            decode("dead_letter", entry.value) for n in (0, 1) for entry in live.log.read("dead-letters", n, 0, 9)
        ]
        assert letter.reason.startswith("unknown topic: ")


def test_a_producer_that_cannot_go_on_is_replaced_and_nothing_is_lost(kafka: str, tmp_path: Path) -> None:
    # With it a record that is given up while it is with the broker is an error that ends the client.
    strict = {"bootstrap.servers": kafka, "enable.gapless.guarantee": "true", "linger.ms": "0"}
    config = msgspec.structs.replace(SMALL, lane_records=50)
    with pipeline(kafka, tmp_path, partitions=2) as live:
        transport = KafkaTransport(KafkaSettings(strict, live.settings.prefix), timeout_s=5.0)
        sender = Sender("node", "b1", transport, tmp_path / "spool", config)
        until = time.monotonic() + 30
        added = 0
        while transport.rebuilt < 2 or not sender.outbox.idle:
            assert time.monotonic() < until, (sender.counters, transport.rebuilt)
            if transport.rebuilt < 2:
                for _ in range(50):
                    event = Log(time=1, stream="stdout", text=f"b1/{added} {os.urandom(9_000).hex()}")
                    sender.add(worker("job", 0), event, time.time_ns())
                    added += 1
                sender.flush(time.time_ns())
                sender.pump(time.time_ns())
                time.sleep(0.020 + added // 50 % 20 / 1_000)
                transport._producer.purge()
            sender.pump(time.time_ns())
            time.sleep(0.005)
        sender.close(time.time_ns())
        transport.close(1.0)
        found = dict(unordered(live))
        said = sorted(event.text.split()[0] for batch in found.values() for event in batch.events)
        assert said == sorted(f"b1/{n}" for n in range(added))
        assert dropped(sender.counters) == {}
