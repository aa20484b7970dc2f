"""What libraries log is said once a minute a kind, and nothing is left out uncounted."""

from __future__ import annotations

import logging

from streams.complaints import MOST_KINDS, Seldom


def record(message: str, at: float, name: str = "aiokafka") -> logging.LogRecord:
    made = logging.LogRecord(name, logging.ERROR, __file__, 1, message, (), None)
    made.created = at
    return made


def test_a_kind_is_said_once_a_minute_with_the_number_left_out() -> None:
    seldom = Seldom(60.0)
    said = [one for n in range(1_300) if seldom.filter(one := record("cannot connect to %s", n * 0.1))]
    assert [round(one.created) for one in said] == [0, 60, 120]
    assert [one.__dict__["more"] for one in said] == ["", *[" (and 599 more like this)"] * 2]


def test_kinds_are_told_apart_by_logger_and_text_and_a_clock_set_back_silences_nobody() -> None:
    seldom = Seldom(60.0)
    assert seldom.filter(record("a", 100.0)) and seldom.filter(record("b", 100.0))
    assert seldom.filter(record("a", 100.0, "other")) and not seldom.filter(record("a", 101.0))
    assert seldom.filter(record("a", 50.0))


def test_texts_without_end_take_no_memory_without_end() -> None:
    seldom = Seldom(60.0)
    assert all(seldom.filter(record(f"offset {n}", 0.0)) for n in range(3 * MOST_KINDS))
    assert len(seldom._said) <= MOST_KINDS
