"""How likely it is that so many of the jobs at one place point at it by chance, where jobs are hit at random.

What is supposed is that the jobs that are hit are any of all jobs, as by something that all of them share, and that
each points at the place with the chance that is its share of it, as if it named any of its nodes. Then whether a job
would point there, were it hit, does not depend on whether it is hit. Of those w jobs that would, h are hit with the
hypergeometric probability, and w is a sum of independent trials with unlike chances (the Poisson binomial
distribution; Wang, "On the number of successes in independent trials", Statistica Sinica 3, 1993):

    P(at least m point there) = sum over w of P(w would) * P(at least m of w jobs are among the hit)

Which m jobs they are does not matter: any of those that run there might have been hit.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

import numpy as np


def points_by_chance(jobs: int, hit: int, shares: Sequence[float], least: int) -> float:
    """The chance that ``least`` or more jobs at a place are among ``hit`` of ``jobs`` and point at the place.

    ``shares`` has one chance for each job that runs there: that it points there if it is hit.

    >>> round(points_by_chance(10, 10, [0.5, 0.5], 1), 3)  # all are hit: one of two coins
    0.75
    >>> round(points_by_chance(10, 5, [1.0, 1.0], 2), 3)
    0.222
    """
    would = _would_point(shares)
    tails = hit_by_chance(jobs, hit, len(shares), least)
    return min(float(sum(chance * tail for chance, tail in zip(would, tails, strict=True))), 1.0)


def _would_point(shares: Sequence[float]) -> list[float]:
    """The chance that 0, 1, ... jobs would point there; multiplied out one job at a time, in order of their shares."""
    chances = np.zeros(len(shares) + 1)
    chances[0] = 1.0
    for number, share in enumerate(sorted(shares), start=1):
        more = chances[:number] * share
        chances[:number] *= 1.0 - share
        chances[1 : number + 1] += more
    return [float(one) for one in chances]


def hit_by_chance(jobs: int, hit: int, most: int, least: int) -> list[float]:
    """The chance that ``least`` or more of w jobs are among ``hit`` of ``jobs``, for w = 0 to ``most``.

    With one job more there are enough if there were, or if there was one too few and this one is hit. The numbers of
    ways are whole and of any size, so that nothing is too small to be told.

    >>> [round(one, 3) for one in hit_by_chance(10, 5, 3, 2)]
    [0.0, 0.0, 0.222, 0.5]
    """
    if least <= 0:
        return [1.0] * (most + 1)
    if hit < least:
        return [0.0] * (most + 1)
    short, draws = least - 1, comb(jobs, hit)
    tails = [0.0] * min(least, most + 1)
    ways = comb(jobs - short, hit - short)  # that of ``short`` jobs all are hit
    for before in range(short, most):
        tails.append(tails[-1] + ways / draws * (hit - short) / (jobs - before))
        ways = ways * (before + 1) * (jobs - before - hit + short) // ((before + 1 - short) * (jobs - before))
    return tails[: most + 1]
