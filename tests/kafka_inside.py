"""The stages and the sink over Kafka without worker processes, and what a run in memory says of the same log."""

from __future__ import annotations

import time
from collections.abc import Iterable

from kafka_pipeline import Pipeline
from streams_support import CONFIG, raw_of, run

from schemas.topics import RAW_TOPICS
from sinks.clickhouse import open_client
from sinks.live import LiveSink, Pace
from sinks.migrate import migrate
from sinks.sink import SINK_TOPICS
from streams.live import INPUTS, Limits, LiveStages, StageName
from streams.log.kafka_group import KafkaGroup
from streams.log.kafka_snapshots import KafkaSnapshots
from streams.log.memory import MemoryLog


def stages(live: Pipeline, stage: StageName, poison: int = 0) -> LiveStages:
    """The stages of all partitions, begun where their snapshots say."""
    made = LiveStages(stage, live.log, KafkaSnapshots(live.log), CONFIG, Limits(poison=poison))
    made.own(range(live.log.partitions("logs")))
    return made


def drain(live: Pipeline, *running: LiveStages) -> None:
    """Read all that is there, topic after topic, and close what can be closed."""
    for one in running:
        for (topic, number), at in one.next_offsets().items():
            end = live.log.end(topic, number)
            one.take([((topic, number), live.log.read(topic, number, at, end - at) if end > at else [])])
    live.log.flush()


def processed(live: Pipeline) -> None:
    """All stages over all that is there."""
    for stage in INPUTS:
        drain(live, stages(live, stage))


def stored(live: Pipeline, dsn: str, wait_s: float = 30.0) -> LiveSink:
    """Store all that is there, as `rankwatch sink` does."""
    ends = [(topic, n, live.log.end(topic, n)) for topic in SINK_TOPICS for n in range(live.log.partitions(topic))]
    group = KafkaGroup(live.settings, "sink", SINK_TOPICS)
    with open_client(dsn) as client:
        migrate(client)
        sink = LiveSink(client, group, pace=Pace(flush_s=0.2, wait_s=0.05))
        group.forget = sink.forget
        until = time.monotonic() + wait_s
        while sink.entries < sum(end - live.log.begin(topic, n) for topic, n, end in ends) or sink.held:
            assert time.monotonic() < until, (sink.entries, sink.held, sink.trouble)
            sink.step(time.monotonic())
        sink.finish()
        assert sink.trouble == ""
    group.close()
    return sink


def in_memory(live: Pipeline) -> MemoryLog:
    """A log in memory with the same raw entries at the same offsets, run through both stages."""
    memory = MemoryLog(live.log.partitions("logs"))
    copy(live, memory, RAW_TOPICS)
    assert [len(entries) for entries in raw_of(memory).values()] == [
        live.log.end(topic, n) for topic in RAW_TOPICS for n in range(live.log.partitions(topic))
    ]
    run(memory, CONFIG)
    return memory


def copy(live: Pipeline, memory: MemoryLog, topics: Iterable[str]) -> None:
    for topic in topics:
        for number in range(live.log.partitions(topic)):
            for entry in live.log.read(topic, number, 0, live.log.end(topic, number)):
                memory.append(topic, entry.key, entry.value, entry.headers, entry.time, number)
