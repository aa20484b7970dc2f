"""What is told again after a while, and how much of it is remembered."""

from __future__ import annotations

from streams.again import MOST_TOLD, forget_oldest, is_due

SECOND = 1_000_000_000


def test_it_is_told_once_and_again_after_a_while() -> None:
    told: dict[str, int] = {}
    due = [second for second in (0, 10, 299, 300, 301) if is_due(told, "a", second * SECOND, 300)]
    assert due == [0, 300]
    assert is_due(told, "b", 301 * SECOND, 300)


def test_the_oldest_are_forgotten_beyond_a_bound() -> None:
    told = {f"k{number:05d}": number // 2 for number in range(MOST_TOLD + 3)}
    forget_oldest(told)
    assert len(told) == MOST_TOLD
    assert min(told) == "k00003"
    forget_oldest(told)
    assert len(told) == MOST_TOLD
