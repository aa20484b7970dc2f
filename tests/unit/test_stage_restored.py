"""A rank stage that begins from what another version wrote down."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from schemas.codec import encode, headers
from schemas.events import Tick
from schemas.ports import Entry
from schemas.topics import RAW_TOPICS
from streams.config import StreamConfig
from streams.stages.rank import RankStage

CONFIG = StreamConfig()
START = 1_000 * CONFIG.window_ns


def ticked(stage: RankStage, topics: tuple[str, ...], offset: int, window: int) -> None:
    for topic in topics:
        tick = Tick(time=START + window * CONFIG.window_ns)
        assert not stage.on_entry(topic, 0, Entry(offset, b"", encode(tick), headers("tick"), tick.time))


@pytest.mark.parametrize("known", [RAW_TOPICS[:-2], (*RAW_TOPICS[:-1], "of-old")])
def test_a_topic_that_is_new_is_read_from_its_beginning_and_one_that_is_gone_is_not_read(
    known: tuple[str, ...],
) -> None:
    before = RankStage(0, 1, 1, CONFIG)
    ticked(before, RAW_TOPICS, 7, 3)
    assert before.close() is not None
    state: dict[str, Any] = msgspec.json.decode(before.written().state)
    buffer = state["buffer"]
    buffer["offsets"] = {topic: buffer["offsets"].get(topic, 8) for topic in known}
    buffer["watermarks"] = {topic: buffer["watermarks"].get(topic, START) for topic in known}
    buffer["seen"] = [(topic, "p", "b", [1, 2, START // CONFIG.window_ns]) for topic in known]

    after = RankStage(0, 1, 1, CONFIG)
    after.restore(msgspec.Raw(msgspec.json.encode(state)))
    assert {topic: after.next_offset(topic, 0) for topic in RAW_TOPICS} == {
        topic: 8 if topic in known else 0 for topic in RAW_TOPICS
    }
    # Time passes once the new topic has told it, too.
    ticked(after, tuple(topic for topic in RAW_TOPICS if topic in known), 9, 9)
    assert after.close() is None
    ticked(after, tuple(topic for topic in RAW_TOPICS if topic not in known), 0, 9)
    assert after.close() is not None
    assert set(after.written().offsets) == {f"{topic}|0" for topic in RAW_TOPICS}
