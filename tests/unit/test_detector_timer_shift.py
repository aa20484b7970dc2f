"""A rank's verified drift held against what its peers' timers did."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest
from detection_support import at, closed, identity, named, new_view, run, series, stepping, summary

from schemas.results import Anomaly, Drift
from streams.detectors.timer_shift import TimerShift

RANKS = 8


def drift(metric: str = "compute_ms", second: float = 12) -> Drift:
    return Drift(metric=metric, iteration=40, time=at(second), before=100.0, after=150.0, steps=12)


def findings(
    *windows: Iterable[int], metric: str = "compute_ms", total: int | None = None, printing: int = RANKS
) -> list[list[Anomaly]]:
    steps = series("total_ms", 1, [1000.0] * 10)
    own = [series(metric, 1, [100.0] * 10), steps]
    first = (
        stepping(rank, 0, first=1, total_iterations=total, series=own if rank < printing else [steps])
        for rank in range(RANKS)
    )
    made = [closed(first)]
    for number, drifted in enumerate(windows):
        start, ranks = 10 * (number + 1), set(drifted)
        drifts = [drift(metric, start + 2)]
        made.append(closed((summary(r, start, drifts=drifts if r in ranks else []) for r in range(RANKS)), start))
    return run(TimerShift(), new_view(), made)[1:]


def test_a_shift_of_one_is_its_own_and_information() -> None:
    ((one,),) = findings([5])
    assert (named([one]), one.grounds, one.severity, one.iteration) == ([[5]], "own_shift", "info", 40)
    assert one.metric == "compute"


def test_a_shift_that_many_share_is_the_jobs() -> None:
    ((one,),) = findings(range(RANKS))
    assert (named([one]), one.grounds, one.area) == ([[]], "shared_shift", "workload")


def test_shifts_that_come_one_after_another_add_up() -> None:
    found = findings([0], [1], [2], [3])
    assert [one[0].grounds for one in found] == ["own_shift", "own_shift", "shared_shift", "shared_shift"]


@pytest.mark.parametrize("printing", [4, 32])
@pytest.mark.parametrize(("shifting", "grounds"), [(1, "own_shift"), (4, "shared_shift")])
def test_of_those_that_print_the_timer_only_the_same_role_counts(printing: int, shifting: int, grounds: str) -> None:
    made = []
    for start in (0, 10):
        told = []
        for rank in range(32):
            who = identity(rank, role="rollout" if rank < 4 else "actor")
            own = [series("generate_ms", start + 1, [100.0] * 10, start)] if rank < printing else []
            drifts = [drift("generate_ms")] if start and rank < shifting else []
            told.append(summary(rank, start, who=who, series=own, drifts=drifts))
        made.append(closed(told, start))
    ((one,),) = run(TimerShift(), new_view(), made)[1:]
    assert (one.grounds, one.peers) == (grounds, f"{shifting} of 4 ranks shifted so far")


def test_a_rank_that_is_back_where_it_was_counts_no_more() -> None:
    first = closed(stepping(rank, 0, first=1, series=[series("compute_ms", 1, [100.0] * 10)]) for rank in range(RANKS))
    shifted, back = drift(), msgspec.structs.replace(drift(), before=150.0, after=100.0)
    told: list[dict[int, Drift]] = [{0: shifted, 1: shifted}, {0: back, 1: back}, {2: shifted}]
    made = [
        closed((summary(r, 10 * at, drifts=[one[r]] if r in one else []) for r in range(RANKS)), 10 * at)
        for at, one in enumerate(told, 1)
    ]
    found = run(TimerShift(), new_view(), [first, *made])
    assert [named(one) for one in found] == [[], [[0, 1]], [], [[2]]]
    assert found[-1][0].peers == f"1 of {RANKS} ranks shifted so far"


def test_a_timer_that_only_one_rank_prints_says_nothing_of_it() -> None:
    assert findings([0], printing=1) == [[]]
    assert named(findings([0], printing=2)[0]) == [[0]]


def test_a_whole_steps_shift_and_a_job_that_is_over_say_nothing() -> None:
    assert findings([5], metric="total_ms") == [[]]
    assert findings([5], metric="allreduce_ms") == [[]]
    assert findings([5], total=10) == [[]]
    assert findings([]) == [[]]


def test_one_that_shifts_and_is_back_within_a_window_is_not_told() -> None:
    back = msgspec.structs.replace(drift(), before=150.0, after=100.0)
    drifts = {0: [drift(), back], 1: [drift(), msgspec.structs.replace(drift(), iteration=60, after=180.0)]}
    found = run(
        TimerShift(),
        new_view(),
        [
            closed(stepping(r, 0, first=1, series=[series("compute_ms", 1, [100.0] * 10)]) for r in range(RANKS)),
            closed((summary(rank, 10, drifts=drifts.get(rank, [])) for rank in range(RANKS)), 10),
        ],
    )
    assert named(found[1]) == [[1]]
