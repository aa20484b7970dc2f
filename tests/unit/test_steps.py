"""Tables of steps: values of many windows and ranks, brought together by step."""

from __future__ import annotations

import random

import msgspec
import numpy as np
import pytest
from detection_support import FIXED, at, series, summary
from hypothesis import given
from hypothesis import strategies as st

from schemas.results import Series
from streams.series_table import Flat, series_table
from streams.state import written
from streams.steps import FORGOTTEN_WINDOWS, StepColumns, StepTable


def again(table: StepTable) -> StepTable:
    """The table as it is read back."""
    return StepTable(msgspec.json.decode(written(table.written()), type=StepColumns))


def given_values(table: StepTable, rows: dict[int, tuple[int, list[float | None]]]) -> None:
    """One window: of each rank the first iteration and its values (ms)."""
    found = {rank: series("compute_ms", first, values, first) for rank, (first, values) in rows.items()}
    table.take(reports(found), np.full(len(rows), 1e6), 0)


def reports(found: dict[int, Series]) -> Flat:
    """What ranks report, as a window tells it."""
    return series_table([summary(rank, series=[one]) for rank, one in found.items()])["compute_ms"].flat


def told(table: StepTable, rank: int) -> dict[int, float]:
    """What a rank's judged steps took (ms), by iteration."""
    column = table.values(0, table.judged)[:, table.places([rank])[0]] / 1e6
    steps = zip(table.iterations[: table.judged], column.tolist(), strict=True)
    return {iteration: round(value, 1) for iteration, value in steps if not np.isnan(value)}


@pytest.mark.parametrize("value", [1e-3, 0.5, 123.4, 86_400_000.0])
def test_a_value_is_kept_within_a_thousandth(value: float) -> None:
    table = StepTable(StepColumns())
    given_values(table, {0: (1, [value])})
    table.settle(1, 200)
    assert table.values(0, 1)[0, 0] / 1e6 == pytest.approx(value, rel=0.0005)


def test_what_comes_late_is_put_into_its_step_and_judged_again() -> None:
    table = StepTable(StepColumns())
    given_values(table, {0: (1, [1.0, 2.0, 3.0]), 1: (1, [4.0, 5.0, 6.0])})
    assert table.settle(3, 200) == 3
    given_values(table, {2: (2, [7.0, 8.0])})
    assert table.settle(3, 200) == 2
    assert told(table, 2) == {2: 7.0, 3: 8.0}
    assert told(table, 0) == {1: 1.0, 2: 2.0, 3: 3.0}


def test_what_was_judged_stays_as_it_came_first() -> None:
    table = StepTable(StepColumns())
    given_values(table, {0: (1, [1.0, 2.0, 3.0])})
    table.settle(3, 200)
    given_values(table, {0: (3, [9.0, 4.0])})
    table.settle(4, 200)
    assert told(table, 0) == {1: 1.0, 2: 2.0, 3: 3.0, 4: 4.0}


def test_steps_that_begin_anew_follow_those_before() -> None:
    table = StepTable(StepColumns())
    given_values(table, {0: (1, [1.0, 2.0, 3.0]), 1: (1, [1.0, 2.0, 3.0])})
    table.settle(3, 200)
    given_values(table, {0: (1, [4.0, 5.0]), 1: (1, [4.0, 5.0])})
    table.settle(2, 200)
    assert table.iterations == [1, 2, 3, 1, 2]


def test_one_rank_that_goes_back_by_itself_ends_nothing() -> None:
    table = StepTable(StepColumns())
    rows = {rank: (1, [1.0, 2.0, 3.0]) for rank in range(4)}
    given_values(table, rows)
    table.settle(3, 200)
    given_values(table, {rank: (4, [4.0]) for rank in range(3)} | {3: (1, [9.0])})
    table.settle(4, 200)
    assert told(table, 0) == {1: 1.0, 2: 2.0, 3: 3.0, 4: 4.0}


def test_a_rank_of_which_nothing_comes_for_long_is_forgotten() -> None:
    table = StepTable(StepColumns())
    given_values(table, {0: (1, [1.0]), 1: (1, [1.0])})
    for _ in range(FORGOTTEN_WINDOWS + 1):
        table.take(None, np.empty(0), 0)
    assert again(table).ranks == table.ranks == []
    given_values(table, {1: (7, [1.0])})
    assert table.ranks == [1]


HOSTILE = st.sampled_from([None, 0.0, -1.0, 1e-300, 1e308, 5.0, 400.0])


@FIXED
@given(st.integers(0, 2**32 - 1), st.lists(st.lists(HOSTILE, min_size=1, max_size=6), min_size=1, max_size=12))
def test_whatever_comes_is_taken_in_and_read_back_the_same(seed: int, rows: list[list[float | None]]) -> None:
    dice = random.Random(seed)
    table = StepTable(StepColumns())
    for values in rows:
        first = dice.choice([0, 1, 5, 2**62])
        times = [at(dice.randrange(100)) for _ in values]
        one = Series(
            name="compute_ms", iterations=[first + at for at in range(len(values))], times=times, values=values
        )
        rank, scale, warm_up = dice.randrange(3), dice.choice([1e6, 1e9]), dice.randrange(3)
        table.take(reports({rank: one}), np.array([scale]), warm_up)
        table.settle(table.reported_by_all(3), 20)
        copy = again(table)
        assert bytes(written(copy.written())) == bytes(written(table.written()))
        assert len(table.iterations) <= 40
