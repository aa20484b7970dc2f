"""How far metrics are out of the bands in which they lay so far: one rank against its own past, many metrics at once.

Each metric of each rank has a band between a low and a high quantile of its past, both followed by Robbins and Monro's
stochastic approximation in steps of its mean deviation. Quantiles take bursts and skewed metrics as they are, and what
lasts becomes usual once it is as long as the share of the past that may lie outside. Outside, a metric votes between 0
and 1, so one that runs away counts no more than one metric. No distribution, no training part and no look ahead.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from streams.checks import require

Cells = NDArray[np.float32]
LARGEST = np.float32(1e30)
"""Beyond this, products of such numbers would overflow."""
TINY = np.float32(1e-6)


class BandConfig(msgspec.Struct, frozen=True, kw_only=True):
    """``memory`` windows are remembered, the first ``warm_up`` only learnt from: of ten seconds a day and two minutes.

    ``outside`` of the past lies below a band and as much above it, as far as so small a share can be known by then;
    ``last`` windows are summed up to what is said of the present. A band is at least ``floor`` of its values to either
    side of its middle.
    """

    memory: int = 8640
    warm_up: int = 12
    outside: float = 0.01
    last: int = 10
    floor: float = 0.01

    def __post_init__(self) -> None:
        require(self, above_0=("memory", "outside", "floor"))
        if not (2 <= self.warm_up <= self.memory and self.last >= 1 and self.outside < 0.5):
            raise ValueError("bands: 2 <= warm_up <= memory, last >= 1 and outside < 0.5 must hold")


class Bands:
    """Bands of a [metric, rank] matrix: ``low``, ``high``, mean deviation ``spread`` and the windows ``seen``.

    ``recent`` is a mean of votes in which each window counts one in ``last``; all are of the shape of the values.
    """

    PLANES = ("low", "high", "spread", "seen", "recent")

    def __init__(self, low: Cells, high: Cells, spread: Cells, seen: Cells, recent: Cells) -> None:
        self.low, self.high, self.spread, self.seen, self.recent = low, high, spread, seen, recent

    @classmethod
    def new(cls, *shape: int) -> Bands:
        """Bands of which nothing is known yet."""
        return cls(*(np.zeros(shape, dtype=np.float32) for _ in cls.PLANES))

    def take(self, values: NDArray[np.floating[Any]], config: BandConfig) -> None:
        """Hold one window's values against their bands, then learn from them; NaN is what was not measured."""
        known = np.isfinite(values)
        x = np.clip(np.where(known, values, 0), -LARGEST, LARGEST).astype(np.float32)
        first = known & (self.seen == 0)
        self.low, self.high = np.where(first, x, self.low), np.where(first, x, self.high)
        vote = np.maximum(np.maximum(x - self.high, self.low - x) / self._half(config), 0)
        vote = vote / (1 + vote)
        told = known & (self.seen >= config.warm_up)
        self.recent += np.where(told, (vote - self.recent) / np.float32(config.last), 0)
        self._learn(x, known, config)

    def _half(self, config: BandConfig) -> Cells:
        """Half the width of each band."""
        floor = np.float32(config.floor) * np.maximum(np.abs(self.low), np.abs(self.high))
        return np.maximum((self.high - self.low) / 2, np.maximum(floor, TINY))

    def _learn(self, x: Cells, known: NDArray[np.bool_], config: BandConfig) -> None:
        self.seen += known
        share = 1 / np.clip(self.seen, 1, np.float32(config.memory))
        # Of few samples the extremes are all that is known of rare values.
        outside = np.clip(share, np.float32(config.outside), np.float32(0.5))
        # What lies inside moves an edge inwards, what lies outside moves it outwards 1 / outside - 1 times as far.
        inwards = np.where(known, share * self.spread, 0)
        outwards = inwards * (1 / outside - 1)
        high = self.high + np.where(x > self.high, outwards, -inwards)
        low = self.low - np.where(x < self.low, outwards, -inwards)
        young = known & (self.seen <= config.warm_up)
        high, low = np.where(young, np.maximum(high, x), high), np.where(young, np.minimum(low, x), low)
        # To the spread what lies outside counts as what lies on the edge.
        away = np.minimum(np.abs(x - (self.low + self.high) / 2), self._half(config))
        self.spread += np.where(known, share * (away - self.spread), 0)
        self.low, self.high = np.minimum(low, high), np.maximum(low, high)

    def scores(self, config: BandConfig) -> NDArray[np.float64]:
        """For each rank the mean over its metrics of what was out of band of late, 0 to 1; 0 where none is known."""
        known = self.seen > config.warm_up
        count = known.sum(axis=0)
        found: NDArray[np.float64] = np.where(known, self.recent, 0).sum(axis=0, dtype=np.float64) / np.maximum(
            count, 1
        )
        return found
