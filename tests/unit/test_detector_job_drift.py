"""The job's pace against its own past."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from detection_support import S, at, closed, named, new_view, run, series, summary

from schemas.results import Anomaly, Drift
from streams.attempt_window import AttemptWindow
from streams.detectors.job_drift import JobDrift

STEP = "elapsed_time_per_iteration_ms"
RATE = "tps"
Columns = Mapping[str, Sequence[float | None]]


def noise(steps: int, share: float = 0.02, seed: int = 1, level: float = 1000.0) -> list[float]:
    return [float(value) for value in np.random.default_rng(seed).lognormal(np.log(level), share, steps)]


def risen(factor: float, since: int = 60, steps: int = 200, **more: Any) -> list[float]:
    return [value * (factor if step >= since else 1.0) for step, value in enumerate(noise(steps, **more))]


def windows(columns: Columns, *, first: int = 1, start: float = 0, rank: int = 7, **fields: Any) -> list[AttemptWindow]:
    """One step a second and ten a window, all printed by one rank; ``fields`` are the summaries'."""
    found = []
    for at_step in range(0, max(len(values) for values in columns.values()), 10):
        begin = start + at_step
        told = [
            series(name, first + at_step, values[at_step : at_step + 10], begin)
            for name, values in sorted(columns.items())
            if values[at_step : at_step + 10]
        ]
        fine = summary(0 if rank else 1, begin)
        found.append(closed([fine, summary(rank, begin, **({"series": told, "phase": "train"} | fields))], begin))
    return found


def findings(*parts: list[AttemptWindow]) -> list[Anomaly]:
    return [
        one for found in run(JobDrift(), new_view(), [window for part in parts for window in part]) for one in found
    ]


def grounds(found: list[Anomaly]) -> set[tuple[str, str]]:
    return {(one.grounds, one.severity) for one in found}


@pytest.mark.parametrize(
    "columns",
    [
        {STEP: risen(1.15)},
        {STEP: risen(3.0)},
        {"s_per_it": risen(1.3, level=1.0)},
        {"it_per_s": [1 / value for value in risen(1.3)]},
        {"total_ms": risen(1.3)},
        {RATE: [7e6 / value for value in risen(1.3)]},
        {"throughput_per_gpu_(tflop/s/gpu)": [4e5 / value for value in risen(1.3)]},
        {STEP: risen(1.3), RATE: [7e6 / value for value in risen(1.3)]},
    ],
)
def test_a_job_that_slows_is_told_from_its_step_on_and_warned_of_after_a_minute(columns: Columns) -> None:
    found = findings(windows(columns))
    assert grounds(found) == {("job_shift", "info"), ("job_shift", "warning")}
    assert abs((found[0].iteration or 0) - 61) <= 2
    assert {one.onset for one in found} == {found[0].onset}
    assert found[0].end <= at(80)
    assert found[0].axis == "time"
    first = next(one for one in found if one.severity == "warning")
    assert at(120) <= first.end <= at(130)
    assert not any(named(found))


def test_a_slow_trend_is_found() -> None:
    found = findings(windows({STEP: [v * 1.01 ** max(0, at - 60) for at, v in enumerate(noise(200))]}))
    assert ("job_shift", "warning") in grounds(found)
    assert 61 <= (found[0].iteration or 0) <= 75


def test_a_trend_too_slow_for_any_memory_is_found() -> None:
    found = findings(windows({STEP: [v * (1 + 0.15 * at / 3000) for at, v in enumerate(noise(3000))]}))
    assert ("job_shift", "warning") in grounds(found)


def test_a_level_that_returns_ends_the_finding_and_a_new_shift_is_another() -> None:
    values = noise(400)
    for step in [*range(60, 150), *range(250, 350)]:
        values[step] *= 1.4
    found = findings(windows({STEP: values}))
    assert sorted({one.iteration for one in found}) == [61, 251]
    assert not [one for one in found if at(160) < one.end <= at(250) or one.end > at(360)]


def every(nth: int, factor: float) -> list[float]:
    return [value * (factor if step % nth == 0 else 1.0) for step, value in enumerate(noise(300))]


def warm(steps: int) -> list[float]:
    return [value * (30.0 if step < steps else 1.0) for step, value in enumerate(noise(200))]


