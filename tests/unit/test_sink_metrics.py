"""What a sink says of itself to Prometheus, and how its group says what is left to read."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from exposition_support import declared, exposed, samples, value

from sinks import metrics
from sinks.live import LiveSink
from sinks.metrics import SinkMetrics
from streams.log import kafka_group
from streams.log.kafka_group import KafkaGroup
from streams.log.kafka_settings import KafkaSettings

DECLARED = ("WAITING", "LAG", "ENTRIES", "ROWS", "RETRIES", "GONE", "HELD")


class Standing:
    """What the metrics read of a sink."""

    def __init__(self) -> None:
        self.counts = Counter({"logs": 5, "windows": 2})
        self.entries, self.retries, self.held = 9, 3, 4


def collector(lags: dict[tuple[str, int], int]) -> SinkMetrics:
    sink: LiveSink = Standing()  # type: ignore[assignment]
    return SinkMetrics(lambda: sink, lambda: True, lambda: lags, lambda: 6)


@pytest.mark.parametrize("lags", [{}, {("windows", 1): 7, ("incidents", 0): 0}])
def test_a_sink_declares_every_metric_exactly_once_in_valid_text(lags: dict[tuple[str, int], int]) -> None:
    text = exposed(collector(lags))
    names = [getattr(metrics, name)[0] for name in DECLARED]
    assert len(set(names)) == len([name for name in vars(metrics) if name.isupper()]) == len(DECLARED)
    for word in ("HELP", "TYPE"):
        assert declared(text, word) == dict.fromkeys(names, 1)
    found = samples(text)
    assert {labels: lag for (name, labels), lag in found.items() if name == "rankwatch_lag_entries"} == {
        (("partition", str(number)), ("stage", "sink"), ("topic", topic)): lag for (topic, number), lag in lags.items()
    }


def test_the_counts_of_a_sink_are_those_that_it_keeps() -> None:
    found = samples(exposed(collector({})))
    assert value(found, "rankwatch_rows_total", table="logs") == 5
    assert value(found, "rankwatch_rows_total", table="windows") == 2
    assert value(found, "rankwatch_entries_total") == 9
    assert value(found, "rankwatch_retries_total") == 3
    assert value(found, "rankwatch_held_entries") == 4
    assert value(found, "rankwatch_gone_entries_total") == 6


class Message:
    """A record that a consumer brings."""

    def __init__(self, topic: str, partition: int, offset: int) -> None:
        self._said = {"topic": f"rankwatch.{topic}", "partition": partition, "offset": offset}
        self._said |= {"error": None, "key": b"k", "value": b"v", "headers": None, "timestamp": (1, 5)}

    def __getattr__(self, name: str) -> Any:
        return lambda: self._said[name]


class Consumer:
    """A consumer without a broker; ``meanwhile`` is called while it is asked for watermarks."""

    def __init__(self) -> None:
        self.messages = [Message("windows", 0, 3), Message("incidents", 0, 0)]
        self.meanwhile = lambda: None

    def subscribe(self, *_: Any, **__: Any) -> None:
        """Nobody else is there."""

    def consume(self, limit: int, wait_s: float) -> list[Message]:
        found, self.messages = self.messages, []
        return found

    def get_watermark_offsets(self, place: Any, wait_s: float, cached: bool) -> tuple[int, int]:
        self.meanwhile()
        return (0, 10) if place.partition == 0 else (-1001, -1001)


def test_lags_are_what_the_reader_last_saw_and_asking_for_them_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever scrapes asks from another thread than the one that reads."""
    consumer = Consumer()
    monkeypatch.setattr(kafka_group, "made", lambda *_, **__: consumer)
    group = KafkaGroup(KafkaSettings({"bootstrap.servers": "nowhere:1"}), "sink", ["windows", "incidents"])
    for _ in range(kafka_group.LOOK_EVERY):
        group.poll(10, 0.0)
    assert group.lags() == {("windows", 0): 6, ("incidents", 0): 9}
    consumer.messages = [Message("windows", 1, 8)]
    for _ in range(kafka_group.LOOK_EVERY):
        group.poll(10, 0.0)

    def never() -> None:
        raise AssertionError("asked the consumer from another thread")

    consumer.meanwhile = never
    # The end of a partition that no fetch has come from yet is not known: something may be there.
    assert group.lags() == {("windows", 0): 6, ("windows", 1): 1, ("incidents", 0): 9}
