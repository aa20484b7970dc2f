"""Decayed counts of nodes: the half-life, a node's time, and what little was seen of a node says."""

from __future__ import annotations

from itertools import pairwise

import pytest

from streams.fleet.history import DAY_NS, HALF_LIFE_DAYS, Tally, cluster_rate, node_rate, said_history

LONG = 1000


def tally(failures: float, days: float) -> Tally:
    return Tally(at=0, failures=failures, days=days)


def test_what_is_28_days_old_counts_half() -> None:
    one = Tally(at=0, failures=2.0, days=10.0)
    one.until(int(HALF_LIFE_DAYS * DAY_NS))
    assert (one.failures, one.days) == (1.0, 5.0)


def test_a_day_on_a_node_is_about_a_day_and_a_year_is_no_more_than_can_count() -> None:
    one = Tally(at=0, busy=1)
    one.until(DAY_NS)
    assert one.days == pytest.approx(0.988, abs=0.001)
    one.until(LONG * DAY_NS)
    assert one.days == pytest.approx(HALF_LIFE_DAYS / 0.6931, rel=0.001)


def test_how_often_it_is_brought_up_to_date_makes_no_difference() -> None:
    often, once = Tally(at=0, failures=1.0, busy=3), Tally(at=0, failures=1.0, busy=3)
    for hour in range(24 * 40):
        often.until(hour * DAY_NS // 24)
    once.until((24 * 40 - 1) * DAY_NS // 24)
    assert often.days == pytest.approx(once.days)
    assert often.failures == pytest.approx(once.failures)


def test_time_does_not_run_backwards() -> None:
    one = Tally(at=10 * DAY_NS, failures=1.0)
    one.until(0)
    assert (one.at, one.failures) == (10 * DAY_NS, 1.0)


def test_an_hour_with_one_failure_is_no_worse_than_three_in_a_fortnight() -> None:
    usual = cluster_rate(tally(10, 1000))
    assert usual == pytest.approx(0.01)
    ordered = [
        node_rate(tally(*one), usual)
        for one in ((0, 300), (0, 12), (0, 0), (1, 30), (1, 12), (1, 1 / 24), (3, 12), (6, 12))
    ]
    assert all(before <= after for before, after in pairwise(ordered))
    assert node_rate(tally(0, 0), usual) == pytest.approx(usual)


def test_the_history_in_words() -> None:
    assert said_history("node02", tally(3, 12), tally(4, 1200)) == (
        "node02: 3.0 failures in 12.0 node-days, this one counted; in the rest of the cluster 0.0 would be usual "
        "(what is 28 days old counts half)"
    )
