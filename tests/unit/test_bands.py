"""Metrics against their own past: what leaves a band and stays out, and what is usual for a metric."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from streams.bands import LARGEST, BandConfig, Bands

CONFIG = BandConfig()
Values = NDArray[np.float32]


def scores(samples: Values) -> NDArray[np.float64]:
    """The score after each sample; samples are [time, metric]."""
    bands, found = Bands.new(samples.shape[1], 1), []
    for sample in samples:
        bands.take(sample[:, None], CONFIG)
        found.append(bands.scores(CONFIG)[0])
    return np.array(found)


def noisy(samples: int = 400, metrics: int = 4) -> Values:
    noise = np.random.default_rng(7).normal(50, 2, (samples, metrics))
    return noise.astype(np.float32)


def changed(change: Callable[[Values], object]) -> NDArray[np.float64]:
    samples = noisy()
    change(samples)
    return scores(samples)


def put(metrics: slice, times: slice, value: float) -> Callable[[Values], object]:
    return lambda samples: samples.__setitem__((times, metrics), value)


def test_a_prefix_scores_as_the_whole_does() -> None:
    samples = noisy()
    samples[200:] += 20
    whole = scores(samples)
    for length in (1, 5, 13, 200, 210, 399):
        assert scores(samples[:length]).tolist() == whole[:length].tolist()


def test_what_leaves_its_past_and_stays_out_is_told_from_a_spike() -> None:
    level, spike = changed(put(slice(None), slice(300, 400), 90)), changed(put(slice(None), slice(300, 301), 90))
    assert level[:300].max() < 0.1
    assert level[310:330].min() > 0.5
    assert spike.max() < 0.15


def test_many_metrics_say_more_than_one_that_runs_away() -> None:
    many, one = changed(put(slice(0, 3), slice(300, 400), 80)), changed(put(slice(0, 1), slice(300, 400), 1e9))
    assert many.max() > 1.5 * one.max() > 0.2


@pytest.mark.parametrize("length", [3, 6])
def test_bursts_that_a_metric_always_has_say_little(length: int) -> None:
    def burst(samples: Values) -> None:
        for start in range(20, 400, 40):
            samples[start : start + length] = 90

    first = changed(put(slice(None), slice(200, 200 + length), 90)).max()
    assert changed(burst)[200:].max() < 0.6 * first


def test_nothing_is_said_of_what_is_not_known_yet() -> None:
    samples = noisy()
    samples[5:12] = 90
    assert scores(samples)[: CONFIG.warm_up].max() == 0


def test_a_level_that_lasts_becomes_usual() -> None:
    samples = noisy(800)
    samples[400:] += 30
    found = scores(samples)
    assert found[410:420].min() > 0.5
    assert found[500:].max() < 0.1


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("constant", [7.0] * 60),
        ("nothing", [np.nan] * 60),
        ("zeros", [0.0] * 60),
        ("with gaps", [5.0, np.nan, 6.0] * 20),
        ("in steps within the floor", [1000.0] * 30 + [1001.0] * 30),
        ("a slow climb within its usual range", [float(100 + index % 7) for index in range(60)]),
    ],
)
def test_look_alikes_say_nothing(name: str, values: list[float]) -> None:
    assert scores(np.array(values, dtype=np.float32)[:, None]).max() < 0.2


@pytest.mark.parametrize("bad", [1e300, -1e300, 3e38, np.inf, -np.inf, np.nan])
def test_no_value_makes_the_state_unusable(bad: float) -> None:
    bands = Bands.new(1, 1)
    for value in [1.0] * 20 + [bad] * 20 + [1.0] * 20:
        with np.errstate(over="ignore"):
            sample = np.array([[value]], dtype=np.float32)
        bands.take(sample, CONFIG)
    for plane in Bands.PLANES:
        assert np.isfinite(getattr(bands, plane)).all()
        assert np.abs(getattr(bands, plane)).max() <= LARGEST * 2
    assert 0 <= bands.scores(CONFIG)[0] <= 1


def test_each_rank_and_metric_has_a_past_of_its_own() -> None:
    bands = Bands.new(2, 3)
    for index in range(60):
        values = np.full((2, 3), 50.0 + index % 3, dtype=np.float32)
        values[:, 2] = np.nan if index < 40 else 90
        values[:, 1] += 40 * (index >= 40)
        bands.take(values, CONFIG)
    found = bands.scores(CONFIG)
    assert found[1] > 0.2
    assert found[[0, 2]].max() < 0.01


@pytest.mark.parametrize(
    "settings", [{"warm_up": 1}, {"memory": 5}, {"last": 0}, {"outside": 0.0}, {"outside": 0.5}, {"floor": 0.0}]
)
def test_settings_out_of_bounds_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"."):
        BandConfig(**settings)
