"""Whole small jobs that stand still: what the one is that the others wait for, and when nobody can tell."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streams_support import WAITING, Script, agent, at, node_of, pid_of, run, worker, written_log

from schemas.events import Collective, Event, Heartbeat, Log, Metric, Stack
from schemas.results import Incident
from streams.report import latest, revisions

RANKS = 8
STUCK = 5


def standing(*, keep: Callable[[int | None, Event], bool] = lambda rank, event: True) -> Script:
    """Thirty iterations, then all wait in a collective; ``keep`` says of a rank's event whether it is sent."""
    script = Script("standing")
    script.start(RANKS)
    script.train(RANKS, 1, 30)
    script.alive(RANKS, 0, 70)
    script.stacks(RANKS, range(35, 70, 5), RANKS)
    script.observations = [one for one in script.observations if keep(one.identity.rank, one.event)]
    return script


def found(script: Script) -> Incident:
    log = written_log(script.recording)
    run(log)
    (one,) = latest(revisions(log))
    return one


def said(one: Incident) -> tuple[str, list[tuple[int | None, str]]]:
    return one.verdict, [(suspect.rank, suspect.kind) for suspect in one.suspects]


def evidence(one: Incident) -> str:
    return "; ".join(piece.text for piece in one.evidence)


def test_a_process_that_is_gone_from_its_node_has_left_early() -> None:
    script = standing(keep=lambda rank, event: rank != STUCK or event.time < at(30.9))
    script.observations = [one for one in script.observations if not isinstance(one.event, Heartbeat)]
    for second in range(1, 70, 4):
        for node in sorted({node_of(rank) for rank in range(RANKS)}):
            seen = [
                pid_of(rank) for rank in range(RANKS) if node_of(rank) == node and (rank, second > 30) != (STUCK, True)
            ]
            script.send(agent(script.job, node), Heartbeat(time=at(second + 0.4), pids=seen))
    assert said(found(script)) == ("supported", [(STUCK, "early_exit")])


def test_where_its_node_still_sees_it_a_rank_that_could_not_be_sampled_is_told_and_not_named() -> None:
    one = found(standing(keep=lambda rank, event: rank != STUCK or not isinstance(event, Stack)))
    assert (said(one), one.unobserved.ranks) == (("ambiguous", []), "5")
    assert "rank 5 could not be sampled; all 7 others wait in communication" in evidence(one)


def test_why_it_could_not_be_sampled_is_told() -> None:
    script = standing(keep=lambda rank, event: rank != STUCK or not isinstance(event, Stack))
    failed = Stack(
        time=at(50), process_type="trainer", pid=pid_of(STUCK), thread="", frames=[], failure="permission denied"
    )
    script.send(worker(script.job, STUCK), failed)
    assert "rank 5 could not be sampled (permission denied); all 7 others" in evidence(found(script))


def test_a_process_that_a_signal_has_stopped_is_named_though_it_was_waiting_by_then() -> None:
    script = standing()
    for second in range(20, 70):
        for rank in range(RANKS):
            states = {"process_running": 0.0} | ({"process_stopped": 1.0} if rank == STUCK and second > 30 else {})
            for name, value in states.items():
                script.send(
                    worker(script.job, rank), Metric(time=at(second + 0.3), name=name, value=value, pid=pid_of(rank))
                )
    assert said(found(script)) == ("supported", [(STUCK, "blocker")])


@pytest.mark.parametrize(
    ("absent", "text"), [((), "communication hang: all ranks"), ((3,), "no dump shows whether rank 3 came")]
)
def test_a_collective_that_all_have_joined_is_told_with_its_group(absent: tuple[int, ...], text: str) -> None:
    script = standing()
    for rank in range(RANKS):
        if rank not in absent:
            one = Collective(
                time=at(55),
                group="default_pg:0-7",
                ranks=list(range(RANKS)),
                sequence=31,
                operation="all_reduce",
                state="enqueued",
                created=at(30.8),
            )
            script.send(worker(script.job, rank), one)
    one_found = found(script)
    assert said(one_found) == ("ambiguous", [])
    assert text in evidence(one_found) and "all_reduce 31 of group default_pg:0-7" in evidence(one_found)
    assert one_found.area == ("unknown" if absent else "network")


