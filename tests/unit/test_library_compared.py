"""A job beside like and unlike ones, through both stages: what it shows, what else differs, and what goes together."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from streams_support import (
    CONFIG,
    Script,
    ailing,
    any_of,
    at,
    describe,
    described,
    dying,
    folded,
    going_wrong,
    hanging,
    library_of,
    records,
    restarting,
    run,
    slowing,
    steady,
    worker,
    written_log,
)

from schemas.codec import decode, encode
from schemas.comparison import Comparison
from schemas.events import Job
from schemas.identity import Identity
from schemas.library import Library
from streams.compared import as_json, comparisons, lines
from streams.driver import Driver
from streams.library.comparing import ITSELF, ONE_PAIR, ONE_SHOWS, ONLY_ITSELF, SettledState, settle
from streams.library.known import Known
from streams.library.record import checked, made
from streams.log.memory import MemoryLog
from streams.snapshots import MemorySnapshots

FP8 = {"fp8": "true", "bf16": "true"}


def ill(job: str, **settings: Any) -> Script:
    """A job with FP8 whose loss becomes no number at step 30."""
    return going_wrong(described(job, steps=29, flags=FP8, **settings), 30, 50)


def held(script: Script, library: Library, partitions: int = 2) -> MemoryLog:
    log = written_log(script.recording, partitions)
    run(log, known=Known(library))
    return log


def last(log: MemoryLog) -> Comparison:
    (found,) = comparisons(log)
    return found


@pytest.fixture(scope="module")
def healthy() -> Library:
    return library_of(described("fine"), described("well", steps=70), steady("other", 4, 40))


def test_a_library_learns_what_its_jobs_are_and_how_fast_they_were(healthy: Library) -> None:
    fine, other, well = healthy.jobs
    assert fine.description is not None and fine.description.model == {"name": "gpt-7b"}
    assert other.description is not None and other.description.framework == ""
    assert well.pace is not None and fine.pace is not None and fine.pace.step_s == pytest.approx(1, rel=0.01)
    assert fine.pace.steps >= 40 and fine.pace.windows >= 4 and set(fine.pace.phases) == {"start-up"}
    (packed,) = [one for one in healthy.templates if one.text.startswith("packed")]
    assert packed.rates == {fine.id: 1.0, well.id: 1.0}
    (loss,) = [one for one in healthy.templates if "lm loss" in one.text and fine.id in one.printed]
    assert fine.id not in loss.rates, "one rank prints it for all"
    assert [job.symptoms for job in healthy.jobs] == [[], [], []]


def test_jobs_that_are_like_are_the_baseline_and_the_others_are_told_with_why(healthy: Library) -> None:
    found = last(held(described("job"), healthy))
    assert (found.verdict, found.library, found.settings, found.caution) == ("supported", Known(healthy).label, [], "")
    assert [(one.id.partition(".")[0], one.baseline, one.likeness) for one in found.jobs] == [
        *(("fine", True, 1.0), ("well", True, 1.0)),
        ("other", False, 1.0),
    ]
    assert found.jobs[2].reason.startswith("too little is known of both")
    assert 0 < found.chosen <= found.end


def test_what_else_differs_stands_beside_what_a_job_shows(healthy: Library) -> None:
    script = ill("job", versions={"torch": "2.9.0"}, environment={"NCCL_ALGO": "Tree"})
    script.log(worker("job", 2), 20.4, "amax history is stale, going on")
    found = last(held(script, healthy))
    assert found.symptoms == ["numerics"] and found.verdict == "supported"
    assert [one.text for one in found.settings] == ["fp8=true here, false there", "torch 2.9.0 here, 2.8.0 there"]
    (shown,) = found.shows
    assert (shown.kind, shown.text) == (
        "novel_templates",
        "1 template that no job of the library prints: 'amax history is stale, going on' (by rank 2)",
    )
    assert found.caution == ONE_SHOWS


def test_settings_that_separate_jobs_with_a_symptom_from_those_without_are_told(healthy: Library) -> None:
    library = library_of(
        *(described(f"fine{n}", environment={"SEED": str(n), "NCCL_ALGO": "Ring"}) for n in range(3)),
        *(ill(f"ill{n}", environment={"SEED": str(n), "NCCL_ALGO": "Ring"}) for n in range(2)),
    )
    assert sorted(len(job.symptoms) for job in library.jobs) == [0, 0, 0, 1, 1]
    found = last(held(ill("job", environment={"SEED": "7", "NCCL_ALGO": "Ring"}), library))
    best = found.associations[0]
    assert best.text == "numerics in 3 of 3 jobs with fp8=true, in 0 of 3 without"
    assert {one.id.partition(".")[0] for one in found.jobs if one.baseline} == {"fine0", "fine1", "fine2"}
    assert found.caution == ""
    other = last(held(ill("job", environment={"SEED": "7", "NCCL_ALGO": "Tree"}), library))
    assert "NCCL_ALGO=Tree here, Ring there" in [one.text for one in other.settings], "though it does not go with it"
    assert other.associations[0].settings == best.settings


def test_a_job_that_is_in_the_library_itself_is_not_counted_twice() -> None:
    library = library_of(described("fine"), described("well"), ill("job"))
    found = last(held(ill("job"), library))
    assert found.associations[0].text == "numerics in 1 of 1 job with fp8=true, in 0 of 2 without"
    assert found.caution == ONE_SHOWS
    assert [one.reason for one in found.jobs if one.id.startswith("job.")] == [ITSELF]
    # Another run may have the same name.
    before = [msgspec.structs.replace(one, ended=one.began + 1) for one in library.jobs]
    other = last(held(ill("job"), msgspec.structs.replace(library, jobs=before)))
    assert other.associations[0].text == "numerics in 2 of 2 jobs with fp8=true, in 0 of 2 without"
    alone = last(held(described("fine"), library_of(described("fine"))))
    assert (alone.settings, alone.caution) == ([], ONLY_ITSELF)


def test_a_job_is_known_to_be_itself_by_what_is_told_before_its_ranks_are_heard() -> None:
    script = described("job", flags={})
    script.send(Identity(job="job", node="node0", rank_reason="belongs to the job"), Job(time=at(-25), flags=FP8))
    library = library_of(described("fine"), script)
    (job,) = [one for one in library.jobs if one.job == "job"]
    assert job.began <= at(-25) < at(60) <= job.ended
    assert [one.reason for one in last(held(script, library)).jobs if one.id == job.id] == [ITSELF]


def test_one_pair_of_jobs_cannot_tell() -> None:
    library = library_of(described("fine"))
    found = last(held(ill("job", versions={"torch": "2.9.0"}), library))
    assert found.caution == ONE_PAIR
    (one,) = found.associations
    assert [setting.name for setting in one.settings] == ["fp8", "torch"] and "confounded" in one.text


def test_below_the_bound_only_what_no_job_prints_is_told_and_nothing_is_certain(healthy: Library) -> None:
    script = described("job", framework="verl", model="bert", layout={"tp": 1, "dp": 4}, step_s=2, steps=60)
    log = held(script, healthy)
    found = last(log)
    assert found.verdict == "ambiguous" and not any(one.like for one in found.jobs)
    assert {one.detector for one in records(log, "anomalies")} <= {"log_novelty"}
    told = dict(reversed(lines(found)))
    assert told["sure"].startswith("what rests on this contrast is ambiguous at most")
    assert "no job of the library is like this one" in told["baseline"]


def test_a_template_that_only_unlike_jobs_print_is_new_and_says_who_prints_it(healthy: Library) -> None:
    odd = steady("odd", 4, 40)
    script = described("job")
    for one in (odd, script):
        one.log(worker(one.job, 2), 22.4, "shard index is behind the catalogue, going on")
    library = library_of(described("fine"), odd)
    log = held(script, library)
    (one,) = [one for one in records(log, "anomalies") if one.grounds == "novel_templates"]
    assert one.text.startswith("1 template that no like healthy job prints: 'shard index")
    assert f"(by rank 2; outside the baseline printed by {library.jobs[1].id})" in one.text
    assert [shown.kind for shown in last(log).shows] == ["templates_of_others"]


def test_an_old_library_is_read_as_it_was_and_all_of_it_is_the_baseline() -> None:
    whole = library_of(steady("fine", 4, 30))
    jobs = [msgspec.structs.replace(job, description=None, pace=None) for job in whole.jobs]
    templates = [msgspec.structs.replace(one, rates={}) for one in whole.templates]
    jobs = [msgspec.structs.replace(job, began=0, ended=0) for job in jobs]
    old = made(whole.name, jobs, templates)
    raw = encode(old)
    assert not [name for name in (b"pace", b"symptoms", b"description", b"rates", b"began") if b'"%s"' % name in raw]
    assert encode(checked(decode("library", raw))) == raw
    found = last(held(described("job"), old))
    assert (found.verdict, [one.reason for one in found.jobs]) == ("ambiguous", ["the library does not describe it"])


def test_a_baseline_is_chosen_at_the_first_word_and_again_once_what_is_known_stays_the_same() -> None:
    state = SettledState()
    one, other = (library_of(described("a", flags=flags)).jobs[0].description for flags in ({"a": "true"}, FP8))
    assert one is not None
    assert [settle(state, None, 0), settle(state, one, 10), settle(state, one, 20)] == [False, True, False]
    assert state.chosen == 10
    assert not settle(state, msgspec.structs.replace(one, left_out={"value too long": 3}), 40)
    assert (settle(state, other, 50), state.description == one) == (False, True)
    assert (settle(state, other, 60), state.chosen, state.description) == (True, 60, other)


@pytest.mark.parametrize("seed", range(2))
def test_the_same_log_gives_the_same_whatever_is_read_first_and_wherever_it_is_cut(seed: int) -> None:
    library = library_of(described("fine"), ill("ill"))
    recording = ill("job", versions={"torch": "2.9.0"}).recording
    expected = folded(held(ill("job", versions={"torch": "2.9.0"}), library, 3))
    log = written_log(recording, 3)
    run(log, known=Known(library), choose=any_of(seed))
    assert folded(log) == expected
    cut, store = written_log(recording, 3), MemorySnapshots()
    for steps in (40, 300, 700):
        driver = Driver(cut, CONFIG, store=store, known=Known(library), choose=any_of(seed))
        for _ in range(steps):
            driver.step()
    Driver(cut, CONFIG, store=store, known=Known(library)).run()
    assert folded(cut) == expected


@pytest.mark.parametrize("script", [hanging, slowing, restarting, dying, ailing], ids=lambda one: one.__name__)
def test_like_jobs_change_no_verdict(script: Any) -> None:
    fine = describe(steady("fine", 4 if script in (restarting, dying) else 8, 40), 8)
    described_, plain = describe(script(), 8), describe(script(), 8)
    with_, without = written_log(described_.recording), written_log(plain.recording)
    run(with_, known=Known(library_of(fine)))
    run(without)
    assert all(any(one.like for one in found.jobs) for found in comparisons(with_))
    told = [
        [
            (one.id, one.verdict, one.reason, one.severity, one.suspects, one.victims)
            for one in records(log, "incidents")
        ]
        for log in (with_, without)
    ]
    assert told[0][-1] == told[1][-1]
    assert {one[0] for one in told[0]} == {one[0] for one in told[1]}


def test_a_comparison_as_json_has_all_its_fields(healthy: Library) -> None:
    found = as_json(last(held(described("job"), healthy)))
    assert set(found) >= {"job", "attempt", "verdict", "jobs", "shows", "settings", "associations", "caution", "window"}
    assert {"likeness", "certainty", "baseline", "like", "facets", "reason", "symptoms"} <= set(found["jobs"][0])
    wrong = as_json(last(held(ill("job"), healthy)))
    assert {"here", "there", "text"} <= set(wrong["settings"][0])
    assert wrong["associations"][0]["left_out"] == 0 and wrong["chosen"].endswith("Z")
