"""Ranks whose own work takes longer than their peers', step after step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from detection_support import FIXED, closed, named, new_view, run, series, stepping, summary
from hypothesis import given
from hypothesis import strategies as st

from schemas.results import Anomaly
from streams.attempt_window import AttemptWindow
from streams.detectors.step_outlier import StepOutlier, StepOutlierConfig
from streams.robust import Bounds, contrast

STEPS = 10
Values = Callable[[int, int], float | None]


def windows(
    values: Values, ranks: int = 8, count: int = 8, *, timer: str = "compute_ms", first: int = 1, **layout: int
) -> list[AttemptWindow]:
    """Ten steps of a second in each window; ``values(rank, step)`` in milliseconds, steps from 0."""
    made = []
    for number in range(count):
        start, base = number * 10, number * STEPS
        summaries = []
        for rank in range(ranks):
            row = [values(rank, base + step) for step in range(STEPS)]
            own = series(timer, first + base, [None if one is None else float(one) for one in row], start)
            total = series("total_ms", first + base, [1000.0] * STEPS, start)
            iteration = first + base + STEPS - 1
            summaries.append(
                summary(
                    rank,
                    start,
                    series=[own, total],
                    iteration=iteration,
                    iteration_time=total.times[-1],
                    layout={"world": ranks, **layout} if layout else {},
                )
            )
        made.append(closed(summaries, start))
    return made


def findings(made: list[AttemptWindow]) -> list[list[Anomaly]]:
    return run(StepOutlier(), new_view(), made)


def noise(seed: int, ranks: int = 8, steps: int = 200, level: float = 400.0, share: float = 0.05) -> np.ndarray:
    return np.random.default_rng(seed).normal(level, share * level, (steps, ranks))


def test_a_rank_that_was_slow_from_the_beginning_is_slow_against_its_peers() -> None:
    table = noise(1)
    found = findings(windows(lambda rank, step: table[step, rank] * (2.2 if rank == 6 else 1)))
    assert named(found[-1]) == [[6]]
    (one,) = found[-1]
    assert (one.grounds, one.symptom, one.area, one.severity) == (
        "slow_against_peers",
        "slowdown",
        "compute",
        "critical",
    )
    assert one.victims == [0, 1, 2, 3, 4, 5, 7]


def test_a_rank_that_becomes_slow_has_changed_and_the_onset_is_the_step() -> None:
    table = noise(2)
    found = findings(windows(lambda rank, step: table[step, rank] * (2 if rank == 3 and step >= 42 else 1)))
    assert [named(one) for one in found[:5]] == [[]] * 5
    (one,) = found[-1]
    assert (named([one]), one.grounds) == ([[3]], "slow_and_changed")
    assert one.iteration is not None
    assert 41 <= one.iteration <= 45


def test_who_was_found_stays_so_though_the_steps_that_it_slows_are_longer() -> None:
    # 120 ms are an eighth of a step of a second, and less than a tenth of one of 1.43 s.
    table, made, first = noise(2), [], 1
    for number in range(12):
        count = 10 if number < 5 else 7
        rows = table[first : first + count] + np.where(np.arange(8) == 3, 120.0 * (number >= 4), 0.0)
        told = [
            stepping(
                rank, number * 10, first=first, steps=count, series=[series("compute_ms", first, list(rows[:, rank]))]
            )
            for rank in range(8)
        ]
        made.append(closed(told, number * 10))
        first += count
    assert [named(one) for one in findings(made)[5:]] == [[[3]]] * 7


def test_a_slow_loader_is_a_matter_of_data() -> None:
    table = noise(3)
    found = findings(windows(lambda rank, step: table[step, rank] * (2 if rank == 3 else 1), timer="data_ms"))
    assert [one.area for one in found[-1]] == ["data"]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("noise", lambda rank, step: noise(4)[step, rank]),
        ("rotating worst rank", lambda rank, step: 800.0 if step % 8 == rank else 400.0),
        ("equal", lambda rank, step: 400.0),
        ("slow for a moment", lambda rank, step: 800.0 if rank == 2 and 30 <= step < 37 else 400.0),
        ("warm-up", lambda rank, step: 4000.0 if rank == 0 and step < 5 else 400.0),
        ("slow, but too little to matter", lambda rank, step: 40.0 * (1.5 if rank == 5 else 1)),
        ("five per cent", lambda rank, step: 400.0 * (1.05 if rank == 5 else 1)),
        ("fast", lambda rank, step: 400.0 * (0.3 if rank == 5 else 1)),
        ("nothing measured", lambda rank, step: 0.0),
        ("missing values", lambda rank, step: None if rank == 5 else 400.0),
        ("not a number", lambda rank, step: float("nan") if rank == 5 else 400.0),
        ("infinite", lambda rank, step: float("inf") if rank == 5 else 400.0),
        ("all slower at once", lambda rank, step: 400.0 * (2 if step >= 40 else 1)),
    ],
)
def test_look_alikes_are_no_finding(name: str, values: Values) -> None:
    assert findings(windows(values)) == [[]] * 8, name


STAGES = {"pp": 3, "dp": 4, "tp": 1, "cp": 1}


def test_a_slow_stage_is_no_slow_rank_where_the_layout_is_known() -> None:
    table = noise(5, 12)
    found = findings(windows(lambda rank, step: table[step, rank] * (1.5 if rank >= 8 else 1), 12, **STAGES))
    assert found == [[]] * 8


def test_a_slow_rank_of_a_slow_stage_is_found_among_its_stage() -> None:
    table = noise(6, 12)
    found = findings(
        windows(lambda r, step: table[step, r] * (1.5 if r >= 8 else 1) * (1.6 if r == 9 else 1), 12, **STAGES)
    )
    assert named(found[-1]) == [[9]]


def test_a_slow_rank_of_a_fast_stage_does_not_hide_behind_the_slow_one() -> None:
    table = noise(7, 12)
    found = findings(
        windows(lambda r, step: table[step, r] * (2.0 if r >= 8 else 1) * (1.6 if r == 2 else 1), 12, **STAGES)
    )
    assert named(found[-1]) == [[2]]


def test_many_slow_ranks_are_workload_and_nobody_is_named() -> None:
    found = findings(windows(lambda rank, step: 400.0 * (1.5 if rank < 3 else 1)))
    (one,) = found[-1]
    assert (named([one]), one.grounds, one.area) == ([[]], "many_slow", "workload")


@pytest.mark.parametrize("slow", [0, 1])
def test_of_two_ranks_the_slow_one_is_found(slow: int) -> None:
    found = findings(windows(lambda rank, step: 800.0 if rank == slow else 400.0, 2))
    assert named(found[-1]) == [[slow]]


def test_waiting_and_whole_steps_are_never_compared() -> None:
    for timer in ("allreduce_ms", "total_ms", "backward_ms"):
        assert findings(windows(lambda rank, step: 800.0 if rank == 1 else 400.0, timer=timer)) == [[]] * 8


def test_a_job_that_is_over_has_no_finding() -> None:
    made = windows(lambda rank, step: 800.0 if rank == 1 else 400.0)
    view, detector = new_view(), StepOutlier()
    run(detector, view, made[:-1])
    view.stopped = made[-1].start
    assert run(detector, view, made[-1:]) == [[]]


def test_a_gap_in_one_ranks_values_does_not_hide_it() -> None:
    found = findings(
        windows(lambda rank, step: None if rank == 5 and step % 4 == 0 else 400.0 * (2 if rank == 5 else 1))
    )
    assert named(found[-1]) == [[5]]


def test_a_rank_that_reports_a_window_late_is_judged_with_its_own_steps() -> None:
    made = windows(lambda rank, step: 800.0 if rank == 5 else 400.0)
    shifted = []
    for number, window in enumerate(made):
        others = [one for one in window.summaries if one.identity.rank != 5]
        late = [one for one in made[number - 1].summaries if one.identity.rank == 5] if number else []
        shifted.append(closed([*others, *late], number * 10))
    assert named(findings(shifted)[-1]) == [[5]]


def test_a_restore_between_any_two_windows_changes_nothing() -> None:
    table = noise(8)
    made = windows(lambda rank, step: table[step, rank] * (2 if rank == 3 and step >= 32 else 1))
    whole = findings(made)
    for cut in range(1, len(made)):
        view, first = new_view(), StepOutlier()
        before = run(first, view, made[:cut])
        again = StepOutlier()
        again.restore(first.snapshot())
        assert before + run(again, view, made[cut:]) == whole


def test_state_stays_bounded() -> None:
    view, detector, sizes = new_view(), StepOutlier(), []
    for window in windows(lambda rank, step: 400.0, 2, 60):
        run(detector, view, [window])
        sizes.append(len(bytes(detector.snapshot())))
    assert sizes[-1] <= 1.1 * max(sizes[25:35])


@FIXED
@given(st.integers(0, 2**32 - 1), st.integers(2, 12), st.integers(1, 30))
def test_missing_values_are_never_flagged_and_never_hide_others(seed: int, ranks: int, steps: int) -> None:
    random = np.random.default_rng(seed)
    values = random.uniform(1, 100, (steps, ranks))
    values[random.random((steps, ranks)) < 0.3] = np.nan
    flags, ratio, center = contrast(values, Bounds())
    assert not (flags & np.isnan(values)).any()
    assert np.isfinite(ratio).all()
    assert np.isfinite(center).all()


@FIXED
@given(st.integers(0, 2**32 - 1), st.integers(2, 12), st.permutations(range(12)))
def test_renaming_ranks_renames_the_flags(seed: int, ranks: int, order: list[int]) -> None:
    values = np.random.default_rng(seed).lognormal(0, 1, (5, ranks))
    turned = [rank for rank in order if rank < ranks]
    flags, _, _ = contrast(values, Bounds())
    again, _, _ = contrast(values[:, turned], Bounds())
    assert (flags[:, turned] == again).all()


@pytest.mark.parametrize("changes", [{"steps": 1}, {"steps": 300}, {"history_steps": 5}])
def test_a_config_that_cannot_work_is_refused(changes: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="step_outlier"):
        StepOutlierConfig(**changes)
