"""Who was told to end, and when that means the attempt: every decision with its reason."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from detection_support import at, closed, ended, known_fatal, summary, traceback

from schemas.identity import MOST_RANKS
from schemas.results import Exit, Fatal, Stop
from streams.bounds import MOST_NODES
from streams.stops import FAILED_NS, Lives, Stops, Why, alone, bound, decided, take

ALL = frozenset(range(4))
FOUR = ["a", "b", "c", "d"]
OWN = traceback("ValueError: negative length")
LOST = "RuntimeError: Connection closed by peer [10.0.0.1]:4711"


def told(**nodes: float) -> dict[str, int]:
    return {node: at(second) for node, second in nodes.items()}


def ranks(*seconds: float) -> dict[int, int]:
    return {rank: at(second) for rank, second in enumerate(seconds)}


TABLE: list[tuple[str, dict[str, Any], dict[str, Any], float | None, Why]] = [
    ("nobody", {}, {}, None, Why.NOBODY),
    ("the job", {"job": at(7), "agents": told(a=9), "launchers": FOUR}, {}, 7, Why.JOB),
    ("the job, after its agents", {"job": at(7), "agents": told(a=5)}, {}, 5, Why.AGENTS),
    (
        "the job, long after one agent",
        {"job": at(80), "agents": told(a=3), "launchers": FOUR},
        {"now": at(90), "by_node": {"b": at(60)}},
        80,
        Why.JOB,
    ),
    ("its step", {"step": at(7)}, {}, 7, Why.STEP),
    ("all ranks", {"ranks": ranks(3, 4, 5, 6)}, {}, 3, Why.RANKS),
    ("all ranks, one by one", {"ranks": ranks(3, 40, 80, 120)}, {}, None, Why.SOME_RANKS),
    ("all but one rank", {"ranks": ranks(3, 4, 5)}, {}, None, Why.SOME_RANKS),
    ("all ranks, by a signal to save", {"saving": ranks(3, 4, 5, 6)}, {}, 3, Why.SAVED),
    (
        "all ranks, one by a signal to save",
        {"ranks": {0: at(3), 1: at(4), 2: at(5)}, "saving": {3: at(6)}},
        {},
        3,
        Why.SAVED,
    ),
    ("some by a signal to save", {"saving": ranks(3, 4)}, {}, None, Why.SOME_RANKS),
    ("all ranks, and they take their time", {"ranks": ranks(3, 4, 5, 6)}, {"lived": at(180)}, 3, Why.RANKS),
    ("all ranks, and they live on", {"ranks": ranks(3, 4, 5, 6)}, {"lived": at(184)}, None, Why.OUTLIVED),
    ("the job, and it lives on", {"job": at(3)}, {"lived": at(184)}, None, Why.OUTLIVED),
    ("all agents, and ranks live on", {"agents": told(a=3)}, {"lived": at(184)}, None, Why.OUTLIVED),
    ("all ranks saved and live on", {"saving": ranks(3, 4, 5, 6)}, {"lived": at(64)}, None, Why.OUTLIVED),
    (
        "all ranks saved, and the job was ended later",
        {"saving": ranks(3, 4, 5, 6), "job": at(40)},
        {"lived": at(64)},
        40,
        Why.JOB,
    ),
    ("one rank", {"ranks": ranks(3)}, {}, None, Why.SOME_RANKS),
    ("all agents", {"agents": told(a=3, b=4, c=5, d=6), "launchers": FOUR}, {}, 3, Why.AGENTS),
    ("the only agent that is heard", {"agents": told(a=3), "launchers": ["a"]}, {}, 3, Why.AGENTS),
    ("an agent of whom nothing was heard before", {"agents": told(a=3)}, {}, 3, Why.AGENTS),
    ("most agents", {"agents": told(a=3, b=3, c=3), "launchers": FOUR}, {"now": at(90)}, 3, Why.MOST_AGENTS),
    ("one agent just now", {"agents": told(a=3), "launchers": FOUR}, {"now": at(10)}, 3, Why.NOT_YET),
    ("one agent, all silent since", {"agents": told(a=3), "launchers": FOUR}, {"now": at(90)}, 3, Why.SILENT),
    (
        "one agent, others live on",
        {"agents": told(a=3), "launchers": FOUR},
        {"now": at(90), "by_node": {"b": at(60)}},
        None,
        Why.ALONE,
    ),
    (
        "all but one agent, as a rank failed",
        {"agents": told(a=3, b=3, c=3), "launchers": FOUR, "own": [(at(2), at(2))]},
        {},
        None,
        Why.CRASHED,
    ),
    (
        "all agents, long after a rank failed",
        {"agents": told(a=30, b=30), "own": [(at(2), at(2))]},
        {},
        30,
        Why.AGENTS,
    ),
    (
        "agents one after another, the last just now",
        {"agents": told(a=3, b=33), "launchers": FOUR},
        {"now": at(60), "by_node": {"c": at(59)}},
        3,
        Why.NOT_YET,
    ),
    ("agents one after another", {"agents": told(a=3, b=33, c=63, d=93), "launchers": FOUR}, {}, 3, Why.AGENTS),
    (
        "agents one after another, and others live on",
        {"agents": told(a=3, b=33), "launchers": FOUR},
        {"now": at(80), "by_node": {"c": at(70)}},
        None,
        Why.ALONE,
    ),
    (
        "one agent, its own ranks live on",
        {"agents": told(a=3), "launchers": FOUR},
        {"now": at(90), "by_node": {"a": at(60), "b": at(3)}},
        3,
        Why.SILENT,
    ),
    (
        "one agent, others fail",
        {"agents": told(a=3), "launchers": FOUR},
        {"now": at(10), "failing": frozenset("b")},
        None,
        Why.ALONE,
    ),
    (
        "one agent, others much later",
        {"agents": told(a=3, b=70, c=71, d=72), "launchers": FOUR},
        {"now": at(90), "by_node": {"b": at(60)}},
        70,
        Why.AGENTS,
    ),
]


@pytest.mark.parametrize(("stops", "lives", "since", "why"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_an_attempt_is_stopped_where_all_of_it_was(
    stops: dict[str, Any], lives: dict[str, Any], since: float | None, why: Why
) -> None:
    found = decided(Stops(**stops), Lives(**{"now": at(10), "ranks": ALL, **lives}))
    assert found == (None if since is None else at(since), why)


def test_every_reason_is_reached() -> None:
    assert {row[4] for row in TABLE} == set(Why)


def test_who_was_told_alone_is_told_apart_from_those_who_were_told_later() -> None:
    stops = Stops(agents=told(a=3, b=70, c=71), launchers=["a", "b", "c"])
    assert alone(stops) == {"a": at(3)}
    assert alone(Stops(agents=told(a=3, b=4), launchers=["a", "b"])) == {}


def within(fatal: Fatal, seconds: float) -> Fatal:
    return msgspec.structs.replace(fatal, precision_ns=int(seconds * 1e9))


def taken(
    *,
    fatals: dict[int, list[Fatal]] | None = None,
    exits: dict[int, Exit] | None = None,
    words: list[Stop] | None = None,
    before: float | None = None,
) -> int | None:
    """Since when the step counts as ended, that is said to be at 10 s."""
    stops = Stops(failed=None if before is None else at(before))
    window = closed([summary(rank, fatals=found) for rank, found in (fatals or {}).items()])
    said = [("a", Stop(time=at(10), word="step")), *(("b", word) for word in words or [])]
    take(stops, window.summaries, said, list((exits or {}).items()), at(0))
    return stops.step


@pytest.mark.parametrize(
    ("given", "counts"),
    [
        ({}, True),
        ({"fatals": {1: [known_fatal(OWN, at(8))]}}, False),
        ({"fatals": {1: [known_fatal(OWN, at(10.5))]}}, True),
        ({"fatals": {1: [known_fatal(LOST, at(8))]}}, True),
        ({"fatals": {1: [known_fatal(LOST, at(3))]}}, False),
        ({"exits": {1: ended(3, 1)}}, False),
        ({"exits": {1: ended(9, 1)}}, False),
        ({"exits": {1: ended(10.5, 1)}}, True),
        ({"fatals": {1: [known_fatal(OWN, at(9.9))]}}, False),
        ({"fatals": {1: [within(known_fatal(OWN, at(12)), 3)]}}, False),
        ({"fatals": {1: [within(known_fatal(OWN, at(14)), 3)]}}, True),
        (
            {"fatals": {1: [known_fatal(OWN, at(9.9))]}, "exits": {1: ended(9.5, signal="SIGTERM", requested=True)}},
            True,
        ),
        ({"words": [Stop(time=at(9.9), word="task")]}, False),
        ({"words": [Stop(time=at(11), word="task")]}, True),
        ({"words": [Stop(time=at(9.5), word="node")]}, False),
        ({"words": [Stop(time=at(10.5), word="node")]}, False),
        ({"exits": {1: ended(3, -15, "SIGTERM")}}, True),
        ({"exits": {1: ended(3, signal="SIGTERM", requested=True)}}, True),
        ({"before": 6}, False),
        ({"before": 6 - FAILED_NS / 1e9}, True),
    ],
)
def test_a_step_that_is_ended_is_a_stop_only_where_nothing_had_failed(given: dict[str, Any], counts: bool) -> None:
    assert taken(**given) == (at(10) if counts else None)


def test_what_the_job_has_survived_does_not_count_against_a_stop() -> None:
    stops = Stops(failed=at(1))
    take(stops, [], [("a", Stop(time=at(100), word="step"))], [], at(60))
    assert stops.step == at(100)


def test_ranks_are_told_by_what_they_print_by_requests_and_by_their_ends() -> None:
    term = known_fatal(traceback("SignalException: Process 7 got signal: 15"), at(4))
    interrupt = known_fatal(traceback("KeyboardInterrupt"), at(5))
    stops = Stops()
    window = closed(
        [summary(0, fatals=[term]), summary(1, fatals=[interrupt]), summary(2, stops=[Stop(time=at(6), word="rank")])]
    )
    exits = [(3, ended(7, 143)), (4, ended(8, signal="SIGTERM", requested=True)), (5, ended(9, -9, "SIGKILL"))]
    take(stops, window.summaries, [], exits, None)
    assert stops.ranks == {rank: at(4 + rank) for rank in range(5)}
    assert stops.failed == at(9)


def test_words_without_a_time_may_have_been_said_earlier() -> None:
    stops = Stops()
    take(stops, [], [("a", Stop(time=at(4), precision_ns=3_000_000_000, word="job"))], [], None)
    take(stops, [], [("a", Stop(time=at(5), word="step"))], [], None)
    assert stops.loose == 3_000_000_000


def test_a_failure_that_is_heard_of_later_takes_a_steps_end_back() -> None:
    stops = Stops()
    take(stops, [], [("a", Stop(time=at(10), word="step"))], [], at(0))
    assert stops.step == at(10)
    take(stops, [], [("b", Stop(time=at(9.8), word="task"))], [], at(0))
    assert stops.step is None
    take(stops, [], [("b", Stop(time=at(99), word="job"))], [], at(0))
    take(stops, [], [("a", Stop(time=at(98), word="node"))], [], at(0))
    assert stops.job is None


def test_what_a_job_goes_on_after_is_forgotten() -> None:
    stops = Stops()
    for second in range(100):
        take(stops, [], [], [(1, ended(second, 1))], at(0))
    assert len(stops.own) == 32
    take(stops, [], [("a", Stop(time=at(200), word="step"))], [], at(150))
    assert stops.own == [] and stops.step == at(200)


def test_of_more_than_a_job_has_its_own_are_kept_and_then_those_that_were_told_first() -> None:
    invented = {MOST_RANKS + number: at(1) for number in range(MOST_RANKS)}
    nodes = {f"a{number}": at(number % 7) for number in range(MOST_NODES)}
    stops = Stops(agents={**nodes, "node00": at(99)}, ranks={**invented, 3: at(99)}, saving={**invented, 4: at(98)})
    bound(stops, ["node00"], range(8))
    assert [len(stops.ranks), len(stops.saving), len(stops.agents)] == [MOST_RANKS, MOST_RANKS, MOST_NODES]
    assert (stops.ranks[3], stops.saving[4], stops.agents["node00"]) == (at(99), at(98), at(99))
    assert set(nodes) - set(stops.agents) == {max(node for node, time in nodes.items() if time == at(6))}
    assert max(invented) not in stops.ranks
