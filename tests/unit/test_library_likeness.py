"""How alike two jobs are, and which healthy jobs a job is held against."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest
from detection_support import FIXED
from hypothesis import given
from hypothesis import strategies as st

from schemas.jobs import JobDescription
from schemas.library import HealthyJob
from streams.library.choice import CERTAIN, LIKE, NEAREST, choose
from streams.library.likeness import WEIGHTS, Likeness, likeness, plain

FULL = JobDescription(
    framework="megatron",
    world_size=16,
    layout={"tp": 4, "pp": 2, "dp": 2},
    versions={"torch": "2.8.0", "nccl": "2.27.3"},
    code={"commit": "5d2c18c", "branch": "main"},
    model={"name": "gpt-7b", "hidden_size": "4096"},
    data={"path": "/data/web", "workers": "8"},
    launch={"launcher": "torchrun", "script": "train.py"},
    environment={"NCCL_ALGO": "Ring", "OMP_NUM_THREADS": "8"},
    flags={"fp8": "false", "bf16": "true"},
    hyperparameters={"lr": "0.0003", "seq_length": "4096"},
    scale={"nodes": "2", "gpus": "16"},
    labels={"team": "speech"},
)


def with_(description: JobDescription = FULL, **changes: Any) -> JobDescription:
    """The description with some values in some of its facets changed; null takes a name away."""
    merged = {
        facet: {name: value for name, value in {**getattr(description, facet), **values}.items() if value is not None}
        for facet, values in changes.items()
        if isinstance(values, dict)
    }
    return msgspec.structs.replace(description, **{**changes, **merged})


@pytest.mark.parametrize(
    ("name", "other", "facets", "like"),
    [
        ("the same", FULL, {}, True),
        ("another owner", with_(labels={"team": "vision"}), {}, True),
        ("numbers as they are written", with_(hyperparameters={"lr": "3.000E-04"}), {}, True),
        ("a word's case", with_(flags={"bf16": "True"}), {}, True),
        ("one flag", with_(flags={"fp8": "true"}), {"flags": 0.5}, True),
        ("one flag more", with_(flags={"compile": "true"}), {"flags": 2 / 3}, True),
        ("a name that only one tells", with_(scale={"gpu": "B200"}), {}, True),
        ("one variable", with_(environment={"NCCL_ALGO": "Tree"}), {"environment": 0.5}, True),
        ("a minor release", with_(versions={"torch": "2.8.1"}), {"versions": 0.95}, True),
        ("another release", with_(versions={"torch": "2.9.0"}), {"versions": 0.75}, True),
        ("another major release", with_(versions={"torch": "3.0.0"}), {"versions": 0.5}, True),
        ("another commit", with_(code={"commit": "f00"}), {"code": 0.5}, True),
        ("twice as large", with_(scale={"nodes": "4", "gpus": "32"}, world_size=32), {"scale": 0.5}, True),
        ("another framework", with_(framework="deepspeed"), {"framework": 0.0}, False),
        ("another model", with_(model={"name": "bert", "hidden_size": "768"}), {"model": 0.0}, False),
        (
            "another layout and scale",
            with_(layout={"tp": 1, "pp": 1, "dp": 64}, scale={"nodes": "8", "gpus": "64"}, world_size=64),
            {"layout": 0.0, "scale": 0.25},
            False,
        ),
    ],
)
def test_likeness_by_facet(name: str, other: JobDescription, facets: dict[str, float], like: bool) -> None:
    found = likeness(FULL, other)
    assert {facet: value for facet, value in found.facets.items() if value < 1} == pytest.approx(facets, abs=1e-4)
    assert found.certainty == 1 and not found.unknown, name
    assert (found.total >= LIKE) is like, (name, found.total)
    assert bool(found.reasons) is bool(facets)


def test_what_is_unknown_makes_less_certain_and_not_less_alike() -> None:
    little = JobDescription(framework="megatron", world_size=16)
    found = likeness(FULL, little)
    assert found.facets["framework"] == 1 and "model" in found.unknown
    assert found.certainty == pytest.approx((WEIGHTS["framework"] + WEIGHTS["scale"]) / sum(WEIGHTS.values()), abs=1e-4)
    assert found.certainty < CERTAIN
    for nothing in (None, JobDescription()):
        assert likeness(FULL, nothing) == Likeness(total=0.0, certainty=0.0, facets={}, reasons=[])


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        *(("3e-4", "0.0003", True), ("+3", "3.0", True), ("1_000", "1000", False), ("Ring", "RING", True)),
        *(("20260101123456", "20260101123457", False), ("123456789012345678", "123456789012345678", True)),
    ],
)
def test_values_are_compared_by_what_they_are(one: str, other: str, same: bool) -> None:
    assert (plain(one) == plain(other)) == same


def test_two_secrets_need_not_be_the_same() -> None:
    one = with_(environment={"NCCL_ALGO": None, "OMP_NUM_THREADS": None, "URL": "s3://***@host/b"})
    other = with_(one, environment={"NCCL_ALGO": "Tree"})
    assert likeness(one, one).unknown == ["environment"]
    assert likeness(one, other).facets["environment"] == 0


def test_values_that_workers_tell_differently_and_names_beyond_the_room_are_unknown() -> None:
    torn = with_(environment={"NCCL_ALGO": None}, differing={"environment.NCCL_ALGO": ["Ring", "Tree"]})
    assert likeness(FULL, torn).facets["environment"] == 1
    full = with_(environment={"OMP_NUM_THREADS": None}, cut=["environment"])
    assert likeness(FULL, full).facets["environment"] == 1
    assert likeness(FULL, with_(environment={"OMP_NUM_THREADS": None})).facets["environment"] == 0.5, "it is not set"
    assert likeness(FULL, with_(versions={"nccl": None})).facets["versions"] == 1, "nobody told which it is"


NAMES = st.sampled_from(["a", "b", "c", "d"])
VALUES = st.sampled_from(["1", "2", "3.5", "x", "2.8.0", "2.9", ""])
FACETS = [name for name in WEIGHTS if name not in ("framework", "layout")]


@st.composite
def descriptions(draw: st.DrawFn) -> JobDescription:
    facets = {name: dict(sorted(draw(st.dictionaries(NAMES, VALUES, max_size=4)).items())) for name in FACETS}
    return JobDescription(
        framework=draw(st.sampled_from(["", "megatron", "verl"])),
        world_size=draw(st.sampled_from([None, 8, 16])),
        layout=draw(st.dictionaries(NAMES, st.integers(1, 8), max_size=3)),
        cut=draw(st.sampled_from([[], ["flags"]])),
        **facets,
    )


@FIXED
@given(descriptions(), descriptions())
def test_likeness_is_symmetric_bounded_and_whole_for_oneself(one: JobDescription, other: JobDescription) -> None:
    there, back = likeness(one, other), likeness(other, one)
    assert (there.total, there.certainty, there.facets) == (back.total, back.certainty, back.facets)
    assert 0 <= there.total <= 1 and 0 <= there.certainty <= 1
    own = likeness(one, one)
    assert own.total == (1 if own.facets else 0) and own.reasons == []


@FIXED
@given(descriptions(), st.lists(st.tuples(st.sampled_from(FACETS), st.integers(0, 3)), unique=True, max_size=12))
def test_changing_one_more_thing_never_makes_jobs_more_alike(
    one: JobDescription, changes: list[tuple[str, int]]
) -> None:
    other, before = one, likeness(one, one)
    for facet, number in changes:
        values: dict[str, str] = getattr(other, facet)
        if not values:
            continue
        name = sorted(values)[number % len(values)]
        if getattr(one, facet)[name] != values[name]:
            continue
        other = with_(other, **{facet: {name: f"another {number}"}})
        after = likeness(one, other)
        assert after.total <= before.total and after.certainty == before.certainty
        before = after


@FIXED
@given(descriptions(), st.randoms(use_true_random=False))
def test_the_order_in_which_things_are_told_does_not_matter(one: JobDescription, random: Any) -> None:
    def shuffled(values: dict[str, str]) -> dict[str, str]:
        items = list(values.items())
        random.shuffle(items)
        return dict(items)

    other = msgspec.structs.replace(one, **{facet: shuffled(getattr(one, facet)) for facet in FACETS})
    assert likeness(one, FULL) == likeness(other, FULL)


def job(name: str, description: JobDescription | None, **changes: Any) -> HealthyJob:
    return HealthyJob(id=name, job=name, ranks={"train": 8}, description=description, **changes)


def test_the_baseline_are_the_jobs_that_are_like_and_it_is_said_why_the_others_are_not() -> None:
    jobs = [
        job("other model", with_(model={"name": "bert", "hidden_size": "768"})),
        job("same", FULL),
        job("near", with_(flags={"fp8": "true"})),
        job("old", None),
        job("little", JobDescription(framework="megatron")),
        job("ill", FULL, symptoms=["numerics"]),
    ]
    found = choose(FULL, jobs)
    assert (found.like, found.verdict, [one.id for one in found.baseline]) == (True, "supported", ["near", "same"])
    assert {one.id: (one.baseline, one.reason) for one in found.jobs} == {
        "same": (True, "like in all that is known"),
        "near": (True, "like in all that is known but flags: fp8 false here, true there"),
        "other model": (False, "model: hidden_size 4096 here, 768 there, name gpt-7b here, bert there"),
        "old": (False, "the library does not describe it"),
        "little": (False, "too little is known of both: only framework"),
        "ill": (False, "not healthy: numerics"),
    }
    assert [one.id for one in found.jobs[:2]] == ["same", "near"]
    for order in itertools.permutations(jobs):
        assert choose(FULL, order) == found


def test_without_a_job_that_is_like_every_healthy_one_is_the_baseline_and_nothing_is_certain() -> None:
    jobs = [job("other", with_(framework="verl")), job("old", None), job("ill", FULL, symptoms=["hang"])]
    found = choose(FULL, jobs)
    assert (found.like, found.verdict, [one.id for one in found.baseline]) == (False, "ambiguous", ["old", "other"])
    assert choose(None, jobs).verdict == "ambiguous"
    assert [one.id for one in choose(FULL, jobs[2:]).baseline] == ["ill"], "whoever learned it said that it will do"
    assert choose(FULL, []).verdict == "unavailable"


def test_at_most_the_nearest_few_are_taken() -> None:
    jobs = [job(f"j{number}", with_(environment={"OMP_NUM_THREADS": str(number)})) for number in range(NEAREST + 3)]
    found = choose(FULL, [*jobs, job("same", FULL)])
    assert len(found.baseline) == NEAREST and "same" in {one.id for one in found.baseline}
    assert sum(one.reason == "others are nearer" for one in found.jobs) == 4
