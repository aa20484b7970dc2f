"""Columns of numbers that a detector carries: room for who joins, none for who left long ago, bounded."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from streams import cells as module
from streams.cells import PATIENCE_WINDOWS, Cells
from streams.comparable import Comparable, Measured
from streams.state import written


def window(rows: str, ranks: list[int]) -> Comparable:
    values = np.array([[ord(row) + rank / 10 for rank in ranks] for row in rows]).reshape(len(rows), len(ranks))
    return Comparable([Measured(row, "") for row in rows], ranks, values)


def names(cells: Cells) -> str:
    return "".join(row.name for row in cells.rows)


def test_what_was_put_stays_in_its_place_when_ranks_and_metrics_join() -> None:
    cells = Cells()
    first = cells.fit(window("bd", [2, 5]))
    cells.put("x", first.astype(np.float32))
    cells.put("deep", np.stack([first, -first], axis=-1))
    values = cells.fit(window("abcd", [0, 2, 5, 9]))
    assert (names(cells), cells.ranks) == ("abcd", [0, 2, 5, 9])
    assert values.shape == (4, 4)
    kept = cells.plane("x", np.float32)
    assert kept[np.ix_([1, 3], [1, 2])].tolist() == first.astype(np.float32).tolist()
    assert np.count_nonzero(kept) == 4
    assert cells.plane("deep", np.float64, 2)[1, 2].tolist() == [first[0, 1], -first[0, 1]]


def test_what_is_not_measured_has_no_value_and_is_forgotten_at_last() -> None:
    cells = Cells()
    cells.put("x", np.ones_like(cells.fit(window("ab", [1, 2]))))
    for _ in range(PATIENCE_WINDOWS):
        values = cells.fit(window("a", [2]))
    assert (names(cells), cells.ranks) == ("ab", [1, 2])
    assert np.isfinite(values).tolist() == [[False, True], [False, False]]
    cells.fit(window("a", [2]))
    assert (names(cells), cells.ranks) == ("a", [2])
    assert cells.plane("x", np.float64).tolist() == [[1.0]]


def test_a_written_state_is_read_back_as_it_was() -> None:
    cells = Cells()
    cells.put("x", cells.fit(window("ab", [1, 2])).astype(np.float16))
    again = msgspec.json.decode(written(cells), type=Cells)
    assert again == cells
    assert again.plane("x", np.float16).tolist() == cells.plane("x", np.float16).tolist()


def test_rows_are_bounded_and_those_that_say_more_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_CELLS", 8)
    cells = Cells()
    told = ["zz_cpu", "aa", "bb", "cc"]
    rows = Comparable([Measured(name, "") for name in sorted(told)], [0, 1, 2, 3], np.ones((4, 4)))
    assert cells.fit(rows).shape == (2, 4)
    assert [row.name for row in cells.rows] == ["aa", "zz_cpu"]
    assert cells.left_out == 2
    more = Comparable([Measured("aa", ""), Measured("cpu", ""), Measured("zz_cpu", "")], [0, 1, 2, 3], np.ones((3, 4)))
    cells.fit(more)
    assert [row.name for row in cells.rows] == ["aa", "zz_cpu"], "what is followed stays"


def test_nothing_at_all_is_taken() -> None:
    cells = Cells()
    assert cells.fit(window("", [])).shape == (0, 0)
    cells.put("x", cells.plane("x", np.uint8))
    assert cells.fit(window("a", [3])).shape == (1, 1)
    assert cells.plane("x", np.uint8).tolist() == [[0]]
    assert cells.fit(window("", [])).shape == (1, 1)
