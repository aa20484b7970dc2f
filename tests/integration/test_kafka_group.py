"""A member of a group that holds back, loses partitions and gets them again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from kafka_admin import emptied
from kafka_pipeline import Pipeline, pipeline

from streams.log.kafka_group import KafkaGroup
from streams.log.kafka_settings import KafkaSettings

pytestmark = pytest.mark.xdist_group("kafka")
TOPICS = ("late", "windows")


@pytest.fixture
def live(kafka: str, tmp_path: Path) -> Iterator[Pipeline]:
    with pipeline(kafka, tmp_path, partitions=2) as made:
        yield made


def short(settings: KafkaSettings) -> KafkaSettings:
    return msgspec.structs.replace(settings, properties=settings.properties | {"session.timeout.ms": "2000"})


def put(live: Pipeline, *values: str) -> None:
    for value in values:
        for partition in (0, 1):
            live.log.append("late", b"k", value.encode(), {}, 1, partition)
    live.log.flush()


def read_until(group: KafkaGroup, done: Callable[[list[bytes]], bool], hold: bool = False) -> list[bytes]:
    found: list[bytes] = []
    until = time.monotonic() + 30
    while not done(found):
        assert time.monotonic() < until, found
        entries = group.poll(100, 0.1, hold=hold)
        assert not (hold and entries), "a poll that holds back brought something"
        found += [entry.value for _, _, entry in entries]
    return found


def test_what_was_held_back_when_partitions_went_to_another_is_read_afterwards(live: Pipeline) -> None:
    lost: list[int] = []
    first = KafkaGroup(short(live.settings), "sink", TOPICS)
    first.forget = lambda: lost.append(1)
    put(live, "a")
    assert sorted(read_until(first, lambda found: len(found) == 2)) == [b"a", b"a"]
    assert first.commit({("late", 0): 1, ("late", 1): 1})
    second = KafkaGroup(short(live.settings), "sink", TOPICS)
    read_until(first, lambda _: bool(second.poll(10, 0.1)) or len(lost) == 1, hold=True)
    put(live, "b")
    read_until(second, lambda found: first.poll(10, 0.01, hold=True) == [] and len(found) > 0)
    second.close()
    read_until(first, lambda _: len(lost) == 2, hold=True)
    assert sorted(read_until(first, lambda found: len(found) == 2)) == [b"b", b"b"]
    first.close()


def test_what_the_cluster_did_not_keep_is_counted_for_a_group_that_had_begun(live: Pipeline) -> None:
    put(live, "a")
    first = KafkaGroup(short(live.settings), "sink", TOPICS)
    read_until(first, lambda found: len(found) == 2)
    assert first.commit({("late", 0): 1, ("late", 1): 1})
    first.close()
    put(live, "b", "c", "d")
    emptied(live, "late", keep=1)
    again = KafkaGroup(short(live.settings), "sink", TOPICS)
    assert read_until(again, lambda found: len(found) == 2) == [b"d", b"d"]
    assert again.gone == 4
    assert list(again.poll(10, 0.1, hold=True)) == []
    put(live, "e", "f")
    emptied(live, "late", keep=1)
    assert read_until(again, lambda found: len(found) == 2) == [b"f", b"f"]
    assert again.gone == 6
    again.close()
    other = KafkaGroup(short(live.settings), "other", TOPICS)
    assert read_until(other, lambda found: len(found) == 2) == [b"f", b"f"]
    assert other.gone == 0, "nothing was expected before its first entry"
    other.close()


def test_a_short_session_does_not_end_while_its_member_lives(live: Pipeline) -> None:
    lost: list[int] = []
    group = KafkaGroup(short(live.settings), "sink", TOPICS)
    group.forget = lambda: lost.append(1)
    put(live, "a")
    read_until(group, lambda found: len(found) == 2)
    until = time.monotonic() + 4
    while time.monotonic() < until:
        group.poll(10, 0.1)
    assert lost == []
    # It was asked for by the one thread that may wait.
    assert group.lags() == {("late", 0): 0, ("late", 1): 0}
    group.close()
