"""A slow rank by all that its timers take longer together, as far as its peers are seen waiting for it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from detection_support import new_view, run
from timed_steps import Values, windows

from schemas.results import Anomaly
from streams.detectors.step_outlier import StepOutlier

DATA = {"pp": 1, "dp": 16, "tp": 1, "cp": 1}


def told(timers: Mapping[str, Values]) -> list[Anomaly]:
    return run(StepOutlier(), new_view(), windows(timers, layout=DATA))[-1]


def part(usual: float, more: float, *ranks: int) -> Values:
    return lambda rank, step: usual + (more if rank in (ranks or (5,)) and step >= 50 else 0.0)


def waited(more: float, *late: int) -> Values:
    return lambda rank, step: 200.0 + (more if rank not in (late or (5,)) and step >= 50 else 0.0)


def percent(one: Anomaly) -> int:
    return int(one.peers.rpartition("; ")[2].split("%")[0])


PARTS = {"forward_compute_ms": part(300, 60), "backward_ms": part(500, 90)}


@pytest.mark.parametrize(
    ("name", "timers", "found"),
    [
        ("each part is too little, and nobody is seen waiting", PARTS, {}),
        (
            "others wait for all of it together",
            {**PARTS, "allreduce_ms": waited(150)},
            {"forward_compute": 15, "backward": 15},
        ),
        ("others wait for less", {**PARTS, "allreduce_ms": waited(70)}, {}),
        ("others do not wait longer", {**PARTS, "allreduce_ms": waited(0)}, {}),
        (
            "one part alone, for which others wait for longer",
            {"forward_compute_ms": part(300, 60), "allreduce_ms": waited(400)},
            {},
        ),
        (
            "what holds waiting too, and others wait for it alone",
            {"forward_compute_ms": part(300, 0), "optimizer_ms": part(8, 400), "allreduce_ms": waited(400)},
            {"optimizer": 40},
        ),
        (
            "what holds waiting too, and nobody times waiting",
            {"forward_compute_ms": part(300, 0), "optimizer_ms": part(8, 400)},
            {},
        ),
        (
            "what holds waiting too, and others do not wait longer",
            {"optimizer_ms": part(8, 400), "allreduce_ms": waited(0)},
            {},
        ),
        (
            "what holds waiting too, and another is waited for as long",
            {"optimizer_ms": part(8, 400), "allreduce_ms": waited(400, 5, 9)},
            {},
        ),
        (
            "what holds waiting too, and another does not time its waiting",
            {
                "optimizer_ms": part(8, 400),
                "allreduce_ms": lambda rank, step: None if rank == 9 else waited(400)(rank, step),
            },
            {},
        ),
    ],
)
def test_what_a_slow_rank_costs_is_what_others_wait_for_it(
    name: str, timers: Mapping[str, Values], found: dict[str, int]
) -> None:
    findings = told(timers)
    assert {one.metric for one in findings} == set(found), name
    assert all([suspect.rank for suspect in one.suspects] == [5] for one in findings)
    assert all(one.grounds == "slow_and_changed" and abs(percent(one) - found[one.metric]) <= 1 for one in findings)
