"""Ranks that are slow in every third step or so, told from load that moves about and from who waits for others."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from detection_support import named, new_view, run
from timed_steps import Values, windows

from streams.detectors import step_outlier
from streams.detectors.step_outlier import StepOutlier

DICE = np.random.default_rng(11)
SIZES = DICE.lognormal(0, 0.5, (300, 16))
OFTEN = DICE.random((300, 16)) < 0.3


def every(number: int, *ranks: int, since: int = 0, longer: float = 600.0) -> Values:
    return lambda rank, step: 400.0 + longer * (rank in ranks and step >= since and step % number == 0)


def stays(rank: int, step: int) -> float:
    """Load that is with another rank every ten steps, and with this one for ten of thirty."""
    return 400.0 * (2.0 if rank == (5, 9, 12)[step // 10 % 3] else 1)


@pytest.mark.parametrize(
    ("name", "timers", "grounds", "suspects"),
    [
        ("every third step", {"compute_ms": every(3, 5, since=60)}, "slow_and_changed", [5]),
        ("every fourth step", {"data_load_ms": every(4, 5, since=60)}, "slow_and_changed", [5]),
        ("every fifth step", {"compute_ms": every(5, 5, since=60, longer=1000.0)}, "slow_and_changed", [5]),
        ("always", {"compute_ms": every(3, 5)}, "slow_against_peers", [5]),
        ("always rank 0", {"compute_ms": every(3, 0)}, "slow_first_rank", [0]),
        ("every tenth step", {"compute_ms": every(10, 5, since=60, longer=4000.0)}, None, []),
        ("too little to matter", {"compute_ms": every(3, 5, since=60, longer=200.0)}, None, []),
        ("all of them", {"compute_ms": every(3, *range(16), since=60)}, None, []),
        ("five of sixteen", {"compute_ms": every(3, *range(5), since=60)}, None, []),
        (
            "by turns",
            {"compute_ms": lambda rank, step: 400.0 * (2.5 if OFTEN[step, rank] else 1)},
            None,
            [],
        ),
        (
            "inputs of its own that come in all sizes",
            {"compute_ms": lambda rank, step: 400.0 * (max(1.0, SIZES[step, 5]) if rank == 5 else 1)},
            None,
            [],
        ),
        ("load that stays for ten steps", {"compute_ms": stays}, None, []),
        (
            "it waits longer in these steps",
            {"compute_ms": every(3, 5, since=60), "wait_ms": every(3, 5, since=60, longer=300.0)},
            "slow_but_waits",
            [],
        ),
        (
            "for one whose timers leave as much open in these steps",
            {
                "forward_ms": every(3, 5, since=60),
                "allreduce_ms": every(3, *({*range(16)} - {4, 5}), since=60),
                "total_ms": every(3, *range(16), since=60, longer=1000.0),
            },
            "slow_or_waits",
            [5],
        ),
    ],
)
def test_who_is_singled_out(name: str, timers: Mapping[str, Values], grounds: str | None, suspects: list[int]) -> None:
    found = run(StepOutlier(), new_view(), windows(timers, count=14))[-1]
    assert [one.grounds for one in found] == ([grounds] if grounds else []), name
    assert named(found) == ([suspects] if grounds else [])


def test_the_onset_is_the_first_of_these_steps_and_stays_when_it_is_forgotten() -> None:
    found = run(StepOutlier(), new_view(), windows({"compute_ms": every(3, 5, since=60)}, count=40))
    told = [one for each in found for one in each]
    assert len(told) > 25
    assert {(one.grounds, one.iteration, tuple(s.rank for s in one.suspects)) for one in told} == {
        ("slow_and_changed", 61, (5,))
    }
    assert "in 14 of the last 40 steps" in told[-1].text or "in 13 of the last 40 steps" in told[-1].text


def test_more_than_can_be_shown_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    made = windows({"compute_ms": every(3, 5, 9, 12, since=60)}, count=14)
    (found,) = run(StepOutlier(), new_view(), made)[-1]
    assert found.grounds != "many_slow"
    monkeypatch.setattr(step_outlier, "MOST_NAMED", 2)
    (found,) = run(StepOutlier(), new_view(), made)[-1]
    assert found.grounds == "many_slow"
