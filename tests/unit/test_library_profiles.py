"""Profiles of healthy jobs: learned, kept in the library, and held against a job without accusing anybody."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from detection_support import at, closed, new_view, run, summary
from streams_support import library_of, profiled, put, records, steady, tick, written_log
from streams_support import run as run_log

from schemas.events import OTHERS, Batch, Profile
from schemas.identity import Identity
from schemas.library import FunctionHeld, HealthyJob, LearnedFunction, Library
from schemas.results import Anomaly, FunctionShare, Sketch
from streams.detectors.profile_contrast import ProfileContrast
from streams.library.file import library_in, text_of
from streams.library.healthy_contrast import HealthyContrast
from streams.library.known import Known
from streams.library.learning import learned
from streams.library.profiles import Difference, differences, summed_up
from streams.library.record import MOST_FUNCTIONS, LibraryError, checked, made, merged_library
from streams.log.memory import MemoryLog
from streams.profiles import Key

GPU: Key = ("gpu", "gemm")
LOAD: Key = ("python", "load")


def sketch(held: dict[str, float], *, steps: int = 6, step: float = 1.0, **changes: Any) -> Sketch:
    functions = [
        FunctionShare(name=name, kind="gpu" if "gemm" in name else "python", share=value / step, typical=value)
        for name, value in held.items()
    ]
    values = {"captured": at(5), "duration": int(max(steps, 1) * step * 1e9), "steps": steps, "unlisted": 0.02}
    return Sketch(functions=functions, **(values | changes))


def job(name: str = "j", *, profiled: int = 8, step_s: float = 1.0, unlisted: float = 0.02) -> HealthyJob:
    return HealthyJob(id=name, job=name, ranks={"": 8}, profiled=profiled, step_s=step_s, unlisted=unlisted)


def function(held: dict[str, float], name: str = "gemm", ranks: int = 8) -> LearnedFunction:
    return LearnedFunction(
        kind="gpu" if name == "gemm" else "python",
        name=name,
        held={one: FunctionHeld(ranks=ranks, share=value, typical=value) for one, value in held.items()},
    )


def differing(
    here: list[Sketch], jobs: list[HealthyJob], *functions: LearnedFunction
) -> list[tuple[str, str, float, float]]:
    found: list[Difference] = differences(summed_up(here), jobs, functions)
    return [(one.how, one.key[1], pytest.approx(one.here), pytest.approx(one.there)) for one in found]


@pytest.mark.parametrize(
    ("here", "jobs", "functions", "expected"),
    [
        ({"gemm": 0.6}, [job()], [function({"j": 0.4})], [("slower", "gemm", 0.6, 0.4)]),
        ({"gemm": 0.42}, [job()], [function({"j": 0.4})], []),
        # The slowest of the healthy jobs counts.
        ({"gemm": 0.6}, [job(), job("k")], [function({"j": 0.4, "k": 0.58})], []),
        # Where one does not list it, it may hold as much as what that job left out.
        ({"gemm": 0.6}, [job(), job("k")], [function({"j": 0.4})], [("slower", "gemm", 0.6, 0.4)]),
        ({"gemm": 0.6}, [job(), job("k", unlisted=0.59)], [function({"j": 0.4})], []),
        ({"load": 0.3}, [job()], [], [("new", "load", 0.3, 0.02)]),
        ({"load": 0.02}, [job()], [], []),
        ({}, [job()], [function({"j": 0.4})], [("gone", "gemm", 0.0, 0.4)]),
        ({"load": 0.01}, [job()], [function({"j": 0.4})], [("gone", "gemm", 0.02, 0.4)]),
        # Gone is only what every healthy job does, on most of its ranks.
        ({"load": 0.01}, [job(), job("k")], [function({"j": 0.4})], []),
        ({"load": 0.01}, [job()], [function({"j": 0.4}, ranks=2)], []),
        ({"load": 0.01}, [], [function({"j": 0.4})], []),
    ],
)
def test_what_differs_from_all_healthy_jobs_is_told(
    here: dict[str, float], jobs: list[HealthyJob], functions: list[LearnedFunction], expected: list[Any]
) -> None:
    changes = {} if here else {"unlisted": 0.0}
    assert differing([sketch(here, **changes)], jobs, *functions) == expected


def test_the_ranks_of_a_job_are_summed_up_by_medians_and_what_one_does_alone_is_not_the_jobs() -> None:
    ranks = [sketch({"gemm": 0.4 + rank / 100}) for rank in range(5)]
    ranks[3] = sketch({"gemm": 0.9, "load": 0.5, OTHERS: 0.1})
    found = summed_up(ranks)
    assert (found.ranks, found.step_s, found.unlisted) == (5, 1.0, 0.02)
    assert found.functions[GPU].typical == pytest.approx(0.42)
    assert (found.functions[LOAD].ranks, ("python", OTHERS) in found.functions) == (1, False)
    assert differing(ranks, [job()], function({"j": 0.41})) == []


def test_shares_are_compared_where_steps_are_not_known() -> None:
    here = [sketch({"gemm": 0.6}, steps=0, step=1.0)]
    assert differing(here, [job(step_s=0.0)], function({"j": 0.4})) == [("slower", "gemm", 0.6, 0.4)]
    assert differing(here, [job()], function({"j": 0.4})) == [("slower", "gemm", 0.6, 0.4)]


def test_a_library_keeps_profiles_and_gives_them_back() -> None:
    library = library_of(profiled("a", slow=0.0), profiled("b", slow=0.0))
    assert [(one.profiled, one.step_s) for one in library.jobs] == [(8, 0.8)] * 2
    assert [(one.kind, one.name) for one in library.functions] == [
        ("collective", "ncclDevKernel_AllReduce"),
        ("gpu", "gemm"),
        ("python", "augment"),
    ]
    assert all(set(one.held) == {job.id for job in library.jobs} for one in library.functions)
    again = checked(library_in(text_of(library).encode(), "file"))
    assert again == library and text_of(again) == text_of(library)
    apart = [library_of(profiled(name, slow=0.0)) for name in "ba"]
    assert merged_library(apart, "healthy") == merged_library(apart[::-1], "healthy") == library


def test_a_library_without_profiles_is_the_same_as_before_there_were_any() -> None:
    library = library_of(steady("fine", 4, 15))
    text = text_of(library)
    assert "functions" not in text and "profiled" not in text
    assert checked(library_in(text.encode(), "file")).version == library.version


def test_a_run_of_profiles_alone_can_be_learned() -> None:
    log = MemoryLog(1)
    event = Profile(
        time=10**9, name="gemm", kind="gpu", share=0.5, mean=0.1, spread=0.0, count=4, steps=2, duration=10**9
    )
    put(log, Batch(producer="p", boot="b", seq=1, identity=Identity(job="j", rank=0), events=[event]))
    tick(log, 12.5)
    run_log(log)
    library = learned(log, "baseline")
    assert (library.templates, [one.name for one in library.functions]) == ([], ["gemm"])
    with pytest.raises(LibraryError, match="nothing to learn"):
        learned(MemoryLog(1), "baseline")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda one: {"name": ""}, "a name that is too long, or none"),
        (lambda one: {"name": "x" * 300}, "a name that is too long, or none"),
        (lambda one: {"held": {"other": FunctionHeld(ranks=1, share=0.1)}}, "which is not one of its jobs"),
        (lambda one: {"held": {"j": FunctionHeld(ranks=9, share=0.1)}}, "by more than job 'j' has"),
        (lambda one: {"held": {"j": FunctionHeld(ranks=0, share=0.1)}}, "held by no rank"),
        (lambda one: {"held": {"j": FunctionHeld(ranks=1, share=1.1)}}, "holds more than all"),
        (lambda one: {"held": {"j": FunctionHeld(ranks=1, share=0.1, typical=-1.0)}}, "a time that cannot be"),
        (lambda one: {"held": {"j": FunctionHeld(ranks=1, share=0.1, mean=1e12)}}, "a time that cannot be"),
    ],
)
def test_a_library_that_contradicts_itself_is_refused(change: Any, reason: str) -> None:
    good = function({"j": 0.4})
    library = made("l", [job()], [], functions=[good])
    assert checked(library).functions == [good]
    bad = msgspec.structs.replace(good, **change(good))
    with pytest.raises(LibraryError, match=reason):
        checked(msgspec.structs.replace(library, functions=[bad]))
    with pytest.raises(LibraryError, match="two of its functions have one name"):
        checked(msgspec.structs.replace(library, functions=[good, good]))
    with pytest.raises(LibraryError, match="a number that no profile has"):
        checked(msgspec.structs.replace(library, jobs=[job(unlisted=3.0)]))


def test_a_library_keeps_the_functions_of_the_largest_shares() -> None:
    many = [function({"j": (at + 1) / 10_000}, f"f{at}") for at in range(MOST_FUNCTIONS + 10)]
    library = made("l", [job()], [], functions=many)
    assert len(library.functions) == MOST_FUNCTIONS
    assert "f9" not in {one.name for one in library.functions}


def contrasted(*sketches: Sketch, library: Library) -> list[Anomaly]:
    contrast = HealthyContrast(
        library=library.label,
        jobs=1,
        novel=[],
        absent=[],
        functions=library.functions,
        profiled=[one for one in library.jobs if one.profiled],
    )
    windows = [
        closed([summary(0, start * 10, sketches=[own])], start * 10, contrast=contrast)
        for start, own in enumerate(sketches)
    ]
    return [one for found in run(ProfileContrast(), new_view(), windows) for one in found]


def test_a_finding_lists_what_differs_once_and_names_nobody() -> None:
    library = made("healthy", [job()], [], functions=[function({"j": 0.4}), function({"j": 0.2}, "save")])
    here = sketch({"gemm": 0.6, "load": 0.3}, step=1.2)
    found = contrasted(here, here, library=library)
    for one in found:
        assert (one.axis, one.layer, one.severity, one.suspects, one.victims) == (
            "cross-job",
            "profile",
            "info",
            [],
            [],
        )
        assert one.library == library.label
        assert one.peers == (
            "profiled: rank 0 here, 8 in 1 healthy job; a step takes 1.20 s here, 1.00 s at most there"
        )
    assert [one.text for one in found] == [
        "slower than in any healthy job: GPU kernel 'gemm' 600.00 ms (400.00 ms)",
        "new, or small in every healthy job: function 'load' 300.00 ms (20.00 ms at most)",
        "gone, or small here: function 'save' 200.00 ms (24.00 ms at most)",
    ]


def test_profiles_that_were_recorded_in_another_way_are_not_compared() -> None:
    jobs = [job(), msgspec.structs.replace(job("k"), recorded="cpu,gpu,python")]
    held = function({"j": 0.4, "k": 0.1})
    (one,) = contrasted(sketch({"gemm": 0.6}), library=made("healthy", jobs, [], functions=[held]))
    assert "GPU kernel 'gemm' 600.00 ms (400.00 ms)" in one.text
    assert one.peers == (
        "profiled: rank 0 here, 8 in 1 healthy job; a step takes 1.00 s here, 1.00 s at most there; "
        "1 recorded other kinds of calls and were not compared"
    )
    assert contrasted(sketch({"gemm": 0.6}), library=made("healthy", jobs[1:], [], functions=[])) == []
    mixed = [sketch({"gemm": 0.6}), sketch({"gemm": 0.1}), sketch({"gemm": 0.9}, recorded="cpu,gpu")]
    assert (summed_up(mixed).ranks, summed_up(mixed).recorded) == (2, "")


def test_a_long_list_is_cut_and_says_so() -> None:
    library = made("healthy", [job()], [], functions=[function({"j": 0.4})])
    (one,) = contrasted(sketch({f"f{at}": 0.1 for at in range(8)} | {"gemm": 0.4}), library=library)
    assert "and 3 more" in one.text


def test_no_profiles_on_either_side_say_nothing() -> None:
    assert contrasted(sketch({"gemm": 0.9}), library=made("healthy", [job(profiled=0)], [])) == []
    log = written_log(steady("fine", 4, 15).recording)
    run_log(log, known=Known(library_of(profiled("a", slow=0.0))))
    assert not [one for one in records(log, "anomalies") if one.detector == "profile_contrast"]


def test_a_difference_supports_an_incident_and_opens_none() -> None:
    library = library_of(profiled("a", slow=0.0))
    log = written_log(profiled("b", slow=0.05).recording)
    run_log(log, known=Known(library))
    assert list(records(log, "incidents")) == []
    log = written_log(profiled("c").recording)
    run_log(log, known=Known(made("l", library.jobs, library.templates, functions=library.functions[:1])))
    latest = list(records(log, "incidents"))[-1]
    assert {one.detector for one in latest.evidence} >= {"profile_outlier", "profile_contrast"}
