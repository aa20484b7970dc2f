"""Who delays whom: planted faults are found, healthy noise and what cannot be told says nothing."""

from __future__ import annotations

import random

import pytest

from streams.delays import Cell, DelayBounds, Hot, Joined, Slow, hot_of, joined, slow_of, waits_for_all

BOUNDS = DelayBounds()
MS = 1_000_000


def operation(at: int, ranks: int, chance: random.Random, *, late: dict[int, float], transfer: float = 10) -> Joined:
    """Ranks start up to a millisecond apart, the late ones so many ms later, and end together but for noise."""
    starts = {rank: chance.uniform(0, 1) + late.get(rank, 0) for rank in range(ranks)}
    end = max(starts.values()) + transfer * chance.uniform(0.95, 1.05)
    taken = {rank: int((end - start + chance.uniform(0, 0.2)) * MS) for rank, start in starts.items()}
    found = joined(at, at * 1000, taken, BOUNDS)
    assert found is not None
    return found


def history(ranks: int, seed: int, late: dict[int, float], *, before: int = 40, transfer: float = 10) -> list[Joined]:
    chance = random.Random(seed)
    calm = [operation(at, ranks, chance, late={}) for at in range(before)]
    return calm + [operation(before + at, ranks, chance, late=late, transfer=transfer) for at in range(20)]


@pytest.mark.parametrize("ranks", [2, 3, 4, 8, 64])
@pytest.mark.parametrize("seed", range(5))
def test_the_one_for_whom_all_others_wait_is_found(ranks: int, seed: int) -> None:
    found = slow_of(history(ranks, seed, {ranks - 1: 30}), BOUNDS)
    assert found is not None
    assert (found.kind, found.rank, found.share, found.since) == ("joins_last", ranks - 1, 1.0, 40_000)
    assert 38 * MS < found.now < 42 * MS and 9 * MS < found.usual < 12 * MS


@pytest.mark.parametrize("ranks", [2, 3, 8, 64])
def test_a_healthy_group_says_nothing(ranks: int) -> None:
    assert [slow_of(history(ranks, seed, {}), BOUNDS) for seed in range(100)] == [None] * 100


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_a_last_rank_that_changes_is_nobodys_fault(ranks: int) -> None:
    for seed in range(60):
        chance = random.Random(seed)
        found = slow_of([operation(at, ranks, chance, late={chance.randrange(ranks): 30}) for at in range(20)], BOUNDS)
        assert found is None or (found.kind, found.rank) == ("last_rotates", None)
    assert ranks < 8 or (found is not None and found.share == 1.0)


def test_two_that_are_late_together_are_not_one() -> None:
    assert slow_of(history(8, 1, {2: 30, 5: 30}), BOUNDS) is None


def test_a_rank_that_is_often_but_not_mostly_the_last_is_not_named() -> None:
    chance = random.Random(7)
    found = [operation(at, 8, chance, late={3: 30} if at % 5 < 2 else {}) for at in range(20)]
    assert slow_of(found, BOUNDS) is None


@pytest.mark.parametrize("ranks", [2, 8])
@pytest.mark.parametrize("seed", range(5))
def test_a_transfer_that_takes_all_longer_than_before_is_slow_communication(ranks: int, seed: int) -> None:
    found = slow_of(history(ranks, seed, {}, transfer=25), BOUNDS)
    assert found is not None
    assert (found.kind, found.rank, found.share) == ("slow_transfer", None, 1.0)
    assert slow_of(history(ranks, seed, {}, transfer=12), BOUNDS) is None
    assert slow_of(history(ranks, seed, {}, before=10, transfer=25), BOUNDS) is None


@pytest.mark.parametrize("taken", [{}, {0: 5}])
def test_one_rank_alone_shows_nothing(taken: dict[int, int]) -> None:
    assert joined(1, 1, taken, BOUNDS) is None


def test_a_wait_too_short_to_matter_is_none() -> None:
    for taken in ({0: 1000, 1: 900_000, 2: 900_000}, {0: 0, 1: 0, 2: 0}):
        found = joined(1, 1, taken, BOUNDS)
        assert found is not None and found.last == -1


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *((name, True) for name in ("AllReduce", "all_reduce", "_all_gather_base", "ReduceScatter", "barrier")),
        *((name, False) for name in ("Broadcast", "reduce", "send", "Recv", "")),
    ],
)
def test_only_operations_that_wait_for_all_are_compared(name: str, expected: bool) -> None:
    assert waits_for_all(name) is expected


def matrix(size: int, seed: int, hot: dict[Cell, float]) -> dict[Cell, float]:
    chance = random.Random(seed)
    cells = [(sender, receiver) for sender in range(size) for receiver in range(size) if sender != receiver]
    return {cell: hot.get(cell, 1.0) * chance.gauss(10, 0.7) * MS for cell in cells}


PLANTED: list[tuple[str, list[Cell]]] = [
    ("hot_link", [(2, 5)]),
    ("slow_sender", [(3, at) for at in range(8) if at != 3]),
    ("slow_receiver", [(at, 6) for at in range(8) if at != 6]),
]


@pytest.mark.parametrize(("kind", "cells"), PLANTED)
@pytest.mark.parametrize("seed", range(20))
def test_a_planted_cell_row_or_column_is_told(kind: str, cells: list[Cell], seed: int) -> None:
    found = hot_of(matrix(8, seed, dict.fromkeys(cells, 3.0)), BOUNDS)
    assert found is not None and (found.kind, found.cells) == (kind, cells)
    assert found.now > 1.5 * found.usual


@pytest.mark.parametrize("size", [2, 3, 4, 8, 16])
def test_a_healthy_matrix_says_nothing(size: int) -> None:
    assert [hot_of(matrix(size, seed, {}), BOUNDS) for seed in range(100)] == [None] * 100


@pytest.mark.parametrize(
    "cells",
    [
        [(1, 2), (4, 5)],
        [(3, 0), (3, 1)],
        [(3, at) for at in range(8) if at != 3] + [(at, 6) for at in range(8) if at not in (3, 6)],
        [(sender, receiver) for sender in range(8) for receiver in range(8) if sender != receiver],
    ],
)
def test_what_is_no_single_cell_row_or_column_says_nothing(cells: list[Cell]) -> None:
    assert hot_of(matrix(8, 1, dict.fromkeys(cells, 3.0)), BOUNDS) is None


def test_in_a_ring_a_hot_cell_may_be_its_sender_its_receiver_or_the_link() -> None:
    ring = {(at, (at + 1) % 8): 10.0 * MS for at in range(8)} | {(2, 3): 40.0 * MS}
    assert hot_of(ring, BOUNDS) == Hot("hot_pair", [(2, 3)], 10.0 * MS, 40.0 * MS)


def test_bounds_that_mean_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="ratio must be above 1"):
        DelayBounds(ratio=1.0)
    with pytest.raises(ValueError, match="share must lie"):
        DelayBounds(share=2.0)


def test_too_few_operations_say_nothing() -> None:
    nothing: Slow | None = slow_of(history(8, 1, {3: 30})[-19:], BOUNDS)
    assert nothing is None
