"""The topic table agrees with the codec: every kind travels somewhere, every topic carries kinds that exist."""

from __future__ import annotations

import pytest

from schemas import codec
from schemas.topics import RAW_KINDS, RAW_TOPICS, STAMPED, TOPICS


@pytest.mark.parametrize("kind", sorted(codec.TYPES))
def test_every_kind_travels_on_some_topic(kind: str) -> None:
    assert [name for name, topic in TOPICS.items() if kind in topic.kinds]


@pytest.mark.parametrize("name", TOPICS)
def test_a_topic_carries_kinds_that_exist_and_says_who_uses_it(name: str) -> None:
    topic = TOPICS[name]
    assert topic.name == name
    assert topic.kinds
    assert len(set(topic.kinds)) == len(topic.kinds)
    assert set(topic.kinds) <= codec.TYPES.keys()
    assert topic.key
    assert topic.writer
    assert topic.readers


def test_raw_topics_and_no_others_carry_ticks() -> None:
    assert {name for name, topic in TOPICS.items() if topic.raw} == set(RAW_TOPICS)
    assert {name for name, topic in TOPICS.items() if "tick" in topic.kinds} == set(RAW_TOPICS)


def test_a_raw_topic_carries_one_kind_of_batches() -> None:
    assert {name: TOPICS[name].kinds for name in RAW_TOPICS} == {
        name: (kind, "tick") for name, kind in RAW_KINDS.items()
    }
    assert sorted(RAW_KINDS.values()) == sorted(codec.BATCHES)


def test_raw_topics_are_keyed_alike_so_that_one_worker_meets_one_partition_number() -> None:
    assert {TOPICS[name].key for name in RAW_TOPICS} == {"job|worker"}


def test_stamped_topics_exist_and_carry_their_kind_to_the_sink() -> None:
    assert STAMPED.keys() <= codec.BATCHES.keys()
    for kind, name in STAMPED.items():
        assert TOPICS[name].kinds == (kind,)
        assert not TOPICS[name].raw
        assert "sink" in TOPICS[name].readers


def test_every_stamped_topic_is_named_in_the_table() -> None:
    assert {name for name in TOPICS if name.startswith("stamped.")} == set(STAMPED.values())


def test_names_are_legal_in_kafka_and_tell_dots_from_underscores() -> None:
    allowed = set("abcdefghijklmnopqrstuvwxyz0123456789.-")
    assert [name for name in TOPICS if not set(name) <= allowed or len(name) > 249] == []
