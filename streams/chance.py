"""How often somebody is ahead of others by chance: what tells a slow worker from one that had the longer inputs.

If how long steps take differs by chance, independently and alike for all, each of n workers is among the c longest of a
step with probability c / n, whatever the lengths are like; so no deviation has to be estimated from a few steps.
"""

from __future__ import annotations

from math import exp, log

import numpy as np
import numpy.typing as npt

from streams.robust import Array


def among_longest(values: Array, places: int) -> npt.NDArray[np.int64]:
    """In how many rows of [sample, worker] each worker is among the ``places`` longest, not counting ties."""
    ordered = np.sort(values, axis=1)
    bar = ordered[:, -places - 1] if places < values.shape[1] else np.full(len(values), -np.inf)
    return np.asarray((values > bar[:, np.newaxis]).sum(axis=0), dtype=np.int64)


def chance_of(ahead: int, samples: int, workers: int, places: int) -> float:
    """At most how likely any of ``workers`` is among the ``places`` longest in so many of ``samples``, by chance.

    Chernoff's bound of the binomial tail, times the workers that might have been the one.
    """
    usual = places / workers
    if samples == 0 or usual >= 1 or ahead <= usual * samples:
        return 1.0
    share = ahead / samples
    distance = share * log(share / usual)
    if share < 1:
        distance += (1 - share) * log((1 - share) / (1 - usual))
    return min(workers * exp(-samples * distance), 1.0)
