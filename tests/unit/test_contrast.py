"""The statistics by which lines are contrasted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.contrast import above_peers, few_of, lacking, typical


def above(*counts: int, few: int = 2) -> list[int]:
    return np.flatnonzero(above_peers(np.array([counts]), few, 4.0, 10.83)[0]).tolist()


@pytest.mark.parametrize(
    ("counts", "flagged"),
    [
        ((0, 0, 0, 0, 0, 9, 0, 0), [5]),
        ((0, 0, 0, 0, 0, 4, 0, 0), []),
        ((0, 0, 0, 0, 9, 9, 0, 0), [4, 5]),
        ((0, 0, 0, 9, 9, 9, 0, 0), []),
        ((10, 11, 9, 10, 12, 10, 60, 10), [6]),
        ((10, 11, 9, 10, 12, 10, 40, 10), []),
        ((0, 0, 0, 0, 0, 0, 0, 0), []),
        ((7,), []),
    ],
)
def test_who_is_above_the_peers(counts: tuple[int, ...], flagged: list[int]) -> None:
    assert above(*counts) == flagged


@given(st.lists(st.integers(0, 200), min_size=4, max_size=12), st.randoms(use_true_random=False))
def test_columns_in_another_order_give_the_same_answer_in_that_order(counts: list[int], chance: object) -> None:
    order = list(range(len(counts)))
    getattr(chance, "shuffle")(order)  # noqa: B009
    plain = set(above(*counts))
    assert {order[place] for place in above(*(counts[place] for place in order))} == plain


def test_what_is_typical_is_what_all_but_few_do_not_exceed() -> None:
    assert typical(np.array([[1, 9, 8, 2], [0, 0, 0, 7]]), 1).tolist() == [[8], [0]]
    assert [few_of(ranks, 0.25) for ranks in (1, 4, 8, 100)] == [1, 1, 2, 25]


def test_lacking_takes_a_past_and_nearly_all_peers() -> None:
    counts = np.array([[3, 3, 0, 3], [3, 0, 0, 3], [1, 1, 0, 1], [3, 3, 0, 3]])
    before = np.ones((4, 4), dtype=np.bool_)
    before[3, 2] = False
    assert np.argwhere(lacking(counts, before, 0.9, 2)).tolist() == [[0, 2]]
