"""Losses and gradient norms far above their recent past."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from detection_support import at, closed, named, new_view, run, series, summary

from schemas.results import Anomaly, Series
from streams.attempt_window import AttemptWindow
from streams.detectors.loss_spike import LossSpike, LossSpikeConfig

Values = Sequence[float | None]


def usual(steps: int = 120, level: float = 2.5, share: float = 0.02, seed: int = 3) -> list[float]:
    return [float(value) for value in np.random.default_rng(seed).normal(level, abs(level) * share, steps)]


def raised(values: Sequence[float], first: int, last: int, factor: float) -> list[float]:
    return [value * (factor if first <= step < last else 1.0) for step, value in enumerate(values)]


def falling_again(reports: float) -> list[float]:
    """Three times as high at report 60; of what it is up, a third is left after so many ``reports``."""
    return [
        value + (5.0 * float(np.exp((60 - step) / reports)) if step >= 60 else 0.0)
        for step, value in enumerate(usual(200))
    ]


SIGNED = [float(value) for value in np.random.default_rng(1).normal(0, 0.1, 3000)]
"""As the loss of a policy is."""


def windows(ranks: Mapping[int, Values], name: str = "lm_loss", start: float = 0, **fields: Any) -> list[AttemptWindow]:
    """Ten iterations a window, counted from 0 on."""
    steps = max(len(values) for values in ranks.values())
    return [
        closed(
            [
                summary(rank, start + at, series=[series(name, at, values[at : at + 10], start + at)], **fields)
                for rank, values in sorted(ranks.items())
                if values[at : at + 10]
            ],
            start + at,
        )
        for at in range(0, steps, 10)
    ]


def findings(*parts: list[AttemptWindow]) -> list[Anomaly]:
    seen = run(LossSpike(), new_view(), [window for part in parts for window in part])
    return [one for found in seen for one in found]


def told(found: list[Anomaly]) -> list[tuple[str, str, int | None]]:
    return sorted({(one.grounds, one.severity, one.iteration) for one in found}, key=str)


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("lm_loss", raised(usual(), 60, 61, 3.0), [("spike", "info", 60)]),
        ("lm_loss", raised(usual(), 60, 65, 2.0), [("spike", "info", 60)]),
        ("lm_loss", raised(usual(), 65, 120, 2.0), [("spike", "info", 65), ("stays_up", "warning", 65)]),
        ("loss", raised(usual(), 60, 120, 40.0), [("spike", "info", 60), ("stays_up", "warning", 60)]),
        # One hard file of data.
        ("lm_loss", raised(usual(), 60, 75, 2.0), [("spike", "info", 60)]),
        ("lm_loss", falling_again(8.0), [("spike", "info", 60)]),
        ("lm_loss", falling_again(30.0), [("spike", "info", 60)]),
        ("lm_loss", falling_again(2000.0), [("spike", "info", 60), ("stays_up", "warning", 60)]),
        # A cross entropy that is up by a thousandth, and a loss of which nobody knows the unit.
        ("lm_loss", raised(usual(level=0.001), 60, 120, 2.0), [("spike", "info", 60)]),
        ("loss", raised(usual(level=0.001), 60, 120, 2.0), [("spike", "info", 60), ("stays_up", "warning", 60)]),
        ("grad_norm", raised(usual(level=0.3, share=0.3), 60, 62, 20.0), [("spike", "info", 60)]),
        ("grad_norm", raised(usual(level=0.3, share=0.3), 60, 120, 20.0), [("spike", "info", 60)]),
        ("critic/vf_loss", raised(usual(), 60, 120, 4.0), [("spike", "info", 60)]),
        ("actor/pg_loss", [*SIGNED[:100], 5.0, *SIGNED], [("spike", "info", 100)]),
        ("loss", [*SIGNED[:100], *[5.0] * 60], [("spike", "info", 100)]),
    ],
)
def test_what_is_far_above_its_past_is_told_from_its_iteration_on(
    name: str, values: list[float], expected: list[tuple[str, str, int]]
) -> None:
    found = findings(windows({7: values}, name))
    assert told(found) == expected
    assert not any(named(found))
    assert all(one.onset == at(float(one.iteration or 0)) for one in found)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("lm_loss", usual(3000, share=0.15)),
        ("lm_loss", [1e4 * 0.9**step + 2.5 for step in range(200)]),
        ("lm_loss", [10.8 - 8 * step / 500 for step in range(500)]),
        ("lm_loss", raised(usual(15), 10, 15, 5.0)),
        ("lm_loss", [2.5] * 200),
        ("lm_loss", [0.0] * 200),
        ("loss", [step / 1000 for step in range(300)]),
        ("lm_loss", [2.5, None, float("nan"), float("inf")] * 50),
        ("grad_norm", usual(3000, share=0.3)),
        ("grad_norm", raised(usual(), 60, 62, 3.0)),
        ("loss", SIGNED),
        ("kl_loss", raised(usual(), 60, 120, 9.0)),
        ("entropy_loss", raised(usual(), 60, 120, 9.0)),
        ("loss_scale", raised(usual(), 60, 120, 9.0)),
        ("elapsed_time_per_iteration_ms", raised(usual(), 60, 120, 9.0)),
        ("grad_norm_ms", raised(usual(), 60, 120, 9.0)),
    ],
)
def test_what_is_usual_says_nothing(name: str, values: Values) -> None:
    assert findings(windows({7: values}, name)) == []


def test_a_loss_that_stays_up_becomes_the_usual_one_in_the_end() -> None:
    found = findings(windows({7: raised(usual(600), 60, 600, 3.0)}))
    assert {one.iteration for one in found} == {60}
    assert found[-1].end < at(400)


def test_a_rank_that_rises_before_all_others_is_named_and_one_whose_rise_stays_its_own_is_not() -> None:
    before = {rank: raised(usual(seed=rank), 62 if rank == 2 else 64, 120, 3.0) for rank in range(4)}
    found = findings(windows(before))
    assert told(found) == [("spike", "info", 62), ("stays_up", "warning", 62)]
    assert set(map(tuple, named(found))) == {(2,)}
    alone = {rank: raised(usual(seed=rank), 62, 120 if rank == 2 else 0, 3.0) for rank in range(4)}
    assert findings(windows(alone)) == []


@pytest.mark.parametrize(
    "ranks",
    [
        {rank: raised(usual(), 62, 120, 3.0) for rank in range(4)},
        {rank: raised(usual(seed=rank), 62 if rank in (1, 2) else 64, 120, 3.0) for rank in range(4)},
        {rank: raised(usual(seed=rank), 40 if rank == 2 else 64, 120, 3.0) for rank in range(4)},
        {rank: raised(usual(seed=rank), 62 if rank == 2 else 64, 120, 3.0) for rank in (2, 3)},
        {2: raised(usual(), 62, 120, 3.0), 0: usual(58), 1: usual(58)},
    ],
)
def test_who_did_not_rise_alone_and_just_before_is_not_named(ranks: dict[int, list[float]]) -> None:
    found = findings(windows(ranks))
    assert found
    assert not any(named(found))


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("parted", [False, True])
def test_several_values_of_one_rank_at_one_iteration_are_no_several_ranks(ranks: int, parted: bool) -> None:
    """A loss each microbatch, of which one of the first rank is high just before all are."""
    rng, made = np.random.default_rng(0), []
    for first in range(0, 140, 10):
        rows: dict[int, list[tuple[int, float]]] = {rank: [] for rank in range(ranks)}
        for step in range(first, first + 10):
            for rank, batch in ((rank, batch) for rank in range(ranks) for batch in range(8)):
                high = step >= 100 or (step in (98, 99) and rank == batch == 0)
                rows[rank].append((step, (20.0 if high else 2.0) * (1 + rng.uniform(-0.01, 0.01))))
        for part in (
            [row[: 4 + 40 * parted] for row in rows.values()],
            [row[4 + 40 * parted :] for row in rows.values()],
        ):
            made.append(
                closed(
                    [
                        summary(
                            rank,
                            first,
                            series=[
                                Series(
                                    name="loss",
                                    iterations=[step for step, _ in row],
                                    times=[at(step) for step, _ in row],
                                    values=[value for _, value in row],
                                    nonfinite=[],
                                )
                            ],
                        )
                        for rank, row in enumerate(part)
                    ],
                    first,
                )
            )
    detector = LossSpike()
    found = [one for each in run(detector, new_view(), made) for one in each]
    assert ("stays_up", "warning", 100) in told(found)
    assert not any(named(found))
    assert all(
        step.count <= ranks for course in detector.state.courses.values() for step in course.steps.pending.values()
    )


def test_a_rank_of_a_pipeline_is_not_named_for_what_came_through_earlier_stages() -> None:
    before = {rank: raised(usual(seed=rank), 62 if rank == 2 else 64, 120, 3.0) for rank in range(4)}
    found = findings(windows(before, layout={"tp": 1, "pp": 2, "dp": 2, "world": 4}))
    assert found
    assert not any(named(found))


def test_lines_that_a_window_parts_are_put_together() -> None:
    early = {rank: usual(60 + (5 if rank < 2 else 0), seed=rank) for rank in range(4)}
    parts = [
        closed(
            [
                summary(rank, 60, series=[series("lm_loss", len(values), raised(usual(30), 0, 30, 3.0), 60)])
                for rank, values in early.items()
            ],
            60,
        )
    ]
    found = findings(windows(early), parts)
    assert not any(named(found))


def test_iterations_that_go_back_and_ranks_that_leave_and_join_are_lived_with() -> None:
    both = windows({0: usual(60), 1: usual(60)})
    again = windows({0: usual(60), 1: usual(60)}, start=60)
    one_left = windows({1: [*usual(60), *raised(usual(60), 20, 60, 3.0)]}, start=120)[6:]
    found = findings(both, again, one_left)
    assert ("stays_up", "warning", 80) in told(found)


def falling(step: int) -> float:
    return 2 + 8 * 0.975**step + 0.01 * (step * 7 % 5)


@pytest.mark.parametrize("before", [[], [30.0] * 30])
def test_after_a_rollback_what_was_usual_before_it_is_not_judged_by(before: list[float]) -> None:
    first = windows({0: [*map(falling, range(200)), *before]})
    # From iteration 20 on again.
    again = windows({0: [falling(step) for step in range(200)]}, start=1000)[2:]
    assert {one.end > at(1000) for one in findings(first, again)} <= {False}
    assert bool(findings(first, again)) == bool(before)


def swinging(seed: int, keep: float, swing: float, steps: int = 2000) -> list[float]:
    """Values of which each follows from the last one."""
    found = [0.0]
    for one in np.random.default_rng(seed).normal(0, swing, steps - 1):
        found.append(keep * found[-1] + float(one))
    return found


@pytest.mark.parametrize("seed", range(4))
def test_a_loss_near_zero_that_swings_by_factors_for_many_reports_is_no_warning(seed: int) -> None:
    bursts = [float(np.exp(value - 4)) for value in swinging(seed, 0.9, 0.4)]
    signed = [value + 0.02 for value in swinging(seed, 0.97, 0.03)]
    for values in (bursts, signed):
        assert {one.severity for one in findings(windows({7: values}))} <= {"info"}
    # Far beyond its swings it is one all the same.
    assert ("stays_up", "warning") in {
        (one.grounds, one.severity) for one in findings(windows({7: [*bursts[:500], *[9.0] * 40]}))
    }


def test_a_lone_hard_batch_of_a_rank_that_is_over_is_not_what_all_others_rose_after() -> None:
    ranks = {rank: raised(usual(seed=rank), 68, 69, 3.0) for rank in range(4)}
    ranks[2][64] *= 3
    found = findings(windows(ranks))
    assert told(found) == [("spike", "info", 68)]
    assert not any(named(found))


def spiking(spikes: Mapping[int, Sequence[int]], since: int) -> dict[int, list[float]]:
    """Four ranks with single spikes of their own, all of which rise at last."""
    ranks = {rank: raised(usual(seed=rank), since, 120, 3.0) for rank in range(4)}
    for rank, steps in spikes.items():
        for step in steps:
            ranks[rank][step] *= 3
    return ranks


@pytest.mark.parametrize(
    ("spikes", "expected"),
    [
        ({2: [62, 63]}, {(2,)}),
        ({2: [63]}, {(2,)}),
        # It was over before the others rose.
        ({2: [62]}, {()}),
        # Others have stood out as long, and nothing came of it.
        ({0: [40], 2: [63]}, {()}),
        ({0: [40], 2: [62, 63]}, {(2,)}),
        ({0: [40, 41], 2: [62, 63]}, {()}),
    ],
)
def test_a_lone_rise_is_named_only_if_it_lasts_until_the_others_rise_and_longer_than_others_did(
    spikes: dict[int, list[int]], expected: set[tuple[int, ...]]
) -> None:
    assert set(map(tuple, named(findings(windows(spiking(spikes, 64)))))) == expected


def late(made: list[AttemptWindow], rank: int, seconds: int) -> list[AttemptWindow]:
    """The same with one rank's times so much later."""
    found = []
    for window in made:
        parts = [
            msgspec.structs.replace(
                one,
                series=[
                    msgspec.structs.replace(each, times=[time + at(seconds) - at(0) for time in each.times])
                    for each in one.series
                ],
            )
            if one.identity.rank == rank
            else one
            for one in window.summaries
        ]
        found.append(msgspec.structs.replace(window, summaries=parts))
    return found