@pytest.mark.parametrize(
    ("captured", "created", "missing"),
    [(55, 30.8, True), (630, 30.8, True), (630, 629.5, False)],
    ids=["soon", "after a timeout", "of a job that goes on"],
)
def test_dumps_that_come_last_are_judged(captured: float, created: float, missing: bool) -> None:
    script = standing(keep=lambda rank, event: isinstance(event, Log) and event.time < at(32))
    for rank in range(RANKS):
        one = Collective(
            time=at(captured),
            group="default_pg:0-7",
            ranks=list(range(RANKS)),
            sequence=30 if rank == STUCK else 31,
            operation="all_reduce",
            state="completed" if rank == STUCK else "enqueued",
            created=at(created),
        )
        script.send(worker(script.job, rank), one)
    log = written_log(script.recording)
    run(log)
    incidents = latest(revisions(log))
    assert ["rank 5 never enqueued all_reduce 31" in evidence(one) for one in incidents] == [True] * missing


def test_who_still_prints_is_not_named_though_its_stack_stands_still() -> None:
    """A rank that prints on its own, and was seen outside at one place, may only have long work to do."""
    script = standing(keep=lambda rank, event: rank != STUCK or not isinstance(event, Stack))
    for second in range(35, 70, 5):
        frames = [*WAITING[:2], WAITING[1]]
        sample = Stack(time=at(second), process_type="trainer", pid=pid_of(STUCK), thread="MainThread", frames=frames)
        script.send(worker(script.job, STUCK), sample)
        script.send(worker(script.job, STUCK), Log(time=at(second + 1), stream="stdout", text="indexed another shard"))
    assert said(found(script)) == ("ambiguous", [])


def sampled_seldom(every: int, phase: Callable[[int], int], gone: int | None = None) -> Incident:
    """All wait in a collective; each rank is sampled so often (s) from its phase on, a heartbeat a node and round."""
    script = standing(keep=lambda rank, event: not isinstance(event, Metric | Heartbeat | Stack))
    for second in range(200):
        for node in sorted({node_of(rank) for rank in range(RANKS)}):
            due = [rank for rank in range(RANKS) if node_of(rank) == node and (second - phase(rank)) % every == 0]
            due = [rank for rank in due if rank != gone or second < 31]
            for rank in due:
                use = Metric(time=at(second + 0.3), name="cpu_percent", value=95.0, pid=pid_of(rank))
                script.send(worker(script.job, rank), use)
            if due:
                script.send(
                    agent(script.job, node), Heartbeat(time=at(second + 0.4), pids=[pid_of(one) for one in due])
                )
    script.stacks(RANKS, [70], RANKS)
    script.observations = [
        one for one in script.observations if one.identity.rank != gone or gone is None or one.event.time < at(31)
    ]
    return found(script)


@pytest.mark.parametrize("every", [5, 15, 30, 60])
@pytest.mark.parametrize("apart", [0, 4, 25])
def test_who_is_sampled_seldom_or_at_another_time_than_others_is_not_gone(every: int, apart: int) -> None:
    one = sampled_seldom(every, lambda rank: (20 if rank == STUCK else 20 + apart) % every)
    assert said(one) == ("ambiguous", [])
    assert "gone from its node" not in evidence(one) and "without a sign of life" not in evidence(one)


def test_who_is_gone_from_the_rounds_of_its_node_is_named_at_its_nodes_pace() -> None:
    assert said(sampled_seldom(10, lambda rank: 4, gone=STUCK)) == ("supported", [(STUCK, "early_exit")])
    assert said(sampled_seldom(60, lambda rank: 4, gone=STUCK)) == ("ambiguous", [])
