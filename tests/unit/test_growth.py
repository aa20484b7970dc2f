"""Which curves of memory grow without end, and how fast."""

from __future__ import annotations

import numpy as np
import pytest

from streams.growth import growing, slope

GIB = 2.0**30
POINTS = 20
LINE = [1 + 0.02 * index for index in range(POINTS)]
"""A fifth more at the end than at the beginning, in GiB."""


def grows(curve: list[float], peak: float = 0.0) -> bool:
    curves = np.array([[curve]]) * GIB
    return bool(growing(curves, np.array([[peak]]) * GIB, 0.1, np.array([[16 * 2.0**20]]))[0, 0])


@pytest.mark.parametrize(
    ("name", "curve"),
    [
        ("a line", LINE),
        ("a line with noise", [value + 0.01 * (-1) ** index for index, value in enumerate(LINE)]),
        ("faster and faster", [1.03**index for index in range(POINTS)]),
        ("a line of small steps", [1 + 0.06 * (index // 3) for index in range(POINTS)]),
        ("a line with small teeth", [value + 0.03 * (index % 4) for index, value in enumerate(LINE)]),
    ],
)
def test_what_grows_all_along_grows(name: str, curve: list[float]) -> None:
    assert grows(curve)


@pytest.mark.parametrize(
    ("name", "curve"),
    [
        ("constant", [1.0] * POINTS),
        ("noise", [1 + 0.3 * ((index * 7) % 5) for index in range(POINTS)]),
        ("one allocation", [1.0] * 10 + [2.0] * 10),
        ("an early allocation", [1.0] * 3 + [2.0] * 17),
        ("a late allocation", [1.0] * 17 + [2.0] * 3),
        ("two allocations", [1.0] * 6 + [1.5] * 7 + [2.0] * 7),
        ("settles", [2 - 0.7**index for index in range(POINTS)]),
        ("saw-tooth", [1 + 0.1 * (index % 10) for index in range(POINTS)]),
        ("falls", LINE[::-1]),
        ("hardly", [1 + 0.001 * index for index in range(POINTS)]),
        ("a few megabytes", [0.01 * value for value in LINE]),
        ("a gap", [*LINE[:5], float("nan"), *LINE[6:]]),
        ("a process that began anew", [*LINE[:10], *LINE[:10]]),
        ("nothing", [0.0] * POINTS),
        ("not measured", [float("nan")] * POINTS),
    ],
)
def test_look_alikes_do_not(name: str, curve: list[float]) -> None:
    assert not grows(curve)


def test_the_rising_side_of_a_tooth_that_came_before_is_no_growth() -> None:
    assert grows(LINE, peak=1.05)
    assert not grows(LINE, peak=1.4)


def test_the_slope_is_that_of_most_points() -> None:
    curve = np.arange(20.0) * 3
    curve[[4, 11]] = 500, -500
    assert slope(curve) == pytest.approx(3, rel=0.1)
