"""Identity: the key under which a worker's events travel, and ranks as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.identity import Identity, is_node, rank_ranges, rank_runs, written_runs


def ranks_in(text: str) -> set[int]:
    found: set[int] = set()
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


@given(st.sets(st.integers(0, 60)))
def test_ranges_say_exactly_the_ranks(ranks: set[int]) -> None:
    assert ranks_in(rank_ranges(ranks)) == ranks


@given(st.lists(st.integers(0, 10_000)))
def test_ranges_do_not_depend_on_order_or_repetition(ranks: list[int]) -> None:
    assert rank_ranges(ranks) == rank_ranges(reversed(ranks)) == rank_ranges(ranks + ranks)


@given(st.sets(st.integers(0, 60), min_size=1))
def test_ranges_are_as_few_as_can_be(ranks: set[int]) -> None:
    gaps = sum(rank - 1 not in ranks for rank in ranks)
    assert len(rank_ranges(ranks).split(",")) == gaps


@pytest.mark.parametrize(
    ("ranks", "text"),
    [([], ""), ([5], "5"), ([0, 1], "0-1"), ([7, 6, 0, 1, 2, 3, 4], "0-4,6-7"), (range(10_000), "0-9999")],
)
def test_ranges_read_as_people_write_them(ranks: list[int], text: str) -> None:
    assert rank_ranges(ranks) == text


def test_runs_are_written_with_any_separator() -> None:
    runs = rank_runs([7, 0, 1, 1, 2, 6, 9])
    assert runs == [(0, 2), (6, 7), (9, 9)] and written_runs(runs, "/") == "0-2/6-7/9"


@pytest.mark.parametrize(
    ("identity", "key"),
    [
        (Identity(job="run-11", rank=5), "run-11|5"),
        (Identity(job="run-11", rank=0), "run-11|0"),
        (Identity(job="run-12", rank=5, group="actor"), "run-12|actor/5"),
        (Identity(job="-", node="node02", rank_reason="belongs to the node"), "-|node:node02"),
    ],
)
def test_the_key_names_job_and_worker(identity: Identity, key: str) -> None:
    assert identity.key == key
    assert is_node(identity.worker) == (identity.rank is None)
