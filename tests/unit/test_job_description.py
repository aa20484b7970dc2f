"""What workers tell of their job becomes one description, in whatever order they are heard."""

from __future__ import annotations

from functools import reduce
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.events import Job
from schemas.jobs import LONGEST_VALUE, MOST_NAMES, MOST_VALUES, JobDescription
from streams import job_description
from streams.job_description import JOB, described_by, merged_description, of_attempt, with_layout


def told(**fields: object) -> JobDescription:
    return described_by(Job(time=1, **fields))


def of(*descriptions: JobDescription | None) -> JobDescription:
    found = merged_description(descriptions)
    assert found is not None
    return found


def test_an_event_becomes_its_flat_form_with_the_model_by_name_and_sizes() -> None:
    found = told(framework="megatron", model="gpt-7b", model_sizes={"num_layers": "32"}, layout={"tp": 2, "pp": 0})
    assert found == JobDescription(framework="megatron", model={"name": "gpt-7b", "num_layers": "32"}, layout={"tp": 2})
    assert next(iter(found.facets)) == "layout"
    assert found.facets["layout"] == {"tp": "2"}


def test_what_workers_tell_alike_stands_in_its_facet_and_what_they_tell_differently_beside() -> None:
    one = told(environment={"NCCL_ALGO": "Tree", "A": "1"}, world_size=8, layout={"tp": 2})
    other = told(environment={"NCCL_ALGO": "Ring", "A": "1"}, world_size=16, layout={"tp": 4})
    found = of(one, other)
    assert found.environment == {"A": "1"}
    assert found.world_size is None
    assert found.layout == {}
    assert found.differing == {
        "environment.NCCL_ALGO": ["Ring", "Tree"],
        "layout.tp": ["2", "4"],
        "world_size": ["16", "8"],
    }


def test_a_name_with_more_values_than_are_kept_is_each_workers_own() -> None:
    found = of(*(told(environment={"PORT": str(value)}) for value in range(MOST_VALUES + 1)))
    assert (found.environment, found.differing, found.scattered) == ({}, {}, ["environment.PORT"])
    assert of(found, told(environment={"PORT": "0"})) == found


@pytest.mark.parametrize(
    ("one", "other", "kept"),
    [
        ("", "pytorch", "pytorch"),
        ("pytorch", "megatron", "megatron"),
        ("megatron", "verl", "verl"),
        ("own", "verl", "own"),
    ],
)
def test_of_frameworks_the_outermost_is_the_jobs(one: str, other: str, kept: str) -> None:
    assert of(told(framework=one), told(framework=other)).framework == kept
    assert of(told(framework=other), told(framework=one)).framework == kept


def test_of_commands_the_fullest_is_kept() -> None:
    full = told(command=["torchrun", "--nnodes=2", "train.py"])
    assert of(told(command=["train.py"]), full).command == full.command


def test_beyond_the_bound_the_first_names_stay_and_the_facet_is_said_to_be_cut() -> None:
    found = told(flags={f"f{number:05}": "true" for number in range(MOST_NAMES + 5)})
    assert len(found.flags) == MOST_NAMES
    assert found.cut == ["flags"]


def test_names_and_values_that_are_too_long_are_left_out_or_cut_and_counted() -> None:
    found = told(labels={"x" * 1000: "1", "y": "z" * 1000, "": "nameless"}, left_out={"secret": 2})
    assert {name: len(value) for name, value in found.labels.items()} == {"y": LONGEST_VALUE}
    assert found.left_out == {"name too long": 1, "secret": 2, "value too long": 1}


def test_lines_tell_the_layout_too() -> None:
    assert with_layout(None, {}, None) is None
    found = with_layout(told(layout={"tp": 2}), {"tp": 2, "pp": 4, "world": 8, "experts": 64}, None)
    assert found == JobDescription(layout={"tp": 2, "pp": 4}, world_size=8)


FIRST = told(hyperparameters={"lr": "1e-3"}, flags={"fused": "true"}, labels={"team": "x"}, framework="megatron")
SECOND = told(hyperparameters={"lr": "1e-4"}, flags={"bf16": "true"}, labels={"team": "y"}, command=["train.py"])
WHOLE = told(labels={"queue": "q"}, hyperparameters={"lr": "0", "seed": "1"}, versions={"torch": "2.9"}, world_size=8)


@pytest.mark.parametrize(
    ("attempt", "facet", "known"),
    [
        # Its own word goes before the job's, and what another attempt set it did not set.
        ("0", "hyperparameters", {"lr": "1e-3", "seed": "1"}),
        ("1", "hyperparameters", {"lr": "1e-4", "seed": "1"}),
        ("1", "flags", {"bf16": "true"}),
        ("1", "labels", {"queue": "q", "team": "y"}),
        ("0", "versions", {"torch": "2.9"}),
        # Of an attempt that told nothing yet what all others agree upon is known.
        ("2", "labels", {"queue": "q"}),
        ("2", "flags", {"bf16": "true", "fused": "true"}),
        ("2", "hyperparameters", {"seed": "1"}),
    ],
)
def test_each_attempt_is_what_it_told_itself_and_the_job_where_it_told_nothing(
    attempt: str, facet: str, known: dict[str, str]
) -> None:
    found = of_attempt(attempt, {"1": SECOND, "0": FIRST, JOB: WHOLE})
    assert found is not None
    assert found.facets[facet] == known
    assert bool(found.differing) == (attempt == "2")
    assert (found.world_size, found.framework, found.command) == (8, "megatron", ["train.py"])


def test_of_an_attempt_of_a_job_of_which_nobody_told_anything_nothing_is_known() -> None:
    assert of_attempt("0", {}) is None
    assert of_attempt("0", {"1": FIRST}) == FIRST
    assert of_attempt("0", {"0": FIRST, JOB: JobDescription()}) == FIRST


NAMES = st.sampled_from(["a", "b", "c", "d"])
VALUES = st.dictionaries(NAMES, st.sampled_from(["1", "2", "3", "4", "5", "6"]), max_size=4)
EVENTS = st.builds(
    Job,
    time=st.just(0),
    framework=st.sampled_from(["", "verl", "megatron", "own"]),
    environment=VALUES,
    flags=VALUES,
    layout=st.dictionaries(NAMES, st.integers(-1, 3)),
    world_size=st.sampled_from([None, 8, 16]),
    command=st.lists(NAMES, max_size=3),
    left_out=st.dictionaries(NAMES, st.integers(0, 3)),
)


@given(st.lists(EVENTS, min_size=1, max_size=7), st.randoms(use_true_random=False), st.integers(1, 3))
def test_neither_order_nor_grouping_nor_repetition_matters(events: list[Job], random: Random, most: int) -> None:
    with patch.object(job_description, "MOST_NAMES", most):
        descriptions = [described_by(event) for event in events]
        straight = of(*descriptions)
        mixed = [*descriptions, descriptions[0]]
        random.shuffle(mixed)
        half = len(mixed) // 2
        assert of(merged_description(mixed[:half]), merged_description(mixed[half:])) == straight
        assert reduce(lambda one, other: of(other, one), mixed) == straight
        assert of(straight, straight) == straight
