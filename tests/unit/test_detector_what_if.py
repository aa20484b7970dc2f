"""Traced steps in closed windows: judged once all have come, one finding, the right worker or nobody."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
from detection_support import at, closed, identity, new_view, run, summary
from streams_support import folded, records, traced, written_log
from streams_support import run as run_log
from traced_job import TracedJob, Work, even, heavy_last, lengths, longer_replicas, slow_worker

from schemas.events import Timeline
from schemas.results import Anomaly, Window
from streams.detectors.what_if import WhatIfConfig, WhatIfDetector
from streams.whatif_cause import Limits


def job_of(work: Work, **changes: Any) -> TracedJob:
    return TracedJob(**{"work": work, "dp": 4, "pp": 2, **changes})


def window_of(
    job: TracedJob, start: float = 0, ranks: Iterable[int] | None = None, *, source: str = "inferred", **fields: Any
) -> list[Window]:
    """Summaries of one window that hold all timelines of these ranks."""
    told, places = job.timelines(at(start + 1)), job.places()
    found = []
    for rank in sorted(places if ranks is None else ranks):
        who = identity(rank, coordinates={"dp": places[rank][0], "pp": places[rank][1]})
        own = [msgspec.structs.replace(own[rank], time_source=source) for own in told.values()]
        values: dict[str, Any] = {"timelines": own, "layout": {"dp": job.dp, "pp": job.pp}}
        found.append(summary(rank, start, who=who, **(values | fields)))
    return found


def findings(*windows: list[Window], config: WhatIfConfig | None = None) -> list[list[Anomaly]]:
    """What is found in each window of these summaries."""
    return run(WhatIfDetector(config), new_view(), [closed(found, number * 10) for number, found in enumerate(windows)])


def found_in(job: TracedJob, **fields: Any) -> Anomaly:
    ((one,),) = findings(window_of(job, **fields))
    return one


@pytest.mark.parametrize(
    ("work", "grounds", "named", "severity", "area"),
    [
        (slow_worker(1, 1), "what_if_workers", [5], "critical", "compute"),
        (slow_worker(0, 3, 1.3), "what_if_workers", [3], "warning", "compute"),
        (heavy_last(2), "what_if_stages", [], "warning", "workload"),
        (lengths(), "what_if_lengths", [], "warning", "workload"),
    ],
)
def test_a_finding_names_the_worker_or_says_why_it_is_nobody(
    work: Work, grounds: str, named: list[int], severity: str, area: str
) -> None:
    one = found_in(job_of(work))
    assert (one.grounds, one.severity, one.area, one.layer) == (grounds, severity, area, "profile")
    assert [suspect.rank for suspect in one.suspects] == named
    assert one.victims == ([rank for rank in range(8) if rank not in named] if named else [])
    assert one.iteration == 10
    assert "S = " in one.text and "M_W = " in one.peers and "M_S = " in one.peers


@pytest.mark.parametrize(
    ("job", "told"),
    [
        (job_of(longer_replicas(3)), "data-parallel replica 3 computes longer"),
        (job_of(longer_replicas(1), dp=2), "data-parallel replica 1 computes longer"),
        (job_of(longer_replicas(1, 5, spread=0.4), dp=8, pp=4), "data-parallel replicas 1,5 compute longer"),
    ],
)
def test_replicas_that_take_longer_on_all_stages_have_longer_inputs(job: TracedJob, told: str) -> None:
    one = found_in(job)
    assert (one.grounds, one.area, one.severity) == ("what_if_replica", "workload", "warning")
    assert (one.suspects, one.victims) == ([], [])
    assert told in one.text


def test_a_worker_is_told_apart_from_a_replica_with_longer_inputs() -> None:
    def work(*place: int) -> tuple[float, float]:
        inputs, own = longer_replicas(3, factor=1.1)(*place), slow_worker(1, 1)(*place)
        return max(inputs[0], own[0]), max(inputs[1], own[1])

    one = found_in(job_of(work))
    assert (one.grounds, [suspect.rank for suspect in one.suspects]) == ("what_if_workers", [5])


@pytest.mark.parametrize("named", [[], [9]])
def test_replicas_of_one_expert_group_are_held_against_each_other(named: list[int]) -> None:
    """The group of hot experts is slow as a whole on one stage; only within it can a worker stand out."""

    def work(*place: int) -> tuple[float, float]:
        hot = longer_replicas(1, 5, 9, factor=1.3)(*place) if place[1] == 0 else even()(*place)
        own = slow_worker(0, 9)(*place) if named else hot
        return max(hot[0], own[0]), max(hot[1], own[1])

    told = []
    for one in window_of(job_of(work, dp=12)):
        at = {**one.identity.coordinates, "ep": one.identity.coordinates["dp"] % 4}  # type: ignore[operator]
        told.append(msgspec.structs.replace(one, identity=msgspec.structs.replace(one.identity, coordinates=at)))
    ((found,),) = findings(told)
    assert [suspect.rank for suspect in found.suspects] == named


def test_waiting_for_a_replica_that_was_not_traced_is_not_said_to_be_communication() -> None:
    def work(*place: int) -> tuple[float, float]:
        """Slow in some steps, so that waiting for it is not what is usual."""
        return slow_worker(0, 1, 3.0 if place[0] % 3 == 0 else 1.0)(*place)

    job = job_of(work)
    one = found_in(job, ranks=[rank for rank, (replica, _) in job.places().items() if replica != 1])
    assert (one.grounds, one.area, one.suspects) == ("what_if_unseen", "unknown", [])
    assert "over 6 steps, 1 of the replicas not traced in most of them)" in one.text
    assert "communication, or waiting for the replicas that are not there" in one.text


@pytest.mark.parametrize("ranks", [[1, 5], [5], [2]])
def test_workers_whose_clocks_differ_are_set_right_by_their_collectives(ranks: list[int]) -> None:
    expected = found_in(job_of(slow_worker(1, 1)))
    windows = window_of(job_of(slow_worker(1, 1)))
    told = []
    for one in windows:
        ahead = 100_000_000_000 if one.identity.rank in ranks else 0
        own = [msgspec.structs.replace(line, starts=[start + ahead for start in line.starts]) for line in one.timelines]
        told.append(msgspec.structs.replace(one, timelines=own))
    ((found,),) = findings(told)
    assert [suspect.rank for suspect in found.suspects] == [5]
    assert found.peers == expected.peers
    assert f"{len(ranks)} workers with other clocks" in found.text


def test_time_between_operations_is_information() -> None:
    """It may be work that was not timed."""
    one = found_in(job_of(even(), gap_s=0.1))
    assert (one.grounds, one.severity, one.area, one.suspects) == ("what_if_between", "info", "data", [])


def test_a_job_in_which_all_are_alike_gives_no_finding() -> None:
    assert findings(window_of(job_of(even()))) == [[]]


@pytest.mark.parametrize("turn", [1, 3, 7])
def test_other_ranks_at_the_same_places_are_named_by_their_places(turn: int) -> None:
    ranks = tuple((rank * 3 + turn) % 8 for rank in range(8))
    (suspect,) = found_in(job_of(slow_worker(1, 1), ranks=ranks)).suspects
    assert (suspect.rank, suspect.coordinates) == (ranks[5], {"dp": 1, "pp": 1})


def test_onset_is_the_first_step_in_which_the_worker_stood_out() -> None:
    def work(step: int, stage: int, replica: int, number: int) -> tuple[float, float]:
        forward, backward = even()(step, stage, replica, number)
        scale = 2.0 if step >= 15 and (stage, replica) == (0, 2) else 1.0
        return forward * scale, backward * scale

    one = found_in(job_of(work, steps=24))
    assert ([suspect.rank for suspect in one.suspects], one.iteration) == ([2], 15)


def test_steps_are_judged_once_all_workers_of_the_layout_have_come() -> None:
    job = job_of(slow_worker(1, 1))
    early = window_of(job, 0, [0, 1, 2, 3], source="captured")
    late = window_of(job, 10, [4, 5, 6, 7], source="captured")
    first, second, third = findings(early, late, [])
    assert (first, third) == ([], [])
    assert [suspect.rank for one in second for suspect in one.suspects] == [5]


def test_who_does_not_come_is_waited_for_only_so_long() -> None:
    job = job_of(slow_worker(1, 1))
    partial = window_of(job, 0, [0, 1, 2, 4, 5, 6], source="captured")
    found = findings(partial, [], [], [], [])
    assert [len(one) for one in found] == [0, 0, 0, 1, 0]
    assert [suspect.rank for suspect in found[3][0].suspects] == [5]
    assert found[3][0].victims == [0, 1, 2, 4, 6]


def test_few_steps_wait_for_more() -> None:
    job = job_of(slow_worker(1, 1), steps=2)
    more = job_of(slow_worker(1, 1), steps=2, first_step=12)
    assert [len(one) for one in findings(window_of(job), window_of(more, 10))] == [0, 1]


def test_steps_of_long_ago_are_not_judged_with_later_ones() -> None:
    old = window_of(job_of(slow_worker(1, 1), steps=2), source="captured")
    now = window_of(job_of(slow_worker(0, 2), steps=4, first_step=500), 3600, source="captured")
    config = WhatIfConfig(steps=4)
    first, second = run(WhatIfDetector(config), new_view(), [closed(old), closed(now, 3600)])
    assert first == []
    ((suspect,),) = [one.suspects for one in second]
    assert (suspect.rank, second[0].iteration, second[0].onset) == (2, 500, at(3601))
    assert "2 traced steps before these were not played" in second[0].text


def test_of_what_is_too_much_the_steps_that_came_first_go_whatever_their_numbers() -> None:
    detector = WhatIfDetector(WhatIfConfig(pending_operations=1_000))
    high = window_of(job_of(even(), steps=40, first_step=900), 0, [0, 1], source="captured")
    low = window_of(job_of(even(), steps=40), 10, [0, 1], source="captured")
    assert run(detector, new_view(), [closed(high), closed(low, 10)]) == [[], []]
    state = detector.state
    assert max(state.pending) == 49 and state.dropped == 80 - len(state.pending)
    assert sum(len(one.operations) for own in state.pending.values() for one in own.values()) <= 1_000


def test_of_ranks_that_share_a_place_none_is_named() -> None:
    """They compute together and wait for each other, whoever of them is slow."""
    job = job_of(slow_worker(1, 1))
    doubled = []
    for one in window_of(job):
        twin = msgspec.structs.replace(one.identity, rank=(one.identity.rank or 0) + 8)
        doubled += [one, msgspec.structs.replace(one, identity=twin)]
    ((found,),) = findings(doubled)
    assert (found.grounds, found.suspects, found.victims) == ("what_if_workers", [], [])
    assert "one of ranks 5,13 (dp 1, pp 1)" in found.text


def without_sends(one: Timeline) -> Timeline:
    kept = [at for at, code in enumerate(one.operations) if not one.names[code].endswith("send")]
    columns = ("operations", "starts", "durations", "microbatches", "chunks")
    return msgspec.structs.replace(one, **{name: [getattr(one, name)[at] for at in kept] for name in columns})


def emptied(one: Timeline) -> Timeline:
    return msgspec.structs.replace(one, operations=[], starts=[], durations=[], microbatches=[], chunks=[])


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda one: msgspec.structs.replace(one, left_out=3), "no step was traced"),
        (without_sends, "neither sends nor receives"),
        (emptied, "no operation"),
    ],
)
def test_what_cannot_be_played_is_told_and_blames_nobody(spoil: Any, reason: str) -> None:
    windows = window_of(job_of(slow_worker(1, 1)))
    spoilt = [msgspec.structs.replace(one, timelines=[spoil(line) for line in one.timelines]) for one in windows]
    ((one,),) = findings(spoilt)
    assert (one.grounds, one.severity, one.suspects) == ("not_played", "info", [])
    assert reason in one.text


def test_ranks_without_a_place_and_steps_without_a_number_are_not_played() -> None:
    windows = window_of(job_of(slow_worker(1, 1)))
    lost = [msgspec.structs.replace(one, identity=identity(one.identity.rank), layout={}) for one in windows]
    ((one,),) = findings(lost)
    assert one.grounds == "not_played"
    unnumbered = [
        msgspec.structs.replace(
            one, timelines=[msgspec.structs.replace(line, iteration=None) for line in one.timelines]
        )
        for one in windows
    ]
    assert findings(unnumbered) == [[]]


def test_what_waits_is_bounded() -> None:
    detector = WhatIfDetector(WhatIfConfig(pending_operations=1_000))
    job = job_of(even(), steps=40)
    assert run(detector, new_view(), [closed(window_of(job, 0, [0, 1], source="captured"))]) == [[]]
    kept = detector.state.pending
    assert 0 < sum(len(one.operations) for own in kept.values() for one in own.values()) <= 1_000
    assert max(kept) == 49 and set(detector.state.since) == set(kept)


@pytest.mark.parametrize("changes", [{"steps": 0}, {"critical": 1.0}, {"patience_windows": 0}])
def test_settings_that_make_no_sense_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        WhatIfConfig(**changes)
    with pytest.raises(ValueError, match="limits"):
        Limits(slowdown=1.0)


def test_a_traced_job_gives_one_incident_from_its_topics_on() -> None:
    log = written_log(traced().recording)
    run_log(log)
    latest = records(log, "incidents")[-1]
    assert ({one.id for one in records(log, "incidents")}, latest.symptom) == ({latest.id}, "slowdown")
    assert [suspect.rank for suspect in latest.suspects] == [5]
    assert latest.victims.ranks == "0-4,6-7"


def test_partitions_change_nothing_of_what_is_found() -> None:
    found = []
    for partitions in (1, 3):
        log = written_log(traced().recording, partitions)
        run_log(log)
        found.append(folded(log, ("anomalies", "incidents")))
    assert found[0]["incidents"] and found[0] == found[1]
