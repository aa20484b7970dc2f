"""What counters gain: over wraps, after resets, where units change and time stands still."""

from __future__ import annotations

import pytest
from detection_support import FIXED
from hypothesis import given
from hypothesis import strategies as st

from schemas.measures import Measure
from streams.counters import Counted, gained, rate

PLAIN = Measure(counter=True)
WORDS = Measure(factor=4.0, counter=True)
S = 1_000_000_000


@pytest.mark.parametrize(
    ("before", "after", "measure", "gain"),
    [
        (7, 7, PLAIN, 0),
        (7, 9, PLAIN, 2),
        (2**32 - 10, 5, PLAIN, 15),
        (4 * (2**32 - 10), 20, WORDS, 60),
        (2**64 - 4096, 4096, PLAIN, 8192),
        (900, 3, PLAIN, None),
        (2**31, 3, PLAIN, None),
        (2**32 - 10, 2**31, PLAIN, None),
        (2**33, 5, PLAIN, None),
    ],
)
def test_it_wraps_near_the_end_of_its_width_and_is_reset_otherwise(
    before: float, after: float, measure: Measure, gain: float | None
) -> None:
    assert gained(Counted(0, before, "count"), Counted(S, after, "count"), measure) == gain


@pytest.mark.parametrize(("time", "unit"), [(S, "bytes"), (0, "count"), (-S, "count")])
def test_another_unit_or_a_time_that_does_not_go_on_tells_nothing(time: int, unit: str) -> None:
    assert gained(Counted(0, 1, "count"), Counted(time, 9, unit), PLAIN) is None


def test_a_rate_is_by_the_second() -> None:
    assert rate(Counted(0, 10, "count"), Counted(4 * S, 30, "count"), PLAIN) == 5


@FIXED
@given(
    st.floats(min_value=0, max_value=2.0**65),
    st.floats(min_value=0, max_value=2.0**65),
    st.integers(min_value=-S, max_value=S),
)
def test_no_rate_is_ever_negative(before: float, after: float, apart: int) -> None:
    for measure in (PLAIN, WORDS):
        found = rate(Counted(0, before, ""), Counted(apart, after, ""), measure)
        assert found is None or found >= 0
