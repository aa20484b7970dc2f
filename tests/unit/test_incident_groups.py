"""Worker groups of one job: which only waits for another, with the reason, and that none hangs that awaits its turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from detection_support import at as second
from incident_support import told
from streams_support import Script, at, pid_of, records, run, written_log

from schemas.events import Metric, Topology
from schemas.identity import Identity
from schemas.results import Incident
from streams.incidents.decision import Reason
from streams.incidents.groups import Waits, waits_for
from streams.incidents.recurrence import Past, past_of


def cause(name: str = "c", group: str = "actor", ranks: Sequence[int] = (1,), **fields: Any) -> Past:
    onset = fields.pop("onset", 90)
    says = told(name, "standstill", ranks, onset=onset).says
    return past_of(msgspec.structs.replace(says, **fields), [], group, (0, 0))


@pytest.mark.parametrize(
    ("ranks", "reason", "others", "why"),
    [
        ([], Reason.NOTHING_OBSERVED, [cause()], Waits.FOR_ANOTHER),
        ([], Reason.NOBODY_APART, [cause()], Waits.FOR_ANOTHER),
        ([], Reason.ONLY_CASCADES, [cause()], Waits.FOR_ANOTHER),
        # Each has a suspect of its own, or an error.
        ([3], Reason.OWN_ERROR, [cause()], Waits.OF_ITS_OWN),
        ([], Reason.PENDING_PEERS, [cause()], Waits.OF_ITS_OWN),
        ([], Reason.SEVERAL_CANDIDATES, [cause()], Waits.OF_ITS_OWN),
        # Nobody failed before: nobody is named there, it was elsewhere, later, long ago, or the job went on.
        ([], Reason.NOBODY_APART, [], Waits.NOBODY_FAILED),
        ([], Reason.NOBODY_APART, [cause(group="rollout")], Waits.NOBODY_FAILED),
        ([], Reason.NOBODY_APART, [cause(ranks=())], Waits.NOBODY_FAILED),
        ([], Reason.NOBODY_APART, [cause(symptom="slowdown")], Waits.NOBODY_FAILED),
        ([], Reason.NOBODY_APART, [cause(onset=200)], Waits.NOBODY_FAILED),
        ([], Reason.NOBODY_APART, [cause(onset=-800)], Waits.NOBODY_FAILED),
        ([], Reason.NOBODY_APART, [cause(resolution="iterations go on")], Waits.NOBODY_FAILED),
        # A group has been silent from when it began to wait; what it loses it loses no earlier than it fails.
        ([], Reason.NOBODY_APART, [cause(onset=115)], Waits.FOR_ANOTHER),
        ([], Reason.ONLY_CASCADES, [cause(onset=115)], Waits.NOBODY_FAILED),
        # For which of two is not known.
        ([], Reason.NOBODY_APART, [cause(), cause("d", "critic")], Waits.SEVERAL_FAILED),
        ([], Reason.NOBODY_APART, [cause(), cause("d", onset=95)], Waits.FOR_ANOTHER),
    ],
)
def test_whether_a_group_waits_for_another(
    ranks: Sequence[int], reason: Reason, others: Sequence[Past], why: Waits
) -> None:
    incident = told("w", "standstill", ranks, onset=100, reason=reason).says
    found, into = waits_for(incident, second(120), "rollout", others)
    assert (found, bool(into)) == (why, why is Waits.FOR_ANOTHER)


LOST = (
    "[Rank {0}] Process group watchdog thread terminated with exception: NCCL error: remote process exited or there "
    "was a network error, NCCL version 2.21.5"
)


class Groups(Script):
    """A job of two groups of four ranks each, which take turns: rollout for three steps, then training for a while."""

    def member(self, group: str, rank: int) -> Identity:
        node = f"{group}{rank // 2}"
        return Identity(job=self.job, node=node, rank=rank, local_rank=rank % 2, group=group, role=group)

    def begin(self) -> None:
        for group in ("actor", "rollout"):
            for rank in range(4):
                who = self.member(group, rank)
                self.send(who, Topology(time=at(0.2), pid=self.pid(group, rank), world_size=4))
                self.log(who, 0.3, f"[rank {rank}] starting, world size: 4")

    def pid(self, group: str, rank: int) -> int:
        return pid_of(rank) + (500 if group == "actor" else 0)

    def step(self, group: str, number: int, time: float) -> None:
        line = f"iteration {number:8d}/ 500 | elapsed time per iteration (ms): 1000.0 | lm loss: 2.0E+00 |"
        self.log(self.member(group, 0), time, line, number)
        for rank in range(4):
            self.log(self.member(group, rank), time + 0.1, f"batch {number} is done", number)

    def idle(self, until: int) -> None:
        for time in range(0, until, 4):
            for group in ("actor", "rollout"):
                for rank in range(4):
                    load = Metric(time=at(time + 0.3), name="cpu_percent", value=90.0, pid=self.pid(group, rank))
                    self.send(self.member(group, rank), load)


def taking_turns(turns: int) -> Groups:
    """Each turn 10 steps of a second of rollout, then 50 of training."""
    script = Groups("turns")
    script.begin()
    for turn in range(turns):
        for step in range(10):
            script.step("rollout", 10 * turn + step + 1, 60 * turn + step + 1)
        for step in range(49):
            script.step("actor", 50 * turn + step + 1, 60 * turn + step + 11)
    return script


def revisions(script: Script) -> list[Incident]:
    log = written_log(script.recording)
    run(log)
    return sorted(records(log, "incidents"), key=lambda one: (one.published, one.attempt, one.revision))


def test_a_group_that_awaits_its_turn_opens_no_hang() -> None:
    script = taking_turns(3)
    script.idle(180)
    assert revisions(script) == []


def failing(*groups: str) -> Groups:
    """In the middle of training rank 2 of each of these fails; the others lose it, and nobody goes on."""
    script = taking_turns(1)
    script.idle(130)
    error = 'Traceback (most recent call last):\n  File "/job/train.py", line 90, in f\n    f()\nValueError: bad shard'
    for at_group, group in enumerate(groups):
        script.log(script.member(group, 2), 60.2 + at_group, error)
        for rank in (0, 1, 3):
            lost = LOST.format(rank)
            script.log(script.member(group, rank), 61.0 + at_group + rank / 10, lost)
    for rank in range(4):
        lost = LOST.format(rank)
        if "rollout" not in groups:
            script.log(script.member("rollout", rank), 64.0 + rank / 10, lost)
    return script


def test_a_group_that_only_loses_another_is_part_of_its_incident() -> None:
    latest = {one.id: one for one in revisions(failing("actor"))}
    (actor,) = [one for one in latest.values() if one.attempt.startswith("actor/")]
    (rollout,) = [one for one in latest.values() if one.attempt.startswith("rollout/")]
    assert ([suspect.rank for suspect in actor.suspects], actor.status, actor.merged_into) == ([2], "open", "")
    assert (rollout.merged_into, rollout.status, rollout.severity) == (actor.id, "resolved", "info")
    assert "ranks 0-3 lost their peers" in actor.evidence[-1].text


def test_two_groups_that_both_have_a_suspect_of_their_own_keep_their_incidents() -> None:
    latest = {one.id: one for one in revisions(failing("actor", "rollout"))}
    assert [([suspect.rank for suspect in one.suspects], one.merged_into) for one in latest.values()] == [([2], "")] * 2
