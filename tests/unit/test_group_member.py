"""A group's member without a broker: it may hold back, lose partitions and get them in any order."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from streams.log import kafka_group
from streams.log.kafka_group import KafkaGroup
from streams.log.kafka_settings import KafkaSettings

PLACES = (("windows", 0), ("templates", 0), ("templates", 1))


class Message:
    """A record that a consumer brings."""

    def __init__(self, place: tuple[str, int], offset: int) -> None:
        self._said = {"topic": f"rankwatch.{place[0]}", "partition": place[1], "offset": offset}
        self._said |= {"error": None, "key": b"k", "value": b"v", "headers": None, "timestamp": (1, 5)}

    def __getattr__(self, name: str) -> Any:
        return lambda: self._said[name]


class Consumer:
    """Brings one record of each partition that is assigned and not paused; a pause outlives an assignment.

    What ``meanwhile`` holds happens within the next call, before it brings anything.
    """

    def __init__(self, committed: int | None = None) -> None:
        self.meanwhile: list[str] = []
        self.offset = 0
        self._committed = committed
        self._assigned: list[TopicPartition] = []
        self._paused: set[tuple[str, int]] = set()

    def subscribe(self, names: Sequence[str], **callbacks: Callable[[Any, list[TopicPartition]], None]) -> None:
        self._callbacks = callbacks

    def consume(self, limit: int, wait_s: float) -> list[Message]:
        places = [TopicPartition(f"rankwatch.{topic}", partition) for topic, partition in PLACES]
        for happens in self.meanwhile:
            self._callbacks[happens](self, places if happens == "on_assign" else self._assigned)
        open_places = [one for one in self._assigned if (one.topic, one.partition) not in self._paused]
        return [Message((one.topic.removeprefix("rankwatch."), one.partition), self.offset) for one in open_places]

    def committed(self, places: list[TopicPartition], wait_s: float) -> list[TopicPartition]:
        if self._committed is None:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        return [TopicPartition(one.topic, one.partition, self._committed) for one in places]

    def assign(self, places: list[TopicPartition]) -> None:
        self._assigned = places

    def unassign(self) -> None:
        self._assigned = []

    def assignment(self) -> list[TopicPartition]:
        return self._assigned

    def pause(self, places: list[TopicPartition]) -> None:
        self._paused |= {(one.topic, one.partition) for one in places}

    def resume(self, places: list[TopicPartition]) -> None:
        self._paused -= {(one.topic, one.partition) for one in places}


def member(monkeypatch: pytest.MonkeyPatch, consumer: Consumer) -> KafkaGroup:
    monkeypatch.setattr(kafka_group, "made", lambda *_, **__: consumer)
    return KafkaGroup(KafkaSettings({"bootstrap.servers": "nowhere:1"}), "sink", ["windows", "templates"])


EVENTS: tuple[list[str], ...] = ([], ["on_assign"], ["on_revoke"], ["on_revoke", "on_assign"], ["on_lost"])


def test_it_brings_nothing_while_it_holds_back_and_everything_otherwise_whatever_happened_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for polls in itertools.product(itertools.product((True, False), EVENTS), repeat=4):
        consumer = Consumer()
        group = member(monkeypatch, consumer)
        forgotten: list[int] = []
        group.forget = lambda forgotten=forgotten: forgotten.append(1)  # type: ignore[misc]
        for hold, consumer.meanwhile in (*polls, (False, ["on_assign"])):
            brought = [(topic, partition) for topic, partition, _ in group.poll(9, 0.0, hold=hold)]
            expected = [] if hold or not consumer.assignment() else [*PLACES]
            assert brought == expected, polls
        assert len(forgotten) == sum("on_revoke" in events or "on_lost" in events for _, events in polls)


@pytest.mark.parametrize(
    ("committed", "first", "gone"), [(5, 8, 3), (5, 5, 0), (5, 0, 0), (0, 2, 2), (-1001, 8, 0), (None, 8, 0)]
)
def test_what_is_gone_is_counted_from_where_the_group_stood(
    committed: int | None, first: int, gone: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing was committed, or the cluster does not say, nothing was expected; nor of a compacted topic."""
    consumer = Consumer(committed)
    group = member(monkeypatch, consumer)
    consumer.meanwhile, consumer.offset = ["on_assign"], first
    group.poll(9, 0.0)
    assert group.gone == gone
    consumer.meanwhile = []
    for consumer.offset, more in ((first + 1, 0), (first + 7, 5), (first + 8, 5)):
        group.poll(9, 0.0)
        assert group.gone == gone + more
