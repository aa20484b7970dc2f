"""How likely it is that so many of the jobs at one place are hit, if those that are hit were drawn from all jobs."""

from __future__ import annotations

from math import comb


def hit_by_chance(jobs: int, hit: int, there: int, hit_there: int) -> float:
    """The chance that ``hit_there`` or more of the ``there`` jobs at a place are among ``hit`` of ``jobs``.

    The hypergeometric tail.

    >>> round(hit_by_chance(10, 5, 2, 2), 3)
    0.222
    """
    draws = comb(jobs, hit)
    most = min(there, hit)
    ways = sum(comb(there, k) * comb(jobs - there, hit - k) for k in range(hit_there, most + 1))
    # Whole numbers of any size, so that one division decides: the same everywhere.
    return ways / draws