@pytest.mark.parametrize(
    "columns",
    [
        {STEP: noise(2000)},
        {STEP: noise(2000, 0.3)},
        {STEP: risen(1.06)},
        {STEP: risen(0.5)},
        {STEP: risen(1.15, share=0.2)},
        {STEP: every(5, 4.0)},
        {STEP: every(100, 300.0)},
        {STEP: warm(1)},
        {STEP: warm(5)},
        {STEP: [1000.0] * 200},
        {STEP: [0.0, -5.0, None, float("nan"), float("inf")] * 40},
        {STEP: [1000.0] * 60 + [float("inf"), float("nan"), 0.0] * 30 + [1000.0] * 60},
        {"lm_loss": risen(3.0)},
        {"across_ranks/forward_max_ms": risen(3.0)},
        {"eval_step_ms": risen(3.0)},
    ],
)
def test_what_is_no_shift_of_the_pace_gives_nothing(columns: Columns) -> None:
    assert findings(windows(columns)) == []


def test_lengths_that_vary_need_a_larger_shift() -> None:
    assert ("job_shift", "warning") in grounds(findings(windows({STEP: risen(1.6, share=0.2)})))


def test_steps_that_are_larger_are_no_slowness() -> None:
    larger = {STEP: risen(1.5), RATE: noise(200, level=7000)}
    smaller = {STEP: noise(200), RATE: [7e6 / value for value in risen(1.5)]}
    for columns in (larger, smaller):
        assert grounds(findings(windows(columns))) == {("other_steps", "info")}


def test_a_rate_that_fell_a_little_or_is_no_longer_printed_explains_nothing() -> None:
    # Its fall is below what makes a shift, or lost in its noise.
    falling = [value / (1.07 if step >= 60 else 1.0) for step, value in enumerate(noise(200, level=7000))]
    gone = noise(50, level=7000)
    for rate in (falling, gone):
        found = findings(windows({STEP: risen(1.2), RATE: rate}))
        assert ("job_shift", "warning") in grounds(found)


def test_the_steps_before_another_batch_size_are_no_reference() -> None:
    times, sizes = [100.0] * 110 + [200.0] * 250, [64.0] * 110 + [128.0] * 250
    made = []
    for number in range(6):
        first, start = 60 * number, 10.0 * number
        told = [
            series(name, 1 + first, values[first : first + 60], start, 0.15)
            for name, values in ((STEP, times), ("global_batch_size", sizes))
        ]
        made.append(closed([summary(7, start, series=told)], start))
    assert findings(made) == []


def test_another_batch_size_makes_other_steps() -> None:
    sizes = [64.0 if step < 60 else 128.0 for step in range(200)]
    assert findings(windows({STEP: risen(2.0), "global_batch_size": sizes})) == []
    assert findings(windows({STEP: risen(2.0), "global_batch_size": [64.0] * 200}))


@pytest.mark.parametrize(
    ("after", "expected"), [(128.0, set()), (64.0, {("job_shift", "info"), ("job_shift", "warning")})]
)
def test_samples_so_far_tell_the_size_of_a_batch(after: float, expected: set[tuple[str, str]]) -> None:
    sizes = [64.0 if step < 60 else after for step in range(200)]
    samples = [float(value) for value in np.cumsum(sizes)]
    assert grounds(findings(windows({STEP: risen(2.0), "consumed_samples": samples}))) == expected


def drifted(factors: Mapping[str, float], ranks: int = 4, iteration: int = 61) -> list[AttemptWindow]:
    """The step of rank 7 doubles at iteration 61, and so did timers that took 0.4 s each by some factors."""
    found = []
    for window in windows({STEP: risen(2.0)}):
        own = [
            summary(
                rank,
                (window.start - at(0)) / 1e9,
                phase="train",
                series=[series(name, 1, [400.0], (window.start - at(0)) / 1e9) for name in factors],
                drifts=[
                    Drift(metric=name, iteration=iteration, time=at(60), before=400.0, after=400.0 * factor, steps=10)
                    for name, factor in factors.items()
                    if factor > 1 and rank < ranks and window.start == at(70)
                ],
            )
            for rank in range(4)
        ]
        found.append(closed([*own, *window.of(7)], (window.start - at(0)) / 1e9))
    return found


@pytest.mark.parametrize(
    ("made", "area"),
    [
        (drifted({"forward_ms": 2.0, "data_ms": 2.1}), "workload"),
        (drifted({"forward_ms": 2.0, "data_ms": 1.0}), "workload"),
        (drifted({"forward_ms": 2.0, "data_ms": 1.3}), "unknown"),
        (drifted({"forward_ms": 2.0, "data_ms": 2.0}, ranks=3), "unknown"),
        (drifted({"forward_ms": 2.0, "data_ms": 2.0}, iteration=20), "unknown"),
        (drifted({"forward_ms": 2.0}), "workload"),
        (drifted({"forward_ms": 1.0}), "unknown"),
    ],
)
def test_where_all_own_work_of_all_ranks_is_longer_by_as_much_the_steps_may_be_others(
    made: list[AttemptWindow], area: str
) -> None:
    last = findings(made)[-1]
    assert (last.area, last.severity, last.grounds) == (area, "warning", "job_shift")
    assert ("larger inputs" in last.peers) == (area == "workload")


