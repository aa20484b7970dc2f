"""How regularly processes are looked at."""

from __future__ import annotations

import pytest

from streams.rhythm import Rhythm, Rounds


@pytest.mark.parametrize(
    ("times", "now", "overdue"),
    [
        ([10, 20, 30], 49, False),
        ([10, 20, 30], 50, True),
        # Twice the longer one of the latest two pauses.
        ([10, 20, 80], 199, False),
        ([10, 20, 80, 90, 100], 120, True),
        # Twice at one time is once, and one pause is no rhythm.
        ([10, 20, 20], 1000, False),
        ([10], 1000, False),
        ([], 1000, False),
    ],
)
def test_what_is_not_seen_for_twice_its_pauses_is_overdue(times: list[int], now: int, overdue: bool) -> None:
    rhythm = Rhythm()
    for time in times:
        rhythm = rhythm.seen(time)
    assert rhythm.overdue(now) is overdue


@pytest.mark.parametrize(
    ("rounds", "left_out"),
    [
        (["ab", "ab", "ab", "b", "b"], True),
        (["ab", "ab", "ab", "b"], False),
        (["ab", "ab", "b", "b"], False),
        # Each is listed in rounds of its own.
        (["a", "b", "a", "b", "a", "b", "b", "b"], False),
        # The other came late, or is left out as well, or the one is listed again.
        (["a", "a", "ab", "b", "b"], False),
        (["ab", "ab", "ab", "b", "b", "c"], False),
        (["ab", "ab", "ab", "b", "b", "ab", "b", "b"], False),
    ],
)
def test_who_is_left_out_of_rounds_that_always_listed_both(rounds: list[str], left_out: bool) -> None:
    found = dict.fromkeys("ab", Rounds())
    for end, listed in enumerate(rounds, start=1):
        found = {one: was.with_it() if one in listed else was.without_it(end) for one, was in found.items()}
    assert found["a"].left_out(found["b"]) is left_out


def test_the_first_round_without_it_is_remembered_until_it_is_listed_again() -> None:
    gone = Rounds().with_it().without_it(20).without_it(30)
    assert (gone, gone.with_it()) == (Rounds(1, 2, 20), Rounds(1))
    assert Rounds().without_it(10) == Rounds()
