"""Whether ranks mean the same step by one number: some count from 0 beside others' 1, and clocks differ.

A rank that reports a number later than most others by about a step counts one lower, or its clock is behind: nothing
tells which, so neither may make it the first. By how much it does is the mean over all reports of a number, since many
print whole seconds and steps can be shorter.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, inf, sqrt
from statistics import fmean, median, pstdev

from schemas.results import Series
from streams.config import SECOND


def steps_lower(lags: list[float], step_ns: float, *, whole_seconds: bool) -> tuple[float, float]:
    """By how many steps a rank may count lower than most, and how far off that may be; endless where it is not known.

    ``lags`` is how much later than most it reports the same numbers (ns). Of n times in whole seconds, all alike, the
    true ones may still differ by about the n-th part of one.
    """
    if not lags or step_ns <= 0:
        return 0.0, inf
    error = 2 * pstdev(lags) / sqrt(len(lags)) + (SECOND / len(lags) if whole_seconds else 0.0)
    return fmean(lags) / step_ns, error / step_ns


def no_lead(lower: float, error: float = 0.0, other: float = 0.0) -> float:
    """So many steps before another rank are no lead; ``lower`` and ``other`` are what ``steps_lower`` says of both."""
    steps = lower + error - other - 0.5
    return max(0, ceil(steps)) if steps < inf else inf


def numbering(told: Sequence[tuple[int, Series]], step_ns: float) -> dict[int, tuple[float, float]]:
    """What ``steps_lower`` says of each rank, by the reports of one series in one window.

    ``step_ns`` is how long a step takes as far as is known, for when the reports themselves do not tell.
    """
    times: dict[int, list[int]] = {}
    for _, series in told:
        for iteration, time in zip(series.iterations, series.times, strict=True):
            times.setdefault(iteration, []).append(time)
    usual = {iteration: median(found) for iteration, found in times.items() if len(found) > 1}
    if len(usual) > 1:
        first, last = min(usual), max(usual)
        step_ns = (usual[last] - usual[first]) / (last - first)
    whole = all(time % SECOND == 0 for found in times.values() for time in found)
    return {
        rank: steps_lower(
            [time - usual[at] for at, time in zip(series.iterations, series.times, strict=True) if at in usual],
            step_ns,
            whole_seconds=whole,
        )
        for rank, series in told
    }
