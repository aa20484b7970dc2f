"""Worker groups of one job: which only waits for another, with the reason, and that none hangs that awaits its turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from detection_support import S, anomaly
from detection_support import at as second
from incident_support import told
from streams_support import LOADING, WAITING, Script, at, pid_of, records, run, written_log

from schemas.events import Metric, Stack, Topology
from schemas.identity import Identity
from schemas.results import Incident
from streams.incidents.decision import Reason
from streams.incidents.groups import Waiting, Waits, awaiting_turn, waits_for
from streams.incidents.recurrence import Past, past_of
from streams.incidents.resolution import Resolution
from streams.iterations import ProgressClock
from streams.view import AttemptView


def cause(name: str = "c", group: str = "actor", ranks: Sequence[int] = (1,), **fields: Any) -> Past:
    onset = fields.pop("onset", 90)
    says = told(name, "standstill", ranks, onset=onset).says
    return past_of(msgspec.structs.replace(says, **fields), [], group, (0, 0))


ENDED, SUPERSEDED = Resolution.ENDED, Resolution.SUPERSEDED


def over(resolution: Resolution, time: float) -> Past:
    return cause(status="resolved", resolution=resolution.value, published=second(time))


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
        # What was over before, as it began, is not waited for, and a given-up attempt no longer.
        ([], Reason.NOBODY_APART, [over(ENDED, 105)], Waits.FOR_ANOTHER),
        ([], Reason.NOBODY_APART, [over(ENDED, 95)], Waits.NOBODY_FAILED),
        ([], Reason.NOBODY_APART, [over(SUPERSEDED, 105)], Waits.NOBODY_FAILED),
        ([], Reason.NOBODY_APART, [over(Resolution.STOPPED, 105)], Waits.NOBODY_FAILED),
        ([], Reason.NOBODY_APART, [over(Resolution.FORGOTTEN, 105)], Waits.NOBODY_FAILED),
        # For which of two is not known.
        ([], Reason.NOBODY_APART, [cause(), cause("d", "critic")], Waits.SEVERAL_FAILED),
        ([], Reason.NOBODY_APART, [cause(), cause("d", onset=95)], Waits.FOR_ANOTHER),
    ],
)
def test_whether_a_group_waits_for_another(
    ranks: Sequence[int], reason: Reason, others: Sequence[Past], why: Waits
) -> None:
    incident = told("w", "standstill", ranks, onset=100, reason=reason).says
    waiting = Waiting(group="rollout", found=second(120), now=second(130), stands=True)
    found, into = waits_for(incident, waiting, others)
    assert (found, bool(into)) == (why, why is Waits.FOR_ANOTHER)


@pytest.mark.parametrize(
    ("resolution", "stands", "now", "why"),
    [
        (ENDED, True, 800, Waits.FOR_ANOTHER),
        (ENDED, True, 900, Waits.NOBODY_FAILED),
        (ENDED, False, 900, Waits.FOR_ANOTHER),
        (SUPERSEDED, False, 130, Waits.FOR_ANOTHER),
    ],
)
def test_for_how_long_one_that_is_over_is_waited_for(
    resolution: Resolution, stands: bool, now: float, why: Waits
) -> None:
    lost = told("w", "standstill", [], onset=100, reason=Reason.ONLY_CASCADES).says
    waiting = Waiting(group="rollout", found=second(120), now=second(now), stands=stands, part_of="c")
    assert waits_for(lost, waiting, [over(resolution, 105)])[0] is why


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

    def begin_again(self, group: str, time: float) -> None:
        for rank in range(4):
            who = self.member(group, rank)
            self.send(who, Topology(time=at(time), pid=3000 + rank, world_size=4))
            self.log(who, time + 0.1, f"[rank {rank}] starting, world size: 4")

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


def view(attempt: str, iterated: float, pause: float = 1) -> AttemptView:
    clock = ProgressClock(iteration=9, time=second(iterated), steps=[1 * S], pause=int(pause * S))
    return AttemptView(job="j", attempt=attempt, first=0, clock=clock)


@pytest.mark.parametrize(
    ("ranks", "pause", "now", "severity"),
    [
        # Nobody is told apart: it may await its turn, but not for ever without a word.
        ([], 1, 160, "info"),
        ([], 1, 750, "warning"),
        ([], 400, 750, "info"),
        ([], 400, 950, "warning"),
        # One is: it hangs, unless the group has paused for as long before and went on.
        ([2], 1, 160, "critical"),
        ([2], 90, 160, "info"),
        ([2], 90, 210, "critical"),
        ([2], 5000, 750, "critical"),
    ],
)
def test_what_a_group_shows_that_stands_still_while_another_goes_on(
    ranks: list[int], pause: float, now: float, severity: str
) -> None:
    shown = anomaly("outside_communication" if ranks else "no_iteration", ranks, onset=100, severity="critical")
    found, waits = awaiting_turn([shown], view("rollout/0", 100, pause), [view("actor/0", now)], second(now))
    (said,) = [*found, *waits]
    assert (said.severity, said.onset, bool(found)) == (severity, second(100), severity != "info")


def test_a_hang_of_a_rank_is_not_hidden_by_a_group_that_trains_on() -> None:
    script = Groups("async")
    script.begin()
    script.idle(130)
    for step in range(1, 120):
        script.step("actor", step, step)
    for step in range(1, 40):
        script.step("rollout", step, step)
    for time in range(45, 130, 10):
        for rank in range(4):
            frames = LOADING if rank == 2 else WAITING
            pid = script.pid("rollout", rank)
            stack = Stack(time=at(time + 0.7), process_type="trainer", pid=pid, thread="MainThread", frames=frames)
            script.send(script.member("rollout", rank), stack)
    (last,) = {one.id: one for one in revisions(script)}.values()
    assert (last.attempt, last.severity, [one.rank for one in last.suspects]) == ("rollout/0", "critical", [2])
    assert last.onset == at(39)


class Restarted(Groups):
    attempt = "0"

    def member(self, group: str, rank: int) -> Identity:
        return msgspec.structs.replace(super().member(group, rank), attempt=self.attempt if group == "actor" else "0")


def test_a_hang_is_no_part_of_the_failure_of_an_attempt_that_was_given_up() -> None:
    script = Restarted("rl")
    script.begin()
    script.idle(62)
    for step in range(1, 60):
        script.step("actor", step, step)
    for step in range(1, 130):
        script.step("rollout", step, step)
    script.log(
        script.member("actor", 2), 60.2, 'Traceback (most recent call last):\n  File "t.py", line 1\nValueError: bad'
    )
    for rank in (0, 1, 3):
        script.log(script.member("actor", rank), 61 + rank / 10, LOST.format(rank))
    script.attempt = "1"
    script.begin_again("actor", 75.2)
    for time in range(62, 220, 4):
        for rank in range(4):
            load = Metric(time=at(time + 0.3), name="cpu_percent", value=90.0, pid=script.pid("rollout", rank))
            script.send(script.member("rollout", rank), load)
    for rank in range(4):
        script.log(script.member("actor", rank), 97, "training finished")
    latest = {one.attempt: one for one in revisions(script)}
    assert latest["actor/0"].resolution == SUPERSEDED.value
    assert (latest["rollout/0"].status, latest["rollout/0"].merged_into) == ("open", "")