@pytest.mark.parametrize(("lead", "seconds", "expected"), [(1, 0, {(2,)}), (1, 1, {()}), (3, 1, {(2,)}), (2, 3, {()})])
def test_a_lead_that_is_no_more_than_how_a_rank_counts_is_none(
    lead: int, seconds: int, expected: set[tuple[int, ...]]
) -> None:
    ranks = {rank: raised(usual(seed=rank), 64 - (lead if rank == 2 else 0), 120, 3.0) for rank in range(4)}
    found = findings(late(windows(ranks), 2, seconds))
    assert set(map(tuple, named(found))) == expected
    assert {one.iteration for one in found} == {64 if expected == {()} else 64 - lead}


def test_the_loss_itself_has_room_before_gradients_and_the_losses_of_parts() -> None:
    crowd = {f"a{number}_loss": [0.5] * 120 for number in range(12)}
    names = {**crowd, "a_grad_norm": [0.5] * 120, "lm_loss": raised(usual(), 60, 120, 3.0)}
    parts = [
        closed([summary(0, at, series=[series(name, at, names[name][at : at + 10], at) for name in sorted(names)])], at)
        for at in range(0, 120, 10)
    ]
    detector = LossSpike()
    found = [one for each in run(detector, new_view(), parts) for one in each]
    assert ("stays_up", "warning", 60) in told(found)
    assert len(detector.state.courses) == 8
    assert {"a_grad_norm", "lm_loss"} < set(detector.state.courses)