def turning(window: AttemptWindow) -> AttemptWindow:
    """Rank 0 saves a checkpoint during the window's fifth step."""
    saved = summary(0, (window.start - at(0)) / 1e9, phase="train", phase_time=window.start + 3_500_000_000)
    return closed([saved, *window.of(7)], (window.start - at(0)) / 1e9)


def test_a_step_in_which_somebody_saved_does_not_count() -> None:
    values = [value * (1.5 if step % 10 == 4 and step > 60 else 1.0) for step, value in enumerate(noise(200))]
    lonely: Callable[[list[float]], list[float]] = lambda some: [v for at, v in enumerate(some) if at % 10 == 4]  # noqa: E731
    assert findings([turning(window) for window in windows({STEP: values})]) == []
    alone = [
        closed([summary(7, 10 * at, series=[series(STEP, at + 1, [value], 10 * at + 4)])], 10 * at)
        for at, value in enumerate(lonely(noise(900)))
    ]
    slow = [
        closed(
            [summary(7, 10 * at, series=[series(STEP, at + 1, [value * (1.5 if at > 40 else 1)], 10 * at + 4)])],
            10 * at,
        )
        for at, value in enumerate(lonely(noise(900)))
    ]
    assert findings([turning(window) for window in alone]) == []
    assert findings([turning(window) if window.start > at(400) else window for window in slow]) == []
    assert findings(slow)


def test_a_checkpoint_or_evaluation_that_goes_on_warns_nobody() -> None:
    before, during = windows({STEP: noise(60)}), windows({STEP: risen(1.5, 0)}, first=61, start=60, phase="checkpoint")
    assert grounds(findings(before, during)) == {("job_shift", "info")}


def test_one_ranks_word_stands_for_all_and_passes_to_another_that_begins_anew() -> None:
    together = [
        closed([*low.of(2), *high.of(7)], (low.start - at(0)) / 1e9)
        for low, high in zip(windows({STEP: noise(200)}, rank=2), windows({STEP: risen(2.0)}), strict=True)
    ]
    assert findings(together) == []
    alone = windows({STEP: risen(2.0, 0)}, first=201, start=200)
    assert findings(together, alone) == []


def test_steps_counted_anew_warm_up_again() -> None:
    again = [3000.0] * 5 + noise(95)
    parts = [windows({STEP: again}, start=100 * epoch) for epoch in range(6)]
    assert findings(*parts) == []


def test_a_job_that_stands_still_is_no_longer_told_to_be_slow() -> None:
    slow = windows({STEP: risen(1.5)})
    still = [closed([summary(7, 200 + 10 * at)], 200 + 10 * at) for at in range(20)]
    found = findings(slow, still)
    assert found[-1].end <= at(260)


def test_reports_that_lie_minutes_apart_are_one_story() -> None:
    spread = [
        closed(
            [summary(7, 120 * at_step, series=[series(STEP, 1 + 10 * at_step, [value], 120 * at_step)])]
            if part == 0
            else [summary(7, 120 * at_step + 10 * part)],
            120 * at_step + 10 * part,
        )
        for at_step, value in enumerate(risen(1.3, 40, 80))
        for part in range(12)
    ]
    found = findings(spread)
    assert {one.end for one in found} == set(range(found[0].end, spread[-1].end + 1, 10 * 10**9))


def test_names_are_bounded() -> None:
    detector = JobDrift()
    many = {f"total_{'x' * at}ms": noise(10) for at in range(50)} | {f"step_time_{at}s": noise(10) for at in range(50)}
    run(detector, new_view(), windows({**many, STEP: noise(10)}))
    assert len(detector.state.paces) <= 8
    assert len(bytes(detector.snapshot())) < 100_000


@pytest.mark.parametrize(("untimed", "severity"), [(False, "info"), (True, "warning")])
def test_where_lines_print_no_times_a_shift_lasts_as_long_as_its_steps(untimed: bool, severity: str) -> None:
    told = series("elapsed_time_per_iteration_ms", 1, [1000.0] * 40 + [1500.0] * 80, step_s=0)
    within = 3600 * S if untimed else 0
    window = closed([summary(0, iteration=120, iteration_time=at(0), iteration_within_ns=within, series=[told])])
    ((found,),) = run(JobDrift(), new_view(), [window])
    assert (found.grounds, found.severity) == ("job_shift", severity)
