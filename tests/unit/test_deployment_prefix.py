"""Prefixes of deployments: no two that are let through can ever mean one topic."""

from __future__ import annotations

from itertools import combinations

import pytest

from rankwatch.deployments import check_prefix
from rankwatch.errors import UsageError
from schemas.topics import TOPICS
from streams.log.kafka_settings import DEFAULT_PREFIX, KafkaSettings

PARTS = ("a", "a.b", "a.stamped", "a-b", "a_b", "stamped", "stamped.stamped", "dead", "a.dead", "rankwatch")


def names(prefix: str) -> set[str]:
    return {prefix + topic for topic in TOPICS}


def taken(prefix: str) -> bool:
    try:
        check_prefix(prefix)
    except UsageError:
        return False
    return True


@pytest.mark.parametrize("prefix", ["", "recorded", "a.b", "recorded/"])
def test_a_prefix_without_a_separator_at_its_end_is_refused(prefix: str) -> None:
    with pytest.raises(UsageError, match=r"it has to end in '\.', '-' or '_', as in '.+\.'$"):
        check_prefix(prefix)


def test_topics_of_any_two_prefixes_are_told_apart_also_where_one_contains_the_other() -> None:
    prefixes = [part + mark for part in PARTS for mark in ".-_" if taken(part + mark)]
    assert {DEFAULT_PREFIX, "a.", "a.b.", "a-", "stamped."} <= set(prefixes)
    for one, other in combinations(prefixes, 2):
        assert not names(one) & names(other), (one, other)


def test_a_prefix_that_another_ones_topics_begin_with_is_refused() -> None:
    assert names("a.") & names("a.stamped.")
    with pytest.raises(
        UsageError, match=r"^topic prefix 'a\.stamped\.': a\.stamped\.\* are topics of the prefix 'a\.'"
    ):
        check_prefix("a.stamped.")


@pytest.mark.parametrize(("prefix", "shown"), [(DEFAULT_PREFIX, ""), ("recorded.", " --topic-prefix recorded.")])
def test_a_command_that_is_recommended_repeats_the_prefix(prefix: str, shown: str) -> None:
    settings = KafkaSettings({"bootstrap.servers": "b:1"}, prefix)
    assert settings.command("topics create") == f"`rankwatch topics create{shown}`"
