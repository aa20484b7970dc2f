"""An outage is a line when it begins, a line when it is over, and reminders with growing pauses in between."""

from __future__ import annotations

import pytest

from streams.outage import Outage

START = 1_796_047_402.4  # 14:03:22 UTC


def lines(outage: Outage, seconds: float, every_s: float = 5.0) -> list[tuple[float, str]]:
    """What is said while it is away so long, and when, in seconds since it began."""
    times = [number * every_s for number in range(int(seconds / every_s) + 1)]
    return [(time, line) for time in times if (line := outage.away(START + time))]


def test_it_is_said_when_it_begins_and_when_it_is_over_and_again_the_next_time() -> None:
    outage = Outage("k:9092")
    for _ in range(2):
        assert outage.back(START) == "" and not outage.is_on
        assert lines(outage, 40) == [(0.0, "Kafka at k:9092 is away since 14:03:22Z: waiting")]
        assert outage.is_on
        assert outage.back(START + 42) == "Kafka is back after 42 s"


def test_reminders_come_after_1_2_4_minutes_and_in_the_end_every_half_hour() -> None:
    said = lines(Outage("k:9092"), 3 * 3600)
    assert [time / 60 for time, _ in said] == [0, 1, 3, 7, 15, 31, 61, 91, 121, 151]
    assert said[1][1] == "Kafka at k:9092 is away, for 60 s now: waiting"
    assert said[-1][1] == "Kafka at k:9092 is away, for 2 h 31 min now: waiting"


def test_the_next_outage_begins_with_short_pauses_again() -> None:
    outage = Outage("k:9092")
    lines(outage, 3600)
    outage.back(START + 3600)
    assert [time for time, _ in lines(outage, 100)] == [0.0, 60.0]


def test_a_refusal_is_said_in_its_own_words_once_and_time_counts_from_the_beginning() -> None:
    outage = Outage("k:9092")
    outage.away(START)
    refusal = "Kafka at k:9092 refuses the login: no such user"
    assert outage.away(START + 30, refusal) == f"{refusal}; since 14:03:22Z: waiting"
    assert outage.away(START + 35, refusal) == ""
    assert outage.away(START + 90, refusal) == f"{refusal}, for 90 s now: waiting"
    assert outage.back(START + 600) == "Kafka is back after 10 min"


@pytest.mark.parametrize("back_s", [3600.0, 30.0])
def test_a_clock_that_is_set_back_neither_silences_it_nor_counts_backwards(back_s: float) -> None:
    outage = Outage("k:9092")
    outage.away(START)
    assert outage.away(START - back_s) == ""
    assert outage.away(START - back_s + 60) == "Kafka at k:9092 is away, for 60 s now: waiting"
    assert outage.back(START - 2 * back_s) == "Kafka is back after 0 s"
