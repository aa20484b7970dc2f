"""Workers that show no life any more, or never came."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from detection_support import at, closed, ended, gauge, healthy, named, new_view, run, stepping, summary

from schemas.results import Anomaly, Exit
from streams.attempt_window import AttemptWindow
from streams.detectors.missing_workers import MissingWorkers

RANKS = 8
NODES = [f"node{number:02d}" for number in range(4)]


ZOMBIE = {"gauges": [gauge("process_zombie", 1.0)], "last_log": None, "log_records": 0}


def window(
    start: float,
    gone: Iterable[int] = (),
    *,
    dead: Iterable[int] = (),
    nodes: Iterable[str] = NODES,
    exits: Iterable[tuple[int, Exit]] = (),
    **fields: Any,
) -> AttemptWindow:
    lost = set(gone)
    alive = [rank for rank in range(RANKS) if rank not in lost]
    sightings = [(rank, at(start + 10)) for rank in alive if f"node{rank // 2:02d}" in set(nodes)]
    life = [(node, at(start + 10)) for node in nodes]
    summaries = [summary(rank, start) for rank in alive]
    summaries += [summary(rank, start, **ZOMBIE) for rank in dead]
    return closed(summaries, start, sightings=sightings, node_life=life, exits=list(exits), **fields)


def found(*windows: AttemptWindow, first: AttemptWindow | None = None) -> list[Anomaly]:
    before = [first] if first else [window(-20), window(-10), window(0)]
    return [one for each in run(MissingWorkers(), new_view(), [*before, *windows]) for one in each]


def test_a_rank_whose_process_was_seen_dead_has_vanished() -> None:
    (one,) = found(window(10, [5], dead=[5]), window(20, [5]), window(30, [5]))
    assert (named([one]), one.grounds, one.severity, one.unobserved) == ([[5]], "vanished", "info", [])


def test_a_rank_of_which_samples_stop_is_unobserved_not_dead() -> None:
    (one,) = found(*(window(start, [5]) for start in (10, 20, 30)))
    assert (named([one]), one.grounds, one.severity, one.unobserved) == ([[]], "unobserved", "info", [5])


def test_one_window_of_silence_is_a_hint_only() -> None:
    assert found(window(10, [5]), window(20)) == []


def test_a_rank_whose_node_is_silent_is_unobserved() -> None:
    silent = [window(start, [4, 5], nodes=[NODES[0], NODES[1], NODES[3]]) for start in (10, 20, 30)]
    (one,) = found(*silent)
    assert (named([one]), one.grounds, one.severity, one.unobserved) == ([[]], "unobserved", "info", [4, 5])


def test_it_is_said_whether_the_nodes_producer_lives() -> None:
    lives = [window(start, [5]) for start in (10, 20, 30)]
    silent = [window(start, [4, 5], nodes=[NODES[0], NODES[1], NODES[3]]) for start in (10, 20, 30)]
    several = [window(start, [5, 7]) for start in (10, 20, 30)]
    unknown = [window(start, [5], nodes=[]) for start in (10, 20, 30)]
    texts = [one.text for each in (lives, silent, several) for one in found(*each)]
    assert texts == [
        "rank 5 without a sign of life while 7 of 7 peers do; the producer of node02 lives",
        "ranks 4-5 without a sign of life while 6 of 6 peers do; the producer of node02 is silent as well",
        "ranks 5,7 without a sign of life while 6 of 6 peers do; the producers of node02, node03 live",
    ]
    (one,) = found(*unknown, first=healthy(RANKS))
    assert "producer" not in one.text


def test_a_dead_process_whose_node_falls_silent_then_is_unobserved() -> None:
    others = [NODES[0], NODES[1], NODES[3]]
    lost = [window(10, [4, 5], dead=[5], nodes=others), *(window(start, [4, 5], nodes=others) for start in (20, 30))]
    assert named(found(*lost)) == [[]]


def test_a_window_without_a_partition_says_nothing() -> None:
    assert found(*(window(start, [5], unavailable=True) for start in (10, 20, 30))) == []


def test_where_most_are_silent_nobody_is_missing() -> None:
    assert found(*(window(start, range(1, RANKS)) for start in (10, 20, 30))) == []


def test_a_job_that_is_over_misses_nobody() -> None:
    first = healthy(RANKS, total_iterations=10)
    assert found(*(window(start, [5]) for start in (10, 20, 30)), first=first) == []


def test_each_rank_is_missed_once() -> None:
    lost = [window(10, [5], dead=[5]), window(20, [5]), window(30, [5])]
    more = [window(40, [5, 2], dead=[2]), *(window(start, [5, 2]) for start in (50, 60, 70))]
    assert named(found(*lost, *more)) == [[5], [2]]


def test_a_rank_that_its_launcher_told_to_end_has_not_vanished() -> None:
    # Ranks 4 and 5 share a node: 5 failed, 4 was ended by its launcher, the other nodes wait for their time-out.
    request = (4, ended(11, signal="SIGTERM", requested=True))
    ends = [request, (4, ended(12, -15, "SIGTERM")), (5, ended(11, 1))]
    (first, *rest) = [window(10, [4, 5], exits=ends), window(20, [4, 5]), window(30, [4, 5])]
    assert all(4 not in ranks for ranks in named(found(first, *rest)))


def test_a_request_to_end_is_enough_where_the_end_itself_is_not_reported() -> None:
    request = (4, ended(11, signal="SIGTERM", requested=True))
    lost = [window(10, [4], exits=[request]), window(20, [4]), window(30, [4])]
    assert all(4 not in ranks for ranks in named(found(*lost)))


def test_a_rank_that_never_came_is_missed_after_a_while() -> None:
    first = closed((summary(rank, 0, world_size=9) for rank in range(RANKS)), 0)
    later = [window(start) for start in range(10, 320, 10)]
    (one,) = found(*later, first=first)
    assert (named([one]), one.unobserved, one.end) == ([[]], [8], at(310))


def sampled(start: float, ranks: Iterable[int], printing: Iterable[int] = (), **fields: Any) -> AttemptWindow:
    """Samples of these ranks, no lines but of ``printing``, each rank's producer its own."""
    told = set(printing)
    seen = {"gauges": [gauge("cpu_percent", 95.0)]}
    summaries = [
        stepping(rank, start, first=int(start) + 100, **seen)
        if rank in told
        else summary(rank, start, last_log=None, **seen)
        for rank in ranks
    ]
    return closed(summaries, start, **fields)


