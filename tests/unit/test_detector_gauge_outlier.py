"""Ranks whose sampled metrics are unlike their peers', window after window."""

from __future__ import annotations

import pytest
from detection_support import closed, gauge, new_view, run, summary

from schemas.results import Anomaly
from streams.detectors.gauge_outlier import GaugeOutlier


def findings(columns: dict[int, list[float | None]], **fields: str) -> list[list[Anomaly]]:
    windows = []
    for index in range(len(columns[0])):
        start = index * 10
        summaries = []
        for rank, values in columns.items():
            value = values[index]
            gauges = [] if value is None else [gauge("cpu_percent", value, **fields)]
            summaries.append(summary(rank, start, gauges=gauges))
        windows.append(closed(summaries, start))
    return run(GaugeOutlier(), new_view(), windows)


def about(found: list[list[Anomaly]]) -> list[list[list[int]]]:
    return [[one.about for one in window] for window in found]


def peers(ranks: int = 7, windows: int = 6) -> dict[int, list[float | None]]:
    return {rank: [50.0 + rank + index % 2 for index in range(windows)] for rank in range(ranks)}


@pytest.mark.parametrize("value", [5.0, 99.0])
def test_a_rank_that_stays_unlike_its_peers_is_noted_once_as_information(value: float) -> None:
    found = findings(peers() | {7: [value] * 6})
    assert about(found) == [[], [], [[7]], [], [], []]
    assert (found[2][0].grounds, found[2][0].severity, found[2][0].suspects) == ("unlike_peers", "info", [])
    assert "rank 7" in found[2][0].text


@pytest.mark.parametrize(
    "values",
    [
        [99.0, 50.0, 50.0, 99.0, 50.0, 50.0],
        [99.0, 99.0, 50.0, 50.0, 50.0, 50.0],
        [99.0, 1.0, 99.0, 1.0, 99.0, 1.0],
        [53.0] * 6,
        [99.0, None, None, None, None, None],
    ],
)
def test_what_comes_and_goes_or_lies_close_is_not(values: list[float | None]) -> None:
    assert findings(peers() | {7: values}) == [[]] * 6


def test_few_peers_are_no_peers() -> None:
    assert findings(peers(2) | {7: [99.0] * 6}) == [[]] * 6


def test_a_devices_gauge_is_told_with_its_device() -> None:
    found = findings(peers() | {7: [99.0] * 6}, device="GPU-1")
    assert about(found) == [[], [], [[7]], [], [], []]
    assert "cpu_percent (GPU-1) 99" in found[2][0].text


def test_equal_peers_have_a_floor() -> None:
    same: dict[int, list[float | None]] = {rank: [50.0] * 6 for rank in range(7)}
    assert findings(same | {7: [60.0] * 6}) == [[]] * 6
