"""Memory that grows without end: which curves do, robustly, and how fast.

A curve grows if it does so all along: each quarter of its points brings its part, it hardly ever falls, and it is above
all that came before. So neither an allocation, nor what settles after a start, nor the teeth of a saw are growth.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Curves = NDArray[np.float64]
QUARTERS = 4
LEAST_PART = 1 / 6
"""Of the growth, which each of three steps from quarter to quarter brings; of a straight line it is a third."""
MOST_FALL = 0.25
"""Of the growth, by which a curve may lie below its maximum so far."""


def growing(curves: Curves, peak: Curves, share: float, least: Curves) -> NDArray[np.bool_]:
    """Which curves [..., point] grow, by ``share`` of their beginning and ``least`` at least; NaN is not known.

    ``peak`` [...] is the most that was known before them, 0 where nothing was. A curve with a gap is not judged.
    """
    quarters = quarters_of(curves)
    rise = quarters[..., -1] - quarters[..., 0]
    steps = np.diff(quarters, axis=-1)
    fall = (np.maximum.accumulate(curves, axis=-1) - curves).max(axis=-1)
    found: NDArray[np.bool_] = np.isfinite(curves).all(axis=-1) & (quarters[..., 0] > 0)
    found &= (rise >= share * quarters[..., 0]) & (rise >= least)
    found &= (steps >= LEAST_PART * rise[..., None]).all(axis=-1)
    found &= (fall <= MOST_FALL * rise) & (quarters[..., 1] >= peak)
    return found


def quarters_of(curves: Curves) -> Curves:
    """The medians of the four quarters of the points."""
    points = curves.shape[-1] // QUARTERS * QUARTERS
    parts = curves[..., -points:].reshape(*curves.shape[:-1], QUARTERS, points // QUARTERS)
    found: Curves = np.median(parts, axis=-1)
    return found


def to_come(quarters: Curves) -> Curves:
    """How much comes after the last quarter if each step is as much smaller as the last was; infinite if none is.

    So exponential settling ends: each step is the same part of the one before, and what is left a geometric series.
    """
    steps = np.diff(quarters, axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        part = np.sqrt(np.maximum(steps[..., -1], 0) / steps[..., 0])
        rest: Curves = np.where(part < 1, steps[..., -1] * part / (1 - part), np.inf)
    return rest


def slope(curve: Curves) -> float:
    """The median of the slopes between all pairs of points, a point (Theil and Sen); of one curve without gaps."""
    early, late = np.triu_indices(len(curve), k=1)
    return float(np.median((curve[late] - curve[early]) / (late - early)))
