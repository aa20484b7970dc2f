"""Ranks whose process a signal has stopped while the job stands still."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
from detection_support import gauge, healthy, named, new_view, run, stalled, still

from schemas.results import Anomaly
from streams.detectors.no_iteration import NoIteration
from streams.detectors.stopped_process import StoppedProcess

RANKS = 8


def sampled(stopped: int, of: int = 10) -> dict[str, Any]:
    """A process that so many of its samples show stopped."""
    states = {"process_running": of, "process_stopped": stopped}
    return {
        "gauges": [
            msgspec.structs.replace(gauge(name, float(name != "process_running")), count=count)
            for name, count in states.items()
            if count
        ]
    }


def found(stopped: Iterable[int], detector: Any = None, samples: int = 10) -> list[Anomaly]:
    extra = {rank: sampled(samples if rank in set(stopped) else 0, samples) for rank in range(RANKS)}
    return run(detector or StoppedProcess(), new_view(), stalled(RANKS, extra))[-1]


@pytest.mark.parametrize("stopped", [[5], [2, 5], [2, 5, 7]])
def test_few_that_a_signal_has_stopped_are_named(stopped: list[int]) -> None:
    (one,) = found(stopped)
    assert (named([one]), one.grounds, one.suspects[0].kind) == ([stopped], "process_stopped", "blocker")


def test_a_job_that_its_owner_has_suspended_does_not_stand_still() -> None:
    assert found(range(RANKS)) == []
    assert found(range(RANKS), NoIteration()) == []
    assert len(found([5], NoIteration())) == 1


def test_of_half_of_a_job_nobody_is_named() -> None:
    (one,) = found(range(4))
    assert (named([one]), one.text) == ([[]], "the processes of ranks 0-3 are stopped by a signal")


def test_a_process_that_ran_in_between_or_was_hardly_sampled_is_not_stopped() -> None:
    extra = {rank: sampled(9 if rank == 5 else 0) for rank in range(RANKS)}
    assert run(StoppedProcess(), new_view(), stalled(RANKS, extra))[-1] == []
    assert found([5], samples=2) == []


def test_while_the_job_iterates_nobody_is_named() -> None:
    assert run(StoppedProcess(), new_view(), [healthy(RANKS, **sampled(10))]) == [[]]


@pytest.mark.parametrize(
    ("others", "suspects"),
    [
        ({"gauges": [gauge("cpu_percent", 95.0)]}, [5]),
        (sampled(0), [5]),
        # They may be stopped as well.
        ({}, []),
        ({"gauges": [gauge("cpu_percent", 0.0)]}, []),
    ],
)
def test_one_that_is_stopped_does_not_suspend_a_job_of_which_others_are_not_sampled(
    others: dict[str, Any], suspects: list[int]
) -> None:
    windows = stalled(RANKS, {rank: sampled(10) if rank == 5 else others for rank in range(RANKS)})
    (one,) = run(StoppedProcess(), new_view(), windows)[-1]
    assert (named([one]), one.text) == ([suspects], "the processes of rank 5 are stopped by a signal")
    assert len(run(NoIteration(), new_view(), windows)[-1]) == 1


def test_a_job_of_which_most_are_stopped_and_few_not_sampled_is_suspended() -> None:
    windows = stalled(10, {rank: sampled(10) for rank in range(9)})
    assert run(NoIteration(), new_view(), windows)[-1] == []


def test_who_ran_while_the_job_stood_still_was_stopped_because_of_it() -> None:
    running = {rank: sampled(0) for rank in range(RANKS)}
    windows = [
        *stalled(RANKS, running),
        still(RANKS, 40, {rank: sampled(10 if rank == 5 else 0) for rank in range(RANKS)}),
    ]
    (one,) = run(StoppedProcess(), new_view(), windows)[-1]
    assert (named([one]), one.text) == ([[]], "the processes of rank 5 are stopped by a signal")
