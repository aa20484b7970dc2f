"""Ranks that are hardly ever seen waiting while their peers mostly wait."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from detection_support import (
    ALL_REDUCE,
    LOADER_WAIT,
    OWN,
    SAVE,
    closed,
    gauge,
    named,
    new_view,
    run,
    series,
    stack,
    stepping,
)

from schemas.events import Frame
from schemas.results import Anomaly
from streams.attempt_window import AttemptWindow
from streams.detectors.busy_outlier import BusyOutlier, BusyOutlierConfig

Waits = Callable[[int, int], float]
"""In which share of its samples a rank waits, by rank and window."""
Used = Callable[[int, int], float]


def windows(
    waits: Waits,
    *,
    cpu: Used = lambda rank, number: 10.0,
    ranks: int = 8,
    count: int = 30,
    samples: int = 3,
    work: list[Frame] = OWN,
    seed: int = 1,
    **fields: Any,
) -> list[AttemptWindow]:
    """Windows of ten seconds in which each rank's main thread is sampled a few times."""
    dice, made = random.Random(seed), []
    for number in range(count):
        start = number * 10
        summaries = []
        for rank in range(ranks):
            spans = [
                stack(ALL_REDUCE if dice.random() < waits(rank, number) else work, start + 1 + 3 * nth, pid=100 + rank)
                for nth in range(samples)
            ]
            gauges = [gauge("cpu_percent", cpu(rank, number) + dice.uniform(-0.3, 0.3))]
            summaries.append(stepping(rank, start, first=start + 1, stacks=spans, gauges=gauges, **fields))
        made.append(closed(summaries, start))
    return made


def found(made: list[AttemptWindow]) -> list[Anomaly]:
    return [one for findings in run(BusyOutlier(), new_view(), made) for one in findings]


def slow(rank: int, since: int = 0) -> Waits:
    """All wait half of the time, but for one rank that does not wait any more from a window on."""
    return lambda one, number: 0.0 if one == rank and number >= since else 0.6 if number >= since else 0.5


def busy(rank: int, since: int = 0) -> Used:
    return lambda one, number: 16.0 if one == rank and number >= since else 10.0


@pytest.mark.parametrize(
    ("since", "cpu", "grounds", "severity"),
    [
        (0, 0, "busy_alone", "info"),
        (0, 1, "busy_and_cpu", "warning"),
        (14, 0, "busy_and_changed", "warning"),
        (14, 1, "busy_changed_and_cpu", "warning"),
    ],
)
def test_who_never_waits_is_found_with_what_else_shows_it(since: int, cpu: int, grounds: str, severity: str) -> None:
    uses = busy(3, since) if cpu else busy(-1)
    one = found(windows(slow(3, since), cpu=uses))[-1]
    assert (named([one]), one.grounds, one.severity, one.layer) == ([[3]], grounds, severity, "stack")
    assert one.area == "compute"
    assert one.victims == [0, 1, 2, 4, 5, 6, 7]


def test_the_change_is_dated_to_its_window() -> None:
    one = found(windows(slow(3, 14)))[-1]
    assert abs(one.onset - windows(slow(3))[14].start) <= 2 * one.precision_ns


def test_who_loads_instead_of_waiting_is_a_matter_of_data() -> None:
    assert {one.area for one in found(windows(slow(3, 14), work=LOADER_WAIT))} == {"data"}


@pytest.mark.parametrize("rank", [0, 7])
def test_the_first_and_the_last_rank_may_always_use_more_cpu(rank: int) -> None:
    assert {one.grounds for one in found(windows(slow(rank), cpu=busy(rank)))} == {"busy_alone"}


def test_where_ranks_print_timers_samples_only_explain() -> None:
    made = windows(slow(3, 14), cpu=busy(3, 14))
    timed = [
        closed(
            [
                stepping(rank, n * 10, first=n * 10 + 1, stacks=summary.stacks, series=[own(n), total(n)])
                for rank, summary in enumerate(window.summaries)
            ],
            n * 10,
        )
        for n, window in enumerate(made)
    ]
    assert {(one.grounds, one.severity) for one in found(timed)} == {("busy_alone", "info")}


def own(number: int) -> Any:
    return series("compute_ms", number * 10 + 1, [400.0] * 10, number * 10)


def total(number: int) -> Any:
    return series("total_ms", number * 10 + 1, [1000.0] * 10, number * 10)


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("all wait alike", windows(lambda rank, number: 0.5)),
        ("nobody waits", windows(lambda rank, number: 0.0)),
        ("peers wait seldom", windows(lambda rank, number: 0.0 if rank == 3 else 0.2)),
        ("too few samples", windows(slow(3), count=11, samples=1)),
        ("half of the ranks are of a busy stage", windows(lambda rank, number: 0.0 if rank >= 4 else 0.6)),
        ("two are of a busy stage", windows(lambda rank, number: 0.0 if rank >= 6 else 0.6)),
        ("busy for a moment", windows(lambda rank, number: 0.0 if rank == 3 and 20 <= number < 22 else 0.6)),
        ("it waits less, but not seldom", windows(lambda rank, number: 0.3 if rank == 3 else 0.6)),
        ("it saves checkpoints", windows(slow(3), work=SAVE)),
        ("the job stands still", windows(slow(3), iteration=None, iteration_time=None, series=[])),
        ("three ranks", windows(slow(1), ranks=3)),
    ],
)
def test_look_alikes_are_no_finding(name: str, made: list[AttemptWindow]) -> None:
    assert found(made) == [], name


def test_healthy_jobs_are_silent_whatever_the_dice() -> None:
    for seed in range(20):
        waits = random.Random(seed).uniform(0.4, 0.9)
        assert found(windows(lambda rank, number, waits=waits: waits, seed=seed)) == []  # type: ignore[misc]


def test_a_restore_between_any_two_windows_changes_nothing() -> None:
    made = windows(slow(3, 14), cpu=busy(3, 14), count=24)
    whole = run(BusyOutlier(), new_view(), made)
    for cut in (1, 13, 20):
        view, first = new_view(), BusyOutlier()
        before = run(first, view, made[:cut])
        again = BusyOutlier()
        again.restore(first.snapshot())
        assert before + run(again, view, made[cut:]) == whole


def test_state_stays_bounded() -> None:
    view, detector, sizes = new_view(), BusyOutlier(), []
    for window in windows(slow(3), ranks=4, count=60):
        run(detector, view, [window])
        sizes.append(len(bytes(detector.snapshot())))
    assert sizes[-1] == sizes[40]


def test_a_config_that_cannot_work_is_refused() -> None:
    with pytest.raises(ValueError, match="busy_outlier"):
        BusyOutlierConfig(history=20)
