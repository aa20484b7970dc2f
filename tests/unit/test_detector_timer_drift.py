"""A rank's timers against their own past."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from detection_support import series

from schemas.results import Drift
from streams.detectors.timer_drift import Config, TimerDrift

CHUNK = 40


def feed(detector: TimerDrift, values: Sequence[float | None], name: str = "compute_ms", first: int = 0) -> list[Drift]:
    found = []
    for at in range(0, len(values), CHUNK):
        found += detector.observe([series(name, first + at, values[at : at + CHUNK], first + at)])
    return found


def noise(seed: int, steps: int, level: float = 100.0, share: float = 0.05) -> np.ndarray:
    return np.random.default_rng(seed).normal(level, share * level, steps)


@pytest.mark.parametrize("seed", range(5))
def test_a_sudden_shift_is_found_at_its_step(seed: int) -> None:
    values = noise(seed, 200)
    values[100:] *= 1.5
    (drift,) = feed(TimerDrift(), values.tolist())
    assert abs(drift.iteration - 100) <= 3
    assert 90 < drift.before < 110
    assert 135 < drift.after < 165


@pytest.mark.parametrize("seed", range(5))
def test_a_slow_trend_is_found(seed: int) -> None:
    values = noise(seed, 300, share=0.03) * np.concatenate([np.ones(100), 1.012 ** np.arange(200)])
    found = feed(TimerDrift(), values.tolist())
    assert found
    assert 95 <= found[0].iteration <= 160
    assert found[0].after > 1.1 * found[0].before


@pytest.mark.parametrize("share", [0.02, 0.1, 0.3])
def test_noise_of_twenty_thousand_steps_is_no_drift(share: float) -> None:
    assert feed(TimerDrift(), np.abs(noise(7, 20_000, share=share)).tolist()) == []


def test_rare_peaks_are_no_drift() -> None:
    values = noise(8, 5_000)
    values[::100] *= 20
    assert feed(TimerDrift(), values.tolist()) == []


@pytest.mark.parametrize("level", [0.0, 1e-12, 100.0])
def test_a_constant_series_is_no_drift_and_a_step_from_it_is(level: float) -> None:
    assert feed(TimerDrift(), [level] * 500) == []
    found = feed(TimerDrift(), [100.0] * 100 + [150.0] * 100)
    assert [drift.iteration for drift in found] == [100]


def test_getting_faster_is_no_drift() -> None:
    values = noise(9, 300)
    values[100:] *= 0.5
    assert feed(TimerDrift(), values.tolist()) == []


def test_a_timer_that_returns_is_told_and_watched_on() -> None:
    values = noise(14, 500)
    for step in [*range(100, 200), *range(300, 400)]:
        values[step] *= 1.5
    found = feed(TimerDrift(), values.tolist())
    assert [drift.after > drift.before for drift in found] == [True, False, True, False]
    assert [abs(drift.iteration - at) <= 10 for drift, at in zip(found, (100, 200, 300, 400), strict=True)] == [
        True
    ] * 4


def test_lengths_that_vary_need_a_larger_shift() -> None:
    for factor, least in ((1.15, 0), (1.8, 1)):
        values = np.random.default_rng(15).lognormal(4.6, 0.2, 400)
        values[100:] *= factor
        assert len(feed(TimerDrift(), values.tolist())) == least


def test_values_that_are_no_numbers_do_not_blind_it() -> None:
    values = [*noise(10, 200).tolist()]
    values[100:] = [value * 1.6 for value in values[100:]]
    values[20:110:7] = [float("nan"), float("inf"), float("-inf")] * 4 + [float("nan")]
    (drift,) = feed(TimerDrift(), values)
    assert abs(drift.iteration - 100) <= 5


def test_a_shift_of_less_than_a_tenth_is_no_drift() -> None:
    values = noise(11, 400, share=0.01)
    values[100:] *= 1.06
    assert feed(TimerDrift(), values.tolist()) == []


def test_the_warm_up_is_no_reference() -> None:
    values = noise(12, 300)
    values[:5] *= 30
    assert feed(TimerDrift(), values.tolist()) == []


@pytest.mark.parametrize("name", ["allreduce_ms", "backward_ms", "lm_loss"])
def test_waiting_and_what_is_no_timer_is_not_watched(name: str) -> None:
    assert feed(TimerDrift(), [100.0] * 100 + [200.0] * 100, name) == []


def test_timers_do_not_mix() -> None:
    detector = TimerDrift()
    found = detector.observe(
        [series("compute_ms", 0, [100.0] * 200), series("data_ms", 0, [10.0] * 100 + [20.0] * 100)]
    )
    assert [drift.metric for drift in found] == ["data_ms"]


@pytest.mark.parametrize("seed", range(3))
def test_a_restore_after_any_chunk_changes_nothing(seed: int) -> None:
    values = noise(seed, 240)
    values[130:] *= 1.4
    whole = feed(TimerDrift(), values.tolist())
    assert whole
    for cut in range(10, 240, 23):
        first = TimerDrift()
        before = feed(first, values[:cut].tolist())
        again = TimerDrift()
        again.restore(first.snapshot())
        assert before + feed(again, values[cut:].tolist(), first=cut) == whole


def test_state_stays_bounded() -> None:
    detector = TimerDrift()
    feed(detector, noise(13, 20_000).tolist())
    assert len(bytes(detector.snapshot())) < 40_000


@pytest.mark.parametrize("changes", [{"steps": 30}, {"memory_steps": 30}])
def test_a_config_that_cannot_work_is_refused(changes: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="timer_drift"):
        Config(**changes)
