"""Steps that are skipped one after another, and a loss scale that has collapsed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from detection_support import closed, named, new_view, run, series, summary

from schemas.results import Anomaly
from streams.detectors.loss_scale import LossScale, LossScaleConfig

NOW, EVER = "number_of_skipped_iterations", "skipped"


def findings(columns: Mapping[str, Sequence[float]], stride: int = 1) -> list[Anomaly]:
    """Ten reports a window, the first of iteration 1, the next ``stride`` later; rank 0 prints nothing of it."""
    steps = max(len(values) for values in columns.values())
    told = []
    for at in range(0, steps, 10):
        parts = {name: values[at : at + 10] for name, values in sorted(columns.items()) if values[at : at + 10]}
        made = [series(name, at, part, at) for name, part in parts.items()]
        for one in made:
            one.iterations[:] = [1 + step * stride for step in one.iterations]
        told.append(closed([summary(0, at), summary(7, at, series=made)], at))
    return [one for found in run(LossScale(), new_view(), told) for one in found]


def falling(floor: float, high: float = 65536.0, steps: int = 60) -> list[float]:
    return [max(high / 2**step, floor) for step in range(steps)]


@pytest.mark.parametrize(
    ("columns", "stride", "grounds", "iteration"),
    [
        ({NOW: [0.0] * 10 + [1.0] * 50}, 1, "steps_skipped", 11),
        ({NOW: [0.0] * 10 + [10.0] * 10}, 10, "steps_skipped", 101),
        ({EVER: [3.0] * 10 + [4.0 + step for step in range(50)]}, 1, "steps_skipped", 11),
        ({EVER: [0.0] * 5 + [10.0 * step for step in range(1, 20)]}, 10, "steps_skipped", 51),
        ({"loss_scale": falling(1.0)}, 1, "scale_collapsed", 17),
        ({"loss_scale": falling(1e-30)}, 1, "scale_collapsed", 17),
        ({"train/loss_scale": falling(0.25)}, 1, "scale_collapsed", 17),
    ],
)
def test_it_is_told_since_which_iteration(
    columns: Mapping[str, Sequence[float]], stride: int, grounds: str, iteration: int
) -> None:
    found = findings(columns, stride)
    assert {(one.grounds, one.severity, one.iteration) for one in found} == {(grounds, "warning", iteration)}
    assert not any(named(found))


@pytest.mark.parametrize(
    "columns",
    [
        {NOW: [1.0] * 32 + [0.0] * 60, "loss_scale": falling(2.0, 2.0**32)},
        {NOW: [1.0, 1.0, 1.0, 0.0] * 30},
        {NOW: [0.0] * 100},
        {NOW: [float("nan"), float("inf"), -1.0] * 30},
        {EVER: [5.0] * 100},
        {"loss_scale": [1.0] * 100},
        {"loss_scale": [64.0] * 10 + [1.0] * 50},
        {"loss_scale": [65536.0] * 20 + [1.0] * 5 + [2.0] * 40},
        {"loss_scale": [0.0] * 60},
        {"loss_scale_ms": falling(1.0)},
        {"lm_loss": falling(1.0)},
    ],
)
def test_what_belongs_to_training_says_nothing(columns: Mapping[str, Sequence[float]]) -> None:
    assert findings(columns) == []


def test_reports_that_tell_of_ten_steps_of_which_one_was_skipped_are_no_run() -> None:
    assert findings({NOW: [1.0] * 60}, 10) == []


def test_a_scale_that_recovers_ends_it() -> None:
    found = findings({"loss_scale": [*falling(1.0, steps=40), *[128.0] * 60]})
    assert found
    assert found[-1].end <= found[0].end + 10 * 10**9


def test_two_models_have_scales_and_counts_of_their_own() -> None:
    fine = {"actor/loss_scale": [65536.0] * 60, "actor/skipped": [0.0] * 60}
    found = findings({**fine, "critic/loss_scale": falling(1.0)})
    assert {(one.grounds, one.iteration) for one in found} == {("scale_collapsed", 17)}
    assert "loss scale critic/loss_scale has come down from 65536" in found[0].text
    found = findings({**fine, "critic/skipped": [3.0] * 10 + [4.0 + step for step in range(50)]})
    assert {(one.grounds, one.iteration) for one in found} == {("steps_skipped", 11)}


def test_a_config_that_cannot_work_is_refused() -> None:
    with pytest.raises(ValueError, match="loss_scale"):
        LossScaleConfig(high=1.0)
