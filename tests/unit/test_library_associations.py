"""Which settings go with a symptom: what separates jobs, what is confounded, and what few jobs cannot tell."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from detection_support import FIXED
from hypothesis import given
from hypothesis import strategies as st

from schemas.jobs import JobDescription
from streams.library.associations import MOST_SETTINGS, Beside, associations
from streams.library.likeness import described


def beside(*symptoms: str, **facets: Any) -> Beside:
    return Beside(described(JobDescription(**facets)), frozenset(symptoms))


def flags(*symptoms: str, **values: str) -> Beside:
    return beside(*symptoms, flags=values)


def told(jobs: list[Beside], symptom: Any = "numerics") -> list[tuple[list[str], int, int, int, int]]:
    return [
        ([one.text for one in found.settings], found.having, found.having_shown, found.others, found.others_shown)
        for found in associations(jobs, [symptom])
    ]


SEPARATED = [flags("numerics", fp8="1", seed=str(n)) for n in range(3)] + [
    flags(fp8="0", seed=str(n)) for n in range(5)
]


def test_what_all_that_show_it_have_and_none_of_the_others_separates() -> None:
    assert told(SEPARATED)[0] == (["fp8=1"], 3, 3, 5, 0)
    (best, *_) = associations(SEPARATED, ["numerics"])
    assert best.text == "numerics in 3 of 3 jobs with fp8=1, in 0 of 5 without"


def test_settings_that_separate_equally_well_are_told_together() -> None:
    jobs = [flags("numerics", fp8="1", algo="Tree"), flags("numerics", fp8="1", algo="Tree")]
    jobs += [flags(fp8="0", algo="Ring"), flags(fp8="0", algo="Ring")]
    (one,) = associations(jobs, ["numerics"])
    assert [setting.text for setting in one.settings] == ["algo=Tree", "fp8=1"]
    assert one.text.endswith("; what separates the jobs equally well is confounded: nothing tells which of it matters")


@pytest.mark.parametrize(
    ("name", "jobs"),
    [
        ("all show it", [flags("numerics", a="1"), flags("numerics", a="2")]),
        ("none shows it", [flags(a="1"), flags(a="2")]),
        ("all alike", [flags("numerics", a="1"), flags(a="1")]),
        ("nothing known of the others", [flags("numerics", a="1"), beside(), beside(framework="x")]),
        ("hardly better than chance", [flags("numerics", a="1"), flags("numerics", a="2"), flags(a="2"), flags(a="1")]),
    ],
)
def test_where_nothing_is_told(name: str, jobs: list[Beside]) -> None:
    assert told(jobs) == [], name


def test_a_setting_counts_among_jobs_that_tell_of_it() -> None:
    jobs = [flags("numerics", fp8="1"), flags("numerics", fp8="1"), flags(fp8="0"), beside(framework="x")]
    assert told(jobs) == [(["fp8=1"], 2, 2, 1, 0)]
    torn = beside(flags={"a": "1"}, differing={"flags.fp8": ["0", "1"]})
    assert told([*jobs[:3], torn])[0] == (["fp8=1"], 2, 2, 1, 0)


def test_being_without_a_setting_is_one() -> None:
    jobs = [flags("hang", a="1"), flags("hang", a="1"), flags(a="1", safe="1"), flags(a="1", safe="1")]
    assert told(jobs, "hang") == [(["no safe"], 2, 2, 2, 0)]


def test_a_setting_that_separates_less_comes_behind() -> None:
    jobs = [flags("numerics", a="1", b="1"), flags("numerics", a="1", b="1"), flags(a="0", b="1")]
    jobs += [flags(a="0", b="0"), flags(a="0", b="0"), flags(a="0", b="0")]
    assert told(jobs) == [(["a=1"], 2, 2, 4, 0), (["b=1"], 3, 2, 3, 0)]


def test_what_is_told_is_bounded_and_counts_what_is_left_out() -> None:
    many = {f"s{n:03d}": "1" for n in range(MOST_SETTINGS + 7)}
    (one,) = associations([flags("hang", **many), flags(**dict.fromkeys(many, "0"))], ["hang"])
    assert (len(one.settings), one.left_out) == (MOST_SETTINGS, 7)
    assert len(one.text) < 400 and f"and {MOST_SETTINGS + 2} more" in one.text


def test_the_order_of_jobs_does_not_matter() -> None:
    jobs = SEPARATED[1:5]
    assert len({str(associations(order, ["numerics"])) for order in itertools.permutations(jobs)}) == 1


@FIXED
@given(st.lists(st.tuples(st.booleans(), st.dictionaries(st.sampled_from("ab"), st.sampled_from("01"))), max_size=8))
def test_counts_are_those_of_the_jobs(told_of: list[tuple[bool, dict[str, str]]]) -> None:
    jobs = [flags(*(["hang"] if shown else []), **values) for shown, values in told_of]
    for one in associations(jobs, ["hang"]):
        for setting in one.settings:
            known = [(shown, values.get(setting.name, "")) for shown, values in told_of if values]
            assert one.having == sum(value == setting.here for _, value in known)
            assert one.having_shown == sum(shown for shown, value in known if value == setting.here)
            assert one.having + one.others == len(known)
