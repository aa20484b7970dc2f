"""Templates by the set of texts: which words are variables, and that no order matters."""

from __future__ import annotations

import pytest
from detection_support import FIXED
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.lines.form import form_of
from streams.lines.signature import shape
from streams.mining import MANY, templates_of

NAMES = ["alice", "bob", "carol", "dave", "erin", "frank", "grace"]


def forms(*lines: str) -> list[str]:
    return [form_of(shape(line)) for line in lines]


@pytest.mark.parametrize(
    ("line", "form"),
    [
        ("Receiving block blk_-562 src: /10.2.7.2:53 dest: /10.2.7.9:50", "Receiving block <*> src: <*> dest: <*>"),
        ("session of blk_77 and rdd_2_2 and a9f3", "session of <*> and <*> and <*>"),
        ("casting to fp16 on eth0", "casting to fp<*> on eth<*>"),
        ("uid=0 euid=17 tty=ssh, flg=0x0", "uid=<*> euid=<*> tty=ssh, flg=<*>"),
        ("failed to resolve node-14 node-15 node-16 twice", "failed to resolve <*> twice"),
        ("Rect(0, 0 - 7, 19) drawn", "Rect(<*>) drawn"),
        ("connection from 10.2.7.2 () at Sun Jul 10 03:55:15 2005", "connection from <*> (<*>) at <*>"),
        ("took 3 ms (2 tries)", "took <*> (<*> tries)"),
        ("size 850.0 B, free 320.3 KB", "size <*>, free <*>"),
        ("1190 bytes (1.16 KB) sent", "<*> sent"),
        ("two   blanks  count once", "two blanks count once"),
        ("data_thread() got no answer", "data_thread() got no answer"),
        ("nothing varies here", "nothing varies here"),
        ("", ""),
    ],
)
def test_a_form_has_each_word_that_holds_a_variable_wild(line: str, form: str) -> None:
    assert forms(line) == [form]


def test_a_word_that_stands_where_a_variable_stands_is_its_value() -> None:
    lines = forms("error : no route to proxy host 7", "error : no route to proxy host gateway")
    assert set(templates_of(lines).values()) == {"error : no route to proxy host <*>"}


@pytest.mark.parametrize(("names", "templates"), [(MANY, MANY), (MANY + 1, 1)])
def test_many_words_in_one_place_are_a_variable_and_few_are_states(names: int, templates: int) -> None:
    lines = forms(*(f"session opened for user {name} by login" for name in NAMES[:names]))
    assert len(set(templates_of(lines).values())) == templates


def test_a_form_of_few_words_is_not_known_by_the_others() -> None:
    lines = forms(*(f"{name} started" for name in NAMES))
    assert set(templates_of(lines).values()) == set(lines)


def test_long_texts_that_differ_in_a_word_are_one_template() -> None:
    text = "the job was told to run but its start is not due for a long while: {}"
    assert len(set(templates_of(forms(text.format("ignoring"), text.format("skipping"))).values())) == 1


LINES = st.lists(
    st.lists(st.sampled_from(["alpha", "beta", "7", "x9", "user", "of", "to", "/a/b", *NAMES]), max_size=7).map(
        " ".join
    ),
    max_size=30,
)


@settings(FIXED, max_examples=60)
@given(LINES, st.randoms(use_true_random=False))
def test_the_order_of_texts_and_how_often_they_come_do_not_matter(lines: list[str], chance: object) -> None:
    found = forms(*lines)
    other = chance.sample(found * 2, len(found) * 2)  # type: ignore[attr-defined]
    assert templates_of(other) == templates_of(found)


@FIXED
@given(st.text(max_size=300))
def test_any_text_has_a_form_and_a_template(text: str) -> None:
    (form,) = forms(text)
    assert set(templates_of([form])) == {form}
    assert len(form) <= 3 * len(shape(text)) + 1


@pytest.mark.parametrize(
    "text", ["a1" * 5_000, "<NUM>" * 2_000, "1 " * 5_000, "(1)" * 3_000, "=" * 9_000, "_1-" * 3_000]
)
def test_hostile_texts_have_short_forms(text: str) -> None:
    assert len(forms(text)[0]) <= 12_300