@pytest.mark.parametrize("stuck", [1, 10**9])
def test_a_rank_whose_iterations_stand_still_holds_nobody_up(stuck: int) -> None:
    ranks = 32
    values = raised(usual(400), 200, 400, 3.0)
    detector, told_at = LossSpike(), []
    for at_step in range(0, 300, 10):
        parts = [
            summary(rank, at_step, series=[series("lm_loss", at_step, values[at_step : at_step + 10], at_step)])
            for rank in range(ranks - 1)
        ]
        parts.append(summary(ranks - 1, at_step, series=[series("lm_loss", stuck, [2.5], at_step)]))
        told_at += [at_step] * len(run(detector, new_view(), [closed(parts, at_step)])[0])
    assert told_at[0] <= 240
    (course,) = detector.state.courses.values()
    assert len(course.steps.pending) <= 40
    assert all(len(one.told) <= 4 for one in course.steps.pending.values())


@pytest.mark.parametrize("values", [[1.7e308] * 60, [-1.7e308] * 60, [2.5] * 30 + [1.7e308] * 30])
def test_numbers_whose_sum_is_endless_can_be_written_down(values: list[float]) -> None:
    detector = LossSpike()
    run(detector, new_view(), windows({rank: [one / (1 + rank / 100) for one in values] for rank in range(2)}))
    other = LossSpike()
    other.restore(msgspec.Raw(msgspec.json.encode(detector.state)))
    assert other.state == detector.state


def test_state_is_bounded() -> None:
    detector = LossSpike()
    for at_name in range(40):
        run(detector, new_view(), windows({7: usual(50)}, f"loss_{at_name}_loss"))
    silent = windows({0: usual(10), 1: usual(5000)})
    run(detector, new_view(), silent[:1] + [closed([*one.of(1), summary(0, 0)], 10) for one in silent[1:]])
    assert len(detector.state.courses) <= 8
    assert max(len(course.steps.pending) for course in detector.state.courses.values()) <= 512


def test_a_config_that_cannot_work_is_refused() -> None:
    with pytest.raises(ValueError, match="loss_spike"):
        LossSpikeConfig(least=100)
