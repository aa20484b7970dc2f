"""Whether an incident is like one of an earlier attempt, with the reason; a job that fails alike is one alert."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from incident_support import told
from streams_support import RANKS_PER_NODE, Script, agent, node_of, pid_of, records, run, worker, written_log

from schemas.results import Incident
from streams.incidents.recurrence import MOST_PAST, RECURS, SOON_NS, Likeness, Past, likeness, past_of, with_series

ONE: dict[str, Any] = {
    "id": "a",
    "group": "",
    "order": (0, 0),
    "symptom": "crash",
    "ranks": [2],
    "nodes": ["node01"],
    "errors": ["e"],
    "key": "k",
    "recurs": 0,
}


def past(**changes: Any) -> Past:
    return Past(**(ONE | changes))


def untold(**changes: Any) -> Past:
    return past(**({"errors": [], "ranks": [], "nodes": [], "reason": "only errors of victims"} | changes))


@pytest.mark.parametrize(
    ("one", "other", "why"),
    [
        (past(), past(), Likeness.SAME_ERRORS),
        (past(), past(ranks=[5], nodes=["node02"]), Likeness.SAME_ERRORS),
        (past(), past(errors=["f"]), Likeness.OTHER_ERRORS),
        (past(), past(symptom="hang"), Likeness.OTHER_SYMPTOM),
        (past(), past(errors=[]), Likeness.SAME_RANKS),
        (past(errors=[]), past(errors=[], ranks=[3]), Likeness.OTHER_PLACES),
        (past(errors=[]), past(errors=[], ranks=[]), Likeness.SAME_NODES),
        (untold(reason=""), untold(reason=""), Likeness.OTHER_PLACES),
        # Nobody is known of either: a job that is begun again and again.
        (untold(), untold(onset=SOON_NS), Likeness.SAME_REASON),
        (untold(), untold(onset=SOON_NS + 1), Likeness.OTHER_PLACES),
        (untold(), untold(reason="nobody apart"), Likeness.OTHER_PLACES),
        (untold(), untold(errors=["e"]), Likeness.OTHER_PLACES),
        (untold(), untold(ranks=[2]), Likeness.OTHER_PLACES),
        (untold(), untold(nodes=["node01"]), Likeness.OTHER_PLACES),
    ],
)
def test_whether_two_are_alike(one: Past, other: Past, why: Likeness) -> None:
    assert likeness(one, other) is likeness(other, one) is why
    assert (why in RECURS) == why.name.startswith("SAME")


def crashed(number: int, ranks: Sequence[int] = (2,), **changes: Any) -> Incident:
    says = told(f"i{number}", "standstill", ranks).says
    return msgspec.structs.replace(says, attempt=str(number), notification_key=f"k{number}", **changes)


def series(*incidents: tuple[Incident, str], group: str = "") -> list[tuple[int, str]]:
    known: list[Past] = []
    found = []
    for incident, errors in incidents:
        order = (int(incident.attempt), 0)
        said, known = with_series(incident, past_of(incident, errors.split(), group, order), known)
        found.append((said.recurs, said.notification_key))
        known = msgspec.json.decode(msgspec.json.encode(known), type=list[Past])
        assert len(known) <= MOST_PAST
    return found


def test_a_series_counts_up_under_the_key_of_its_first() -> None:
    assert series(*[(crashed(n), "e") for n in range(3)]) == [(0, "k0"), (1, "k0"), (2, "k0")]
    # For a day, once a minute.
    assert series(*[(crashed(n), "e") for n in range(1440)])[-1] == (1439, "k0")


def test_another_failure_in_between_is_no_recurrence_and_breaks_no_series() -> None:
    found = series((crashed(0), "e"), (crashed(1), "f"), (crashed(2), "e"), (crashed(3), "f"))
    assert found == [(0, "k0"), (0, "k1"), (1, "k0"), (1, "k1")]


def test_revisions_of_one_incident_count_once_and_what_pages_nobody_never() -> None:
    revised = crashed(1, revision=2)
    twice = series((crashed(0), "e"), (crashed(1), "e"), (revised, "e"), (revised, "e"))
    assert twice == [(0, "k0"), (1, "k0"), (1, "k1"), (1, "k1")]
    assert series((crashed(0), "e"), (crashed(0, severity="info"), "e"), (crashed(2), "e"))[-1] == (0, "k2")
    assert series((crashed(0), "e"), (crashed(1, merged_into="i0"), "e"))[-1] == (0, "k1")


def failing(*errors: str) -> Script:
    """An attempt for each error: rank 2 fails by it, its peers by its loss, and the launchers begin anew."""
    script, ranks = Script("series"), 4
    for number, error in enumerate(errors):
        zero, attempt = 60.0 * number, str(number)
        script.start(ranks, zero + 0.2, attempt)
        script.train(ranks, 1, 24, attempt=attempt, zero=zero)
        script.alive(ranks, int(zero), int(zero) + 26, attempt=attempt)
        frames = 'Traceback (most recent call last):\n  File "/job/train.py", line 90, in train\n    f()\n'
        script.log(worker(script.job, 2, attempt), zero + 25.1, frames + error)
        for rank in (0, 1, 3):
            lost = f"[rank{rank}]: RuntimeError: Connection closed by peer"
            script.log(worker(script.job, rank, attempt), zero + 26 + rank / 10, lost)
        for rank in range(ranks):
            ended = f"local_rank: {rank % RANKS_PER_NODE} (pid: {pid_of(rank, attempt)}) of binary: python"
            script.log(agent(script.job, node_of(rank)), zero + 28 + rank / 10, f"failed (exitcode: 1) {ended}")
    return script


def test_a_job_that_fails_alike_in_each_attempt_is_one_alert_and_each_incident_says_how_often() -> None:
    log = written_log(
        failing("ValueError: shard 7", "ValueError: shard 9", "KeyError: 'x'", "ValueError: shard 1").recording
    )
    run(log)
    latest: dict[str, Incident] = {}
    for one in sorted(records(log, "incidents"), key=lambda one: (one.published, one.revision)):
        latest[one.id] = one
    found = sorted(latest.values(), key=lambda one: one.onset)
    assert [(one.attempt, one.recurs) for one in found] == [("0", 0), ("1", 1), ("2", 0), ("3", 2)]
    assert {suspect.rank for one in found for suspect in one.suspects} == {2}
    keys = [one.notification_key for one in found]
    assert keys[0] == keys[1] == keys[3] != keys[2]
    assert [one.status for one in found[:3]] == ["resolved"] * 3


def test_a_series_is_told_by_its_first_and_no_key_changes_once_staff_were_told() -> None:
    """An incident that names nobody at first has a key of its own; the next one has that of the series again."""
    script = Script("hangs")
    for number in range(3):
        zero, attempt = 100.0 * number, str(number)
        script.start(8, zero + 0.2, attempt)
        script.train(8, 1, 30, attempt=attempt, zero=zero + 1)
        script.alive(8, int(zero) + 1, int(zero) + 95, attempt=attempt)
        # Of the second attempt stacks come late.
        script.stacks(8, range(int(zero) + (80 if number == 1 else 35), int(zero) + 95, 5), 5, attempt)
    log = written_log(script.recording)
    run(log)
    by_attempt: dict[str, list[Incident]] = {}
    for one in sorted(records(log, "incidents"), key=lambda one: (one.published, one.revision)):
        by_attempt.setdefault(one.attempt, []).append(one)
    keys = {attempt: {one.notification_key for one in told} for attempt, told in by_attempt.items()}
    assert [len(of) for of in keys.values()] == [1, 1, 1]
    assert keys["0"] == keys["2"] != keys["1"]
    first = by_attempt["0"][0].id
    assert [(told[-1].recurs, told[-1].series) for told in by_attempt.values()] == [(0, ""), (1, first), (2, first)]
    assert by_attempt["1"][0].suspects == []
