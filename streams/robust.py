"""Robust statistics over ranks: medians and deviations that a few outliers do not move, for many steps at once."""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


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
    """Flags, ratios and peers' medians of a [step, rank] matrix; missing values are NaN and never flagged.

    In small groups each rank is held against the median of the *others*, so that in a pair neither hides behind itself;
    from ``2 * peers_for_mad`` ranks on its own share in the median does not matter.
    """
    ranks = values.shape[1]
    if ranks >= 2 * bounds.peers_for_mad:
        center, spread = _median_and_mad(values)
        center, spread = np.broadcast_to(center, values.shape), np.broadcast_to(spread, values.shape)
    else:
        apart = [_median_and_mad(np.delete(values, column, axis=1)) for column in range(ranks)]
        center = np.concatenate([middle for middle, _ in apart], axis=1)
        spread = np.concatenate([deviation for _, deviation in apart], axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(center > 0, values / center, np.nan)
        flags = ratio > bounds.ratio
        if ranks >= bounds.peers_for_mad:
            flags &= values > center + bounds.mads * np.maximum(spread, bounds.floor * center)
    return flags & np.isfinite(values), np.nan_to_num(ratio, nan=1.0), np.nan_to_num(center, nan=0.0)


def _median_and_mad(values: Array) -> tuple[Array, Array]:
    """Median and median absolute deviation of each row, as columns; NaN where a row has no value."""
    middle = np.full((values.shape[0], 1), np.nan)
    deviation = np.full((values.shape[0], 1), np.nan)
    known = np.isfinite(values).any(axis=1)
    middle[known, 0] = np.nanmedian(values[known], axis=1)
    deviation[known, 0] = np.nanmedian(np.abs(values[known] - middle[known]), axis=1)
    return middle, deviation