@pytest.mark.parametrize("pause", [3, 6])
@pytest.mark.parametrize("gone_at", [None, 200])
def test_who_is_sampled_seldom_is_missed_once_two_samples_should_have_come(pause: int, gone_at: int | None) -> None:
    """Ranks are sampled every 30 or 60 s, rank 5 at another time than the others."""
    windows = []
    for n in range(40):
        ranks = [
            rank
            for rank in range(RANKS)
            if n % pause == (rank == 5) and not (rank == 5 and n * 10 >= (gone_at or 9999))
        ]
        windows.append(sampled(10.0 * n, ranks, ranks if n < 3 else ()))
    missed = found(*windows, first=healthy(RANKS, -10))
    assert [one.unobserved for one in missed] == ([] if gone_at is None else [[5]])
    for one in missed:
        assert one.end >= at(200 + (pause - 1) * 10)


def test_who_was_sampled_but_once_is_not_missed_while_nobody_prints() -> None:
    windows = [sampled(10.0 * n, range(RANKS) if n == 0 else [r for r in range(RANKS) if r != 5]) for n in range(6)]
    assert found(*windows, first=healthy(RANKS, -10)) == []


def test_who_was_seen_alive_after_a_process_of_it_was_seen_dead_has_not_vanished() -> None:
    lost = [window(10, [5], dead=[5]), window(20), window(30), *(window(start, [5]) for start in (40, 50, 60, 70))]
    assert named(found(*lost)) == [[]]


def test_what_was_reported_is_not_searched_for_each_rank() -> None:
    class Unsearched(list[int]):
        def __contains__(self, _: object) -> bool:
            raise AssertionError("a list is searched")

    view = new_view()
    for one in [*(window(start) for start in (-20, -10, 0)), window(10, [2, 5])]:
        view.update(one)
    detector = MissingWorkers()
    detector.state.reported = Unsearched([2])
    ((found_now,),) = run(detector, view, [window(20, [2, 5])])
    assert (found_now.unobserved, detector.state.reported) == ([5], [2, 5])
