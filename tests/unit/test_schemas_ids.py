"""Stable ids: a function of the parts, told apart by position and type."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from schemas.ids import stable_id

Part = str | int | None
PART = st.one_of(
    st.none(), st.booleans(), st.integers(-20, 20), st.integers(), st.text("ab:;12|", max_size=6), st.text()
)
PARTS = st.lists(PART, max_size=5)


def typed(parts: list[Part]) -> list[tuple[type, Part]]:
    return [(type(part), part) for part in parts]


@given(PARTS, PARTS)
def test_ids_are_equal_exactly_when_the_parts_are(one: list[Part], two: list[Part]) -> None:
    assert (stable_id(*one) == stable_id(*two)) == (typed(one) == typed(two))


@given(PARTS)
def test_the_order_of_parts_counts(parts: list[Part]) -> None:
    turned = parts[::-1]
    assert (stable_id(*parts) == stable_id(*turned)) == (typed(parts) == typed(turned))


@given(st.text(), st.integers(0, 10))
def test_where_one_part_ends_and_the_next_begins_counts(text: str, cut: int) -> None:
    assert stable_id(text) != stable_id(text[:cut], text[cut:])


def test_types_are_told_apart() -> None:
    ids = [
        stable_id(*parts) for parts in ((), (None,), ("",), ("None",), (0,), ("0",), (False,), (1,), (True,), ("1",))
    ]
    assert len(set(ids)) == len(ids)


def test_text_that_is_no_valid_unicode_has_an_id_too() -> None:
    assert stable_id("\udcff") != stable_id("\udcfe")


def test_ids_never_change() -> None:
    assert stable_id("incident", "run-11", 5, None) == "c9a1bcbc80ad101e"
