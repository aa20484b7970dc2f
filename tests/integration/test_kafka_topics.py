"""The topics of a deployment: made once, compared with what everybody expects, and the snapshots in one of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from kafka_admin import altered, deleted, emptied, widened
from kafka_pipeline import Pipeline, pipeline

from schemas.codec import headers
from schemas.deployment import Deployment
from schemas.ports import LogError
from schemas.results import Snapshot
from schemas.topics import MIB, TOPICS
from streams.log.kafka_snapshots import KafkaSnapshots
from streams.log.kafka_topics import check_topics, create_topics
from streams.snapshots import SnapshotError

pytestmark = pytest.mark.xdist_group("kafka")


@pytest.fixture
def live(kafka: str, tmp_path: Path) -> Iterator[Pipeline]:
    with pipeline(kafka, tmp_path, partitions=2) as made:
        yield made


def snapshot(number: int, stage: str = "rank", text: str = "") -> Snapshot:
    state = msgspec.Raw(msgspec.json.encode({"n": number, "text": text}))
    return Snapshot(stage=stage, partition=1, end=number, config="c", offsets={"logs|1": number}, state=state)


def test_topics_are_made_once_and_another_deployment_is_refused(live: Pipeline) -> None:
    assert create_topics(live.settings, Deployment(partitions=2, ticks="publisher")) == []
    for other in (Deployment(partitions=3, ticks="publisher"), Deployment(partitions=2, ticks="workers")):
        with pytest.raises(LogError, match="2 partitions and ticks by publisher is there already"):
            create_topics(live.settings, other)
    assert check_topics(live.log) == ([], Deployment(partitions=2, ticks="publisher"))


def test_a_check_names_each_topic_that_is_not_as_it_should_be(live: Pipeline) -> None:
    prefix = live.settings.prefix
    altered(live, "windows", {"max.message.bytes": str(MIB)})
    assert check_topics(live.log)[0] == [f"topic {prefix}windows takes records of {MIB} bytes, {8 * MIB} are needed"]
    widened(live, "stacks", 3)
    deleted(live, "late", "snapshots")
    problems, deployment = check_topics(live.log)
    assert problems == [
        f"topic {prefix}stacks has 3 partitions, the deployment 2",
        f"topic {prefix}late is missing; `rankwatch topics create` makes it",
        f"topic {prefix}snapshots is missing; `rankwatch topics create` makes it",
    ]
    assert deployment == Deployment(partitions=2, ticks="publisher")
    made = create_topics(live.settings, deployment)
    assert sorted(made) == [f"{prefix}late", f"{prefix}snapshots"]


def test_topics_that_nobody_described_are_no_deployment(live: Pipeline) -> None:
    altered(live, "deployment", {"cleanup.policy": "delete"})
    emptied(live, "deployment")
    said, deployment = check_topics(live.log)
    assert deployment is None and "deployment is empty" in said[0]
    assert create_topics(live.settings, Deployment(partitions=2, ticks="publisher")) == []
    problem = f"topic {live.settings.prefix}deployment has cleanup.policy delete, not compact"
    assert check_topics(live.log) == ([problem], Deployment(partitions=2, ticks="publisher"))
    altered(live, "deployment", {"cleanup.policy": "compact"})
    assert check_topics(live.log)[0] == []


def test_the_latest_snapshot_of_a_stage_is_found_wherever_it_lies(live: Pipeline) -> None:
    store = KafkaSnapshots(live.log)
    assert store.load("rank", 1) is None
    for number in range(3):
        store.save(snapshot(number))
    for number in range(700):
        live.log.append("snapshots", b"job|1", msgspec.json.encode(snapshot(number, "job")), headers("snapshot"), 0, 1)
    live.log.flush()
    assert store.load("rank", 1) == snapshot(2)
    assert store.load("job", 1) == snapshot(699, "job")
    assert store.load("job", 0) is None


def test_a_snapshot_of_twenty_megabytes_comes_back_and_a_damaged_one_says_so(live: Pipeline) -> None:
    store = KafkaSnapshots(live.log)
    large = snapshot(7, text=os.urandom(10 * MIB).hex())
    store.save(large)
    assert store.load("rank", 1) == large
    with pytest.raises(LogError, match="more than topic snapshots takes"):
        store.save(snapshot(8, text="x" * TOPICS["snapshots"].most_bytes))
    assert store.load("rank", 1) == large
    live.log.append("snapshots", b"rank|1", b'{"stage": "rank", "part', headers("snapshot"), 0, 1)
    live.log.flush()
    with pytest.raises(SnapshotError, match="the snapshot of rank 1 cannot be read"):
        store.load("rank", 1)


def test_a_snapshot_that_was_deleted_is_none(live: Pipeline) -> None:
    store = KafkaSnapshots(live.log)
    store.save(snapshot(1))
    live.log.append("snapshots", b"rank|1", b"", headers("snapshot"), 0, 1)
    live.log.flush()
    assert store.load("rank", 1) is None
