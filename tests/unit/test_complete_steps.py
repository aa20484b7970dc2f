"""One series of all ranks, step by step."""

from __future__ import annotations

import pytest
from detection_support import closed, series, summary

from schemas.results import Series
from streams.complete_steps import Steps

OTHERS = [summary(rank, 0, series=[series("loss", 1, [2.0] * 3)]) for rank in range(4)]


@pytest.mark.parametrize(
    ("told", "counts", "value"),
    [
        ([series("loss", 1, [8.0] * 3)], [5, 5, 5], 8.0),
        ([series("loss", 1, [8.0] * 3), series("loss", 1, [2.0] * 3), series("loss", 1, [9.0] * 3)], [5, 5, 5], 8.0),
        ([series("loss", 3, [8.0]), series("loss", 1, [8.0] * 2)], [5, 5, 5], 8.0),
        ([series("loss", 2, [8.0]), series("loss", 2, [float("nan")])], [4, 5], 8.0),
    ],
    ids=["once", "three times", "in parts", "once without a number"],
)
def test_a_rank_that_reports_a_step_several_times_counts_once(
    told: list[Series], counts: list[int], value: float
) -> None:
    steps = Steps()
    window = closed([*OTHERS, *(summary(7, 0, series=[one]) for one in told)])
    steps.take(window.series["loss"], 1)
    found = [step for _, step in steps.complete(0)]
    assert [step.count for step in found] == counts
    assert [list(step.above(4.0)) for step in found if step.count > len(OTHERS)] == [[7]] * counts.count(5)
    assert {one for step in found for one, _, ranks in step.told if ranks == [7]} == {value}
