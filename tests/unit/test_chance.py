"""How likely it is to be ahead so often: against the binomial distribution, and of who is as long as others."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

from streams.chance import among_longest, chance_of


@pytest.mark.parametrize("workers", [2, 4, 8, 64])
@pytest.mark.parametrize("samples", [1, 3, 6, 40])
@pytest.mark.parametrize("places", [1, 2])
def test_the_bound_lies_above_the_chance_and_is_exact_where_it_was_always_ahead(
    workers: int, samples: int, places: int
) -> None:
    usual = places / workers
    for ahead in range(samples + 1):
        tail = sum(comb(samples, k) * usual**k * (1 - usual) ** (samples - k) for k in range(ahead, samples + 1))
        assert chance_of(ahead, samples, workers, places) >= min(workers * tail, 1) * (1 - 1e-9)
    assert chance_of(samples, samples, workers, places) == pytest.approx(min(workers * usual**samples, 1))


def test_no_samples_tell_nothing() -> None:
    assert chance_of(0, 0, 8, 1) == 1


def test_who_is_as_long_as_others_is_not_ahead_of_them() -> None:
    values = np.array([[1.0, 2.0, 2.0, 1.0], [1.0, 3.0, 2.0, 1.0], [9.0, 3.0, 3.0, 1.0]])
    assert among_longest(values, 1).tolist() == [1, 1, 0, 0]
    assert among_longest(values, 2).tolist() == [1, 2, 2, 0]
    assert among_longest(values, 4).tolist() == [3, 3, 3, 3]
