"""Incidents under hostile input: many at once, very many ranks, findings that contradict each other, restarts."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from detection_support import (
    S,
    anomaly,
    at,
    closed,
    healthy,
    identity,
    known_fatal,
    new_view,
    stepping,
    still,
    summary,
    traceback,
)

from schemas.codec import encode
from schemas.identity import MOST_RANKS, Identity
from schemas.meta import MetaAlert
from schemas.results import Anomaly, DeadLetter, Exit, Incident, Window
from streams.attempt_window import AttemptWindow
from streams.config import StreamConfig
from streams.detectors.registry import briefly
from streams.incidents.book import IncidentBook
from streams.incidents.decision import Reason
from streams.incidents.flaps import MOST_RESTED
from streams.incidents.joining import MOST_OPEN
from streams.incidents.opened import KEPT_ANOMALIES, KEPT_TAKEN, IncidentBookState
from streams.incidents.recurrence import MOST_PAST
from streams.stages import attempt, observing
from streams.stages.jobs import JobKeeper, JobState
from streams.view import AttemptView

MOST_BYTES = 1_000_000
"""What a record of the topic may take, at least."""


def bounded(state: IncidentBookState) -> None:
    assert len(state.incidents) <= MOST_OPEN + 3
    assert len(state.rested) <= MOST_RESTED
    for one in [*state.incidents, *state.rested]:
        assert len(one.anomalies) <= 2 * KEPT_ANOMALIES
        assert len(one.took) <= KEPT_TAKEN
        assert len(one.reasons) <= 100
        assert len(one.second) <= KEPT_ANOMALIES
    firsts = [one.first for one in state.incidents]
    assert len(firsts) == len(set(firsts))


def test_a_hundred_faults_that_a_job_lives_through_stay_within_bounds_and_so_does_what_is_said() -> None:
    view, state, said = new_view(), IncidentBookState(), 0
    view.update(healthy(200))
    for number in range(24):
        start = 10.0 + 10 * number
        window = healthy(200, start, int(start) + 1)
        view.update(window)
        # Each rank's node reports its fault again and again.
        faults = [
            anomaly("rank_fault", [rank], start=start, subject=str(rank), area="hardware") for rank in range(0, 200, 2)
        ]
        said += len(IncidentBook(state).close(view, window, faults, lambda *_: []))
        state = msgspec.json.decode(msgspec.json.encode(state), type=IncidentBookState)
        bounded(state)
    assert 1 <= said <= 24 * (MOST_OPEN + 3)


@pytest.mark.parametrize("grounds", ["own_error", "outside_communication", "slow_and_changed", "own_series"])
def test_an_incident_of_all_ranks_of_a_large_job_fits_its_topic_and_is_said_once(grounds: str) -> None:
    ranks = 10_240
    view, state = new_view(), IncidentBookState()
    view.update(closed([summary(rank, 0, who=identity(rank, 8)) for rank in range(ranks)]))
    revisions = []
    for number in range(3):
        start = 10.0 + 10 * number
        window = closed([], start)
        view.update(window)
        found = anomaly(grounds, range(ranks), list(range(ranks)), start=start, onset=5, per_node=8)
        revisions += IncidentBook(state).close(view, window, [found], lambda *_: [])
    assert 1 <= len(revisions) <= 3
    assert all(len(encode(one)) < MOST_BYTES for one in revisions)


@pytest.mark.parametrize("way", ["all raise one error", "all are killed"])
def test_a_job_of_ten_thousand_ranks_that_fails_as_a_whole_is_one_incident(way: str) -> None:
    ranks = 10_240
    keeper = JobKeeper(JobState(job="job1"), CONFIG)
    who = [identity(rank, 8, role="trainer", coordinates={"tp": rank % 8, "dp": rank // 8}) for rank in range(ranks)]
    begun = [stepping(rank, 0, first=1, who=who[rank], world_size=ranks) for rank in range(ranks)]
    keeper.close(at(10), begun, unavailable=False)
    error = [known_fatal(traceback(f"ValueError: bad shard {'x' * 300}"), at(15))] if "raise" in way else []
    ends = [] if error else [Exit(time=at(15), pid=0, code=-9, signal="SIGKILL", rank=rank) for rank in range(ranks)]
    agent = Identity(job="job1", node="node00", rank_reason="launcher", process_type="launcher")
    windows = [summary(rank, 10, who=who[rank], fatals=error) for rank in range(ranks)]
    outputs = keeper.close(at(20), [*windows, summary(None, 10, who=agent, exits=ends)], unavailable=False)
    for later in range(2, 6):
        outputs += keeper.close(at(10 + 10 * later), [], unavailable=False)
    incidents = [one.record for one in outputs if isinstance(one.record, Incident)]
    assert len({one.id for one in incidents}) == 1
    assert {one.reason for one in incidents} == {Reason.ALL_ALIKE.value}
    found = [one.record for one in outputs if isinstance(one.record, Anomaly)]
    # All that is suspected by the finding is: blame is the one to say that it is nobody.
    assert max(len(one.suspects) for one in found) == ranks
    assert max(len(encode(record)) for record in (*incidents, *found)) < MOST_BYTES * 0.9
    assert not [one for one in outputs if isinstance(one.record, DeadLetter)]


def test_a_hundred_jobs_that_fail_at_once_are_a_hundred_incidents() -> None:
    said: dict[str, set[str]] = {}
    for number in range(100):
        keeper = JobKeeper(JobState(job=f"job{number}"), CONFIG)
        error = known_fatal(traceback("ValueError: bad shard"), at(15))
        who = [identity(rank, job=f"job{number}") for rank in range(8)]
        for start in (0, 10, 20, 30):
            fails = [error] if start == 10 else []
            windows = [summary(rank, start, who=who[rank], fatals=fails, world_size=8) for rank in range(8)]
            outputs = keeper.close(at(start + 10), windows if start < 20 else [], unavailable=False)
            found = [one.record for one in outputs if isinstance(one.record, Incident)]
            said.setdefault(f"job{number}", set()).update(one.id for one in found)
    assert {len(ids) for ids in said.values()} == {1}
    assert len(set().union(*said.values())) == 100


def test_whoever_is_named_among_very_many_is_described_all_the_same() -> None:
    view = new_view()
    who = [identity(rank, 8, role="trainer", coordinates={"dp": rank}) for rank in range(200)]
    view.update(closed([summary(rank, who=one) for rank, one in enumerate(who)]))
    suspects = [view.suspect(rank, 0.9, f"why of {rank}") for rank in range(200)]
    found = anomaly("outside_communication", [150], start=10.0, onset=5)
    found = msgspec.structs.replace(found, suspects=[one for one in briefly(suspects) if one.rank == 150])
    book, window = IncidentBook(IncidentBookState()), closed([], 10.0)
    said = book.close(view, window, [found], lambda *_: [])
    [named] = said[0].suspects
    assert (named.rank, named.node, named.role, named.coordinates) == (150, "node18", "trainer", {"dp": 150})
    assert named.why == found.text
    assert [one.why for one in briefly(suspects)][62:66] == ["why of 62", "why of 63", "", ""]
    assert [(one.rank, one.node) for one in briefly(suspects)] == [(one.rank, one.node) for one in suspects]


_GROUNDS = (
    "own_error",
    "own_death",
    "cascade",
    "no_iteration",
    "outside_communication",
    "never_enqueued",
    "node_fault",
    "rank_fault",
    "memory_growth",
    "slow_and_changed",
    "rotating",
    "job_shift",
    "own_series",
    "after_reduction",
    "told_to_end",
)


def drawn(dice: random.Random, start: float) -> list[Anomaly]:
    """Findings of one window of which each contradicts the others."""
    found = []
    for number in range(dice.randrange(6)):
        ranks = dice.sample(range(8), dice.choice([0, 1, 1, 1, 3]))
        onset = start + dice.uniform(-30, 10)
        found.append(
            anomaly(dice.choice(_GROUNDS), ranks, [dice.randrange(8)], start=start, onset=onset, subject=str(number))
        )
    return found


@pytest.mark.parametrize("seed", range(12))
def test_findings_that_contradict_each_other_break_nothing(seed: int) -> None:
    def told(cut: int | None) -> list[Incident]:
        dice, view, state = random.Random(seed), new_view(), IncidentBookState()
        view.update(healthy(8))
        revisions: list[Incident] = []
        for number in range(60):
            start = 10.0 + 10 * number
            iterates = dice.random() < 0.5
            window = healthy(8, start, int(start) + 1) if iterates else still(8, start)
            view.update(window)
            if number == cut:
                state = msgspec.json.decode(msgspec.json.encode(state), type=IncidentBookState)
            revisions += IncidentBook(state).close(view, window, drawn(dice, start), lambda *_: [])
            bounded(state)
        return revisions

    whole = told(None)
    assert told(30) == whole
    by_id: dict[str, list[Incident]] = {}
    for one in whole:
        by_id.setdefault(one.id, []).append(one)
    for revisions in by_id.values():
        assert [one.revision for one in revisions] == list(range(1, len(revisions) + 1))
    for one in whole:
        # Of whom one is part is an incident, another, and not over by being part of it in turn.
        assert one.merged_into != one.id
        assert not one.merged_into or one.merged_into in by_id
        assert (one.status == "resolved") == bool(one.resolution)


CONFIG = StreamConfig(idle_windows=12)


def restart(number: int) -> tuple[int, list[Window]]:
    """What an attempt does in its only window: rank 2 fails by an error of its own, which is new in each."""
    start = 60.0 * number
    error = known_fatal(traceback(f"ValueError: bad shard {number}"), at(start + 5))
    who = [msgspec.structs.replace(identity(rank), attempt=str(number)) for rank in range(4)]
    fails = [summary(rank, start, who=who[rank], fatals=[error] if rank == 2 else []) for rank in range(4)]
    return at(start + 10), fails


def test_a_job_that_restarts_every_minute_stays_within_bounds() -> None:
    keeper = JobKeeper(JobState(job="job1"), CONFIG)
    sizes, said = [], []
    for number in range(160):
        end, windows = restart(number)
        for later in range(6):
            outputs = keeper.close(end + later * 10 * S, windows if later == 0 else [], unavailable=False)
            said += [one.record for one in outputs if isinstance(one.record, Incident)]
        if number % 40 == 39:
            state = keeper.written()
            assert len(state.past) <= MOST_PAST
            sizes.append(len(msgspec.json.encode(state)))
            keeper = JobKeeper(state, CONFIG)
    assert sizes[-1] < 1.2 * sizes[1]
    assert max(one.recurs for one in said) == 159
    assert len({one.notification_key for one in said}) == 1


def test_a_job_that_is_gone_without_a_word_is_told_once_and_ends_once_it_is_forgotten() -> None:
    keeper, said = JobKeeper(JobState(job="job1"), CONFIG), []
    for number in range(200):
        start = 10.0 * number
        ranks = [stepping(rank, start, first=10 * number + 1, world_size=4, heartbeats=5) for rank in range(4)]
        outputs = keeper.close(at(start + 10), ranks if number < 3 else [], unavailable=False)
        told = [one.record for one in outputs if isinstance(one.record, Incident | MetaAlert)]
        said += [(number, one.name if isinstance(one, MetaAlert) else one.symptom, one.status) for one in told]
        assert keeper.idle == (number > 2 + CONFIG.idle_windows)
        if keeper.idle:
            break
    silent = [(number, status) for number, name, status in said if name == "job_silent"]
    assert silent == [(5, "firing"), (3 + CONFIG.idle_windows, "resolved")]
    others = {name: status for _, name, status in said}
    assert set(others.values()) <= {"resolved"}, "nothing stays open of a job that is forgotten"
    assert not keeper.views


def test_ranks_that_no_job_has_are_counted_and_end_no_attempt() -> None:
    keeper = JobKeeper(JobState(job="job1"), CONFIG)
    invented = [MOST_RANKS, 10**9, 2**70, -5]
    other = [summary(None, 0, who=msgspec.structs.replace(identity(7), attempt="9", rank=rank)) for rank in invented]
    here = [stepping(rank, 0, first=1) for rank in range(4)]
    outputs = keeper.close(at(10), [*here, *(summary(rank) for rank in invented), *other], unavailable=False)
    letters = [one.record for one in outputs if isinstance(one.record, DeadLetter)]
    assert [(one.key, one.reason[:12]) for one in letters] == [
        (b"job1|0", "4 summaries "),
        (b"job1|9", "4 summaries "),
    ]
    assert letters[0].reason.endswith("ranks -5,131072,1000000000,1180591620717411303424")
    assert [(view.attempt, sorted(view.members), view.superseded) for view in keeper.views] == [
        ("0", [0, 1, 2, 3], None)
    ]


def test_detectors_no_longer_run_for_attempts_that_were_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    watched: list[str] = []
    observed = observing.observed

    def counted(detectors: Any, view: AttemptView, window: AttemptWindow, stage: str) -> Any:
        watched.append(view.attempt)
        return observed(detectors, view, window, stage)

    monkeypatch.setattr(attempt, "observed", counted)
    keeper = JobKeeper(JobState(job="job1"), CONFIG)
    for number in range(10):
        end, windows = restart(number)
        for later in range(6):
            keeper.close(end + later * 10 * S, windows if later == 0 else [], unavailable=False)
    # In its six windows, and in the one in which the next has begun.
    assert {watched.count(str(number)) for number in range(9)} == {7}
