"""The frontier of steps: where and by whom steps are held up first; what is ambiguous is said to be."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
from detection_support import anomaly, closed, identity, new_view, run, series, summary

from schemas.results import Anomaly, Window
from streams.detectors.stage_frontier import StageFrontier, StageFrontierConfig
from streams.frontier import frontier, phases_of
from streams.incidents.opened import IncidentBookState, Open
from streams.incidents.situated import situation_of

RANKS, STEPS = 8, 40
Took = Callable[[int, int], tuple[float, float, float]]
"""Milliseconds of data, forward and backward by rank and step."""


def waited(took: Took, rank: int, step: int) -> list[float]:
    """Four phases of a rank: in the last one it waits for the latest."""
    own = took(rank, step)
    latest = max(sum(took(other, step)) for other in range(RANKS))
    return [*own, latest - sum(own) + 5]


NAMES = ["data_load_ms", "forward_compute_ms", "backward_ms", "allreduce_wait_ms"]


def window_of(took: Took, start: float, first: int, steps: int = 10, **more: Any) -> list[Window]:
    found = []
    for rank in range(RANKS):
        phases = np.array([waited(took, rank, step) for step in range(first, first + steps)]).T
        own = [series(name, first, values.tolist(), start) for name, values in zip(NAMES, phases, strict=True)]
        found.append(summary(rank, start, series=sorted(own, key=lambda one: one.name), **more))
    return found


def findings(took: Took, config: StageFrontierConfig | None = None, **more: Any) -> list[Anomaly]:
    windows = [closed(window_of(took, start, start + 1, **more), start) for start in range(0, STEPS, 10)]
    return [one for found in run(StageFrontier(config), new_view(), windows) for one in found]


def noise(rank: int, step: int) -> float:
    return random.Random(f"{rank}|{step}").uniform(-2, 2)


def steady(rank: int, step: int) -> tuple[float, float, float]:
    return 20.0, 100.0 + noise(rank, step), 200.0


def late(rank: int, step: int) -> tuple[float, float, float]:
    return steady(rank, step) if rank != 3 else (20.0, 200.0 + noise(rank, step), 200.0)


def loading(rank: int, step: int) -> tuple[float, float, float]:
    return steady(rank, step) if rank != 6 else (120.0, 100.0, 200.0)


def rotating(rank: int, step: int) -> tuple[float, float, float]:
    return (20.0, 200.0 if rank == step % RANKS else 100.0, 200.0)


def shifting(rank: int, step: int) -> tuple[float, float, float]:
    own = [20.0, 100.0, 200.0]
    if rank == step % RANKS:
        own[step % 3] += 100.0
    return own[0], own[1], own[2]


def two(rank: int, step: int) -> tuple[float, float, float]:
    return (20.0, 200.0 if rank in (2, 5) else 100.0, 200.0)


@pytest.mark.parametrize(
    ("took", "said"),
    [
        (late, "held up first in forward_compute_ms, by rank 3, in 20 of the last 20 steps"),
        (loading, "held up first in data_load_ms, by rank 6, in 20 of the last 20 steps"),
        (rotating, "first in forward_compute_ms, by ranks that change or are as late as others, in 20 of the last 20"),
        (two, "first in forward_compute_ms, by ranks that change or are as late as others"),
        (shifting, "held up first in one phase or another, by ranks that change"),
    ],
)
def test_the_phase_and_the_rank_that_hold_steps_up_are_told(took: Took, said: str) -> None:
    found = findings(took)
    assert found
    assert said in found[-1].text
    assert found[-1].grounds == ("frontier" if "by rank " in said else "frontier_ambiguous")
    assert found[-1].text.endswith("ambiguous") == (found[-1].grounds == "frontier_ambiguous")
    assert {(one.severity, len(one.suspects), len(one.victims)) for one in found} == {("info", 0, 0)}
    assert found[-1].metric == (said.split()[4].rstrip(",") if "by rank " in said else "")


@pytest.mark.parametrize(
    ("timers", "leading", "within"),
    [
        ([], False, False),
        (["forward_ms"], True, False),
        (["forward_backward_ms"], True, True),
        (["allreduce_ms"], True, True),
        (["forward_backward_ms", "forward_ms"], True, False),
        ([""], True, False),
    ],
)
def test_blame_learns_whether_who_holds_steps_up_may_wait_in_that_timer(
    timers: list[str], leading: bool, within: bool
) -> None:
    first = anomaly("job_shift")
    found = [anomaly("job_shift", start=10 * at, metric=timer) for at, timer in enumerate(timers)]
    support = [msgspec.structs.replace(one, grounds="frontier") for one in found]
    incident = Open(first=first.id, family="slowdown", anomalies=[first], support=support)
    situation = situation_of(incident, IncidentBookState(), new_view(), closed([], 100))
    assert (situation.leading, situation.led_within) == (leading, within)


def test_steps_that_nobody_holds_up_give_no_finding() -> None:
    assert findings(steady) == []


def test_a_stage_with_more_work_holds_nobody_up() -> None:
    def heavy(rank: int, step: int) -> tuple[float, float, float]:
        return (20.0, 100.0 if rank < 4 else 300.0, 200.0)

    told: list[Anomaly] = []
    detector, view = StageFrontier(), new_view()
    for start in range(0, STEPS, 10):
        stages = [
            summary(
                one.identity.rank,
                start,
                who=identity(one.identity.rank, coordinates={"pp": (one.identity.rank or 0) // 4}),
                series=one.series,
            )
            for one in window_of(heavy, start, start + 1)
        ]
        told += run(detector, view, [closed(stages, start)])[0]
    assert told == []


def test_a_step_that_ends_in_the_next_window_is_judged_there() -> None:
    detector, view = StageFrontier(), new_view()
    for start in range(0, STEPS, 10):
        whole = window_of(late, start, start + 1, 11 if start == 0 else 10)
        early = [one if rank < 5 else window_of(late, start, start + 1, 9)[rank] for rank, one in enumerate(whole)]
        run(detector, view, [closed(early, start)])
    assert all(step.rank == 3 for step in detector.state.judged)
    assert len(detector.state.judged) == 20


def test_a_step_that_is_waited_for_does_not_make_what_is_judged_forgotten() -> None:
    detector, view = StageFrontier(StageFrontierConfig(warm_up_steps=1)), new_view()
    whole = window_of(late, 0, 1)
    behind = [one if rank else window_of(late, 0, 2, 9)[0] for rank, one in enumerate(whole)]
    run(detector, view, [closed(behind, 0)])
    assert [step.iteration for step in detector.state.judged] == list(range(3, 11))
    first = [one if rank == 0 else summary(rank, 10) for rank, one in enumerate(window_of(late, 10, 1, 1))]
    run(detector, view, [closed(first, 10)])
    assert len(detector.state.judged) == 8


def test_what_is_kept_is_bounded_whatever_is_reported() -> None:
    config = StageFrontierConfig()
    detector, view = StageFrontier(config), new_view()
    wild = [
        summary(
            rank, 0, series=[series("forward_ms", 2**40 * rank, [1.0] * 3_000), series("backward_ms", 5, [None, -1.0])]
        )
        for rank in range(4)
    ]
    run(detector, view, [closed(wild, 0)])
    assert len(detector.state.judged) <= config.steps
    assert sum(len(one.iterations) for one in detector.state.pending.values()) <= 4 * config.pending_steps


def test_phases_are_in_the_order_of_a_step_and_spans_of_several_are_none() -> None:
    names = ["optimizer_ms", "backward-compute_ms", "allreduce_wait_ms", "forward-backward_ms", "forward-compute_ms"]
    assert phases_of([*names, "data_load_ms", "step_time_s", "loss", "uptime_s"]) == [
        "data_load_ms",
        "forward-compute_ms",
        "backward-compute_ms",
        "allreduce_wait_ms",
        "optimizer_ms",
    ]
    assert phases_of(["forward-backward_ms", "optimizer_ms"]) == ["forward-backward_ms", "optimizer_ms"]


def test_the_increment_counts_where_it_arises_and_not_where_it_is_passed_on() -> None:
    values = np.array([[[10.0, 50.0, 5.0], [10.0, 90.0, 5.0], [10.0, 50.0, 45.0]]])
    found = frontier(values, [[0, 1, 2]])
    assert (found.phase[0], found.rank[0], found.excess[0], found.length[0]) == (1, 1, 40.0, 105.0)
    assert not found.shared[0]
    nothing = frontier(np.full((1, 2, 1), np.nan), [[0, 1]])
    assert (nothing.excess[0], nothing.length[0]) == (0.0, 0.0)
