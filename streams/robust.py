"""Robust statistics: medians and deviations that a few outliers do not move, over ranks for many steps at once."""

from __future__ import annotations

from statistics import median

import msgspec
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

SIGMA = 1.4826
"""Median absolute deviations of a normal distribution in one standard deviation."""


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """What makes a value stand out: ``ratio`` to the peers' median and ``mads`` deviations above it.

    Deviations have a floor of a share of the median, and count only from ``peers_for_mad`` ranks on: with four peers or
    fewer a z-score cannot exceed 2.
    """

    ratio: float = 1.1
    mads: float = 5.0
    floor: float = 0.01
    peers_for_mad: int = 4

    def __post_init__(self) -> None:
        if not (self.ratio > 1 and self.mads > 0 and 0 < self.floor < 1 and self.peers_for_mad > 1):
            raise ValueError("bounds: ratio > 1, mads > 0, 0 < floor < 1 and peers_for_mad > 1 must hold")


def contrast(values: Array, bounds: Bounds) -> tuple[npt.NDArray[np.bool_], Array, Array]:
    """Flags, ratios and peers' medians of [..., rank] values; missing ones are NaN and never flagged.

    In small groups each rank is held against the median of the *others*, so that in a pair neither hides behind itself;
    from ``2 * peers_for_mad`` ranks on its own share in the median does not matter.
    """
    ranks = values.shape[-1]
    if ranks >= 2 * bounds.peers_for_mad:
        middle, deviation = middle_of(values, bounds.floor)
        center, spread = np.broadcast_to(middle, values.shape), np.broadcast_to(deviation, values.shape)
    else:
        others = np.where(np.eye(ranks, dtype=bool), np.nan, values[..., np.newaxis, :])
        center, spread = (one[..., 0] for one in middle_of(others, bounds.floor))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(center > 0, values / center, np.nan)
        flags = ratio > bounds.ratio
        few = (~np.isnan(values)).sum(axis=-1, keepdims=True) < bounds.peers_for_mad
        flags &= few | (values > center + bounds.mads * spread)
    return flags & np.isfinite(values), np.nan_to_num(ratio, nan=1.0), np.nan_to_num(center, nan=0.0)


def middle_of(values: Array, share: float | Array, least: float | Array = 0.0) -> tuple[Array, Array]:
    """Median and median deviation along the last axis, which stays; missing values are NaN and left out.

    Deviations are no less than a ``share`` of the median, nor than ``least``.
    """
    middle = median_of(values)[..., np.newaxis]
    deviation = median_of(np.abs(values - middle))[..., np.newaxis]
    return middle, np.maximum(deviation, np.maximum(share * np.abs(middle), least))


def median_of(values: Array) -> Array:
    """The median along the last axis, without missing values; NaN where there is none.

    numpy's own takes a hundred times as long where values may be missing.
    """
    if values.shape[-1] == 0:
        return np.full(values.shape[:-1], np.nan)
    ordered = np.sort(values, axis=-1)
    count = (~np.isnan(values)).sum(axis=-1, keepdims=True)
    below = np.take_along_axis(ordered, np.maximum(count - 1, 0) // 2, axis=-1)
    above = np.take_along_axis(ordered, count // 2 % values.shape[-1], axis=-1)
    middle: Array = np.where(count > 0, below + (above - below) / 2, np.nan)[..., 0]
    return middle


def spread(values: list[float], center: float) -> float:
    """Standard deviation by the median absolute deviation from ``center``."""
    return SIGMA * median(abs(value - center) for value in values)


def usual(values: list[float], floor: float) -> tuple[float, float]:
    """Median and standard deviation of some values, which is at least ``floor``, a share of the median."""
    center = median(values)
    return center, max(spread(values, center), floor * abs(center))
