"""What the watchdog says of a worker, look after look, by a clock that the tests count."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from streams.watchdog import Health, Vitals, Watchdog

PATIENCE_S = 60.0
PLACE = ("logs", 0)


class Second(NamedTuple):
    """What the event loop writes down in one second."""

    beats: int = 1
    taken: int = 0
    lag: int = 0
    busy: bool = False


WELL = Second(taken=5, lag=3)
IDLE = Second()
SILENT = Second(beats=0)
STUCK = Second(lag=7)
REBALANCING = Second(busy=True)
REBALANCING_WITH_LAG = Second(busy=True, lag=7)


class Watched:
    """A worker and its watchdog, which looks once a second."""

    def __init__(self, start: float = 1000.0) -> None:
        self.vitals = Vitals()
        self.now = start
        self.dog = Watchdog(self.vitals, patience_s=PATIENCE_S, now=start)

    def live(self, *seconds: Second) -> tuple[Health, float]:
        """Live through these seconds; what the last look says."""
        said = (Health.OK, 0.0)
        for second in seconds:
            self.vitals.beats += second.beats
            self.vitals.taken += second.taken
            self.vitals.lags = {PLACE: second.lag} if second.lag else {PLACE: 0}
            self.vitals.busy = second.busy
            self.now += 1
            said = self.dog.look(self.now)
        return said


@pytest.mark.parametrize(
    ("second", "health"),
    [
        (WELL, Health.OK),
        (IDLE, Health.OK),
        (Second(taken=5, busy=True), Health.OK),
        (SILENT, Health.LOOP_STANDS),
        (Second(beats=0, taken=5, lag=3), Health.LOOP_STANDS),
        (STUCK, Health.NO_PROGRESS),
        (REBALANCING, Health.REBALANCE_STANDS),
        (REBALANCING_WITH_LAG, Health.REBALANCE_STANDS),
        (Second(beats=0, lag=7), Health.LOOP_STANDS),
    ],
)
def test_a_worker_is_doubted_after_half_the_patience_and_lost_after_all_of_it(second: Second, health: Health) -> None:
    watched = Watched()
    assert watched.live(WELL, WELL) == (Health.OK, 0.0)
    for seconds in range(1, 91):
        # Who has taken in everything up to a second was well in that second.
        said = watched.live(second)
        lost = watched.dog.lost(watched.now)
        if health is Health.OK or seconds <= PATIENCE_S / 2:
            assert (said, lost) == ((Health.OK, 0.0), None), seconds
        else:
            assert said == (health, seconds), seconds
            assert lost is (health if seconds > PATIENCE_S else None), seconds


def test_what_was_doubted_is_well_again_once_it_moves() -> None:
    watched = Watched()
    for stuck, health in (
        (STUCK, Health.NO_PROGRESS),
        (SILENT, Health.LOOP_STANDS),
        (REBALANCING, Health.REBALANCE_STANDS),
    ):
        assert watched.live(*[stuck] * 59)[0] is health
        assert watched.dog.lost(watched.now) is None
        assert watched.live(WELL) == (Health.OK, 0.0)
        assert watched.live(*[stuck] * 30) == (Health.OK, 0.0), "patience begins anew"
        assert watched.live(WELL) == (Health.OK, 0.0)


def test_an_entry_after_a_long_idle_time_has_all_the_patience_before_it() -> None:
    watched = Watched()
    assert watched.live(*[IDLE] * 500) == (Health.OK, 0.0)
    assert watched.live(*[STUCK] * 30) == (Health.OK, 0.0)
    assert watched.live(STUCK) == (Health.NO_PROGRESS, 31)


def test_one_place_that_waits_is_enough_to_ask_for_progress_and_progress_anywhere_is_some() -> None:
    watched = Watched()
    watched.vitals.lags = {("logs", 0): 0, ("logs", 1): 9}
    watched.vitals.beats = 1
    assert watched.dog.look(watched.now + 31)[0] is Health.NO_PROGRESS
    watched.vitals.taken = 1
    assert watched.dog.look(watched.now + 32) == (Health.OK, 0.0)


def test_a_worker_without_partitions_is_well() -> None:
    watched = Watched()
    watched.vitals.lags = {}
    for _ in range(200):
        watched.now += 1
        watched.vitals.beats += 1
        assert watched.dog.look(watched.now) == (Health.OK, 0.0)


def test_a_rebalance_that_ends_in_work_that_stands_is_named_by_what_stands_now() -> None:
    watched = Watched()
    watched.live(WELL)
    assert watched.live(*[REBALANCING] * 40) == (Health.REBALANCE_STANDS, 40)
    assert watched.live(STUCK) == (Health.NO_PROGRESS, 41)
    assert watched.live(IDLE) == (Health.OK, 0.0)


def test_looks_of_others_in_between_change_nothing() -> None:
    """The endpoint asks as well as the watchdog's own thread."""
    often, seldom = Watched(), Watched()
    for second in [WELL, *[STUCK] * 70]:
        said = often.live(second)
        assert often.dog.look(often.now) == said
        assert often.dog.lost(often.now) == often.dog.lost(often.now)
        assert seldom.live(second) == said
    assert often.dog.lost(often.now) is Health.NO_PROGRESS
