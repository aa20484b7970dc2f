"""Nodes whose clocks show another zone."""

from __future__ import annotations

import pytest

from producers.grouping import Record
from producers.logfile import LogFile
from producers.readers.torchrun import Place
from producers.times import SECOND, Moment
from producers.zones import QUARTER, in_one_zone

START = 1_796_060_000 * SECOND


def log(node: str, ahead: int, *, first: int = 1, count: int = 8, wander: int = 0) -> tuple[Place, LogFile]:
    """Iterations of a second, printed so many ns ahead; each later than the one before by ``wander`` more."""
    iterations = range(first, first + count)
    moments = [Moment(START + ahead + at * (SECOND + wander)) for at in iterations]
    file = f"{node}/run_x/attempt_0/0/stdout.log"
    place = Place(run="run", parent=node, folder=node, attempt="0", local_rank=0, stream="stdout")
    return place, LogFile(file, [], [], list(moments), list(iterations))


def starts(logs: list[tuple[Place, LogFile]], anchor: int | None = START) -> tuple[list[float], list[str]]:
    moved, notes = in_one_zone(logs, anchor)
    first = [(one.moments[0].time - START) / SECOND for _, one in moved if one.moments and one.moments[0]]
    return first, [
        note.reason.partition(" others'")[0].removeprefix("times of this node's ranks are ") for note in notes
    ]


@pytest.mark.parametrize(
    ("ahead", "anchor", "first", "said"),
    [
        ([0, 0], START, [1, 1], []),
        ([0, 8 * QUARTER], START, [1, 1], ["2 h ahead of"]),
        ([-22 * QUARTER, 0], START, [1, 1], ["5 h 30 min behind"]),
        ([8 * QUARTER, 0, 8 * QUARTER], START, [7201, 7201, 7201], ["2 h behind"]),
        ([0, 8 * QUARTER], START + 8 * QUARTER, [7201, 7201], ["2 h behind"]),
        ([8 * QUARTER, 0], None, [7201, 7201], ["2 h behind"]),
        ([0, 600 * SECOND], START, [1, 601], []),
        ([0, 200 * QUARTER], START, [1, 180001], []),
    ],
)
def test_nodes_that_are_whole_quarters_apart_come_into_one_zone(
    ahead: list[int], anchor: int | None, first: list[float], said: list[str]
) -> None:
    logs = [log(f"node{at}", one) for at, one in enumerate(ahead)]
    assert starts(logs, anchor) == (first, said)


def test_what_reports_other_iterations_or_at_another_pace_stays() -> None:
    few = [log("node0", 0), log("node1", 8 * QUARTER, first=6)]
    assert starts(few) == ([1, 7206], [])
    pace = [log("node0", 0), log("node1", 8 * QUARTER, wander=5 * SECOND)]
    assert starts(pace) == ([1, 7206], [])


def test_all_times_of_a_node_move_but_those_of_an_envelope() -> None:
    place, one = log("node1", 4 * QUARTER)
    other = [Moment(START + 4 * QUARTER, "inferred"), Moment(START, "captured"), None]
    silent = LogFile("node1/run_x/attempt_0/0/stderr.log", [Record(1, 0, "")] * 3, [], list(other), [None] * 3)
    moved, _ = in_one_zone([log("node0", 0), (place, one), (place, silent)], START)
    assert moved[2][1].moments == [Moment(START, "inferred"), Moment(START, "captured"), None]


def test_runs_of_one_name_that_hold_the_same_ranks_are_no_nodes_of_one() -> None:
    logs = [log("none_a", 0), log("none_b", 8 * QUARTER)]
    for _, one in logs:
        one.records.append(Record(1, 0, "[rank3]: hello"))
    assert starts(logs) == ([1, 7201], [])
    logs[1][1].records[0] = Record(1, 0, "[rank4]: hello")
    assert starts(logs) == ([1, 1], ["2 h ahead of"])
