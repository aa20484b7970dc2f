"""A log in a real Kafka cluster behaves as the log in memory does, and other clients agree about what lies in it."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Iterator
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from confluent_kafka import Producer
from kafka_pipeline import Pipeline, pipeline

from schemas.ports import Entry, TooLargeError
from schemas.topics import MIB, OVERHEAD, TOPICS
from streams.log.memory import MemoryLog
from streams.log.partition import partition_of

pytestmark = pytest.mark.xdist_group("kafka")
PARTITIONS = 4
SENT = 1_795_975_830_123_456_789
HEADERS = {"schema": "log", "version": "1"}


@pytest.fixture(scope="module")
def live(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    with pipeline(kafka, tmp_path_factory.mktemp("log"), partitions=PARTITIONS) as made:
        yield made


def everything(log: Any, topic: str) -> list[list[Entry]]:
    return [list(log.read(topic, n, 0, log.end(topic, n))) for n in range(log.partitions(topic))]


def test_what_was_appended_is_read_as_from_memory(live: Pipeline) -> None:
    chance = random.Random(1)
    memory = MemoryLog(PARTITIONS)
    for number in range(400):
        key = f"job-ä|{chance.randrange(40)}".encode()
        value = chance.randbytes(chance.choice([0, 1, 100, 5_000]))
        headers = HEADERS | {"n": f"{number} ü"}
        forced = number % PARTITIONS if number % 5 == 0 else None
        for log in (memory, live.log):
            log.append("logs", b"" if number % 10 == 0 else key, value, headers, SENT + number, forced)
    live.log.flush()
    assert everything(live.log, "logs") == everything(memory, "logs")


def test_a_key_goes_to_its_partition_even_if_it_is_empty(live: Pipeline) -> None:
    keys = [b"", b"a", *(f"job|{n}".encode() for n in range(20))]
    for key in keys * 3:
        live.log.append("alerts", key, b"v", HEADERS, SENT)
    live.log.flush()
    for number, entries in enumerate(everything(live.log, "alerts")):
        assert [entry.key for entry in entries] == [k for k in keys * 3 if partition_of(k, PARTITIONS) == number]


def test_reads_keep_to_their_limits_and_bring_nothing_from_the_end_on(live: Pipeline) -> None:
    for number in range(1_200):
        live.log.append("metrics", b"k", str(number).encode(), HEADERS, SENT, 2)
    live.log.flush()
    assert (live.log.begin("metrics", 2), live.log.end("metrics", 2)) == (0, 1_200)
    assert (live.log.begin("metrics", 1), live.log.end("metrics", 1)) == (0, 0)
    for offset, limit in ((0, 1), (0, 1_200), (7, 600), (1_199, 50), (1_200, 10), (5_000, 10), (0, 0)):
        found = live.log.read("metrics", 2, offset, limit)
        wanted = list(range(offset, min(offset + limit, 1_200)))
        assert [(entry.offset, int(entry.value)) for entry in found] == [(n, n) for n in wanted]
    assert live.log.read("metrics", 1, 0, 10) == []


def test_the_largest_record_that_is_not_refused_at_once_is_taken_by_the_broker(live: Pipeline) -> None:
    for topic in ("heartbeats", "windows"):
        most = TOPICS[topic].most_bytes - OVERHEAD - 3
        with pytest.raises(TooLargeError, match=f"more than topic {topic} takes"):
            live.log.append(topic, b"key", bytes(most + 1), HEADERS, SENT, 0)
        live.log.append(topic, b"key", random.Random(2).randbytes(most), HEADERS, SENT, 0)
        live.log.flush()
        assert [len(entry.value) for entry in live.log.read(topic, 0, 0, 10)] == [most]


def test_records_of_foreign_producers_were_sent_at_kafkas_timestamp(live: Pipeline) -> None:
    name = live.log.name_of("stacks")
    foreign = Producer({"bootstrap.servers": live.settings.bootstrap})
    foreign.produce(name, b"none", partition=0, timestamp=1_795_975_830_123)
    foreign.produce(name, None, key=b"tombstone", partition=0, timestamp=1_795_975_830_124)
    for said in (b"17", b"soon", b"-5", b"9" * 19, b"1" * 30, b"\xff", None):
        foreign.produce(name, b"v", partition=0, timestamp=1_795_975_830_125, headers=[("time", said), ("x", None)])
    assert foreign.flush(10) == 0
    first, second, *others = live.log.read("stacks", 0, 0, 100)
    assert first == Entry(0, b"", b"none", {}, 1_795_975_830_123_000_000)
    assert second == Entry(1, b"tombstone", b"", {}, 1_795_975_830_124_000_000)
    # What no clock shows is no time.
    assert [entry.time for entry in others] == [17] + [1_795_975_830_125_000_000] * 6
    assert all(entry.headers == {"x": ""} for entry in others)


@pytest.mark.parametrize("compression", ["lz4", "gzip", "none"])
def test_aiokafka_and_confluent_read_what_the_other_compressed(live: Pipeline, compression: str) -> None:
    topic = {"lz4": "profiles", "gzip": "jobs", "none": "topology"}[compression]
    values = [os.urandom(200), b"text " * 20_000, b"", b"x" * 900_000]
    headers = [("schema", b"profile"), ("time", str(SENT).encode())]

    async def exchange() -> list[tuple[bytes, Any]]:
        name = live.log.name_of(topic)
        kind = None if compression == "none" else compression
        async with AIOKafkaProducer(
            bootstrap_servers=live.settings.bootstrap, compression_type=kind, max_request_size=MIB
        ) as producer:
            for value in values:
                await producer.send_and_wait(name, value, b"theirs", partition=0, headers=headers)
        for value in values:
            live.log.append(topic, b"ours", value, HEADERS, SENT, 1)
        live.log.flush()
        consumer = AIOKafkaConsumer(bootstrap_servers=live.settings.bootstrap, auto_offset_reset="earliest")
        consumer.assign([TopicPartition(name, 1)])
        async with consumer:
            return [(message.value, message.headers) for message in [await consumer.getone() for _ in values]]

    taken = asyncio.run(exchange())
    assert [entry.value for entry in live.log.read(topic, 0, 0, 10)] == values
    assert {entry.time for entry in live.log.read(topic, 0, 0, 10)} == {SENT}
    assert [value for value, _ in taken] == values
    assert taken[0][1] == (("schema", b"log"), ("version", b"1"), ("time", str(SENT).encode()))
