"""An incident says whose times were corrected, where that is its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from detection_support import at, closed, identity, new_view, summary
from streams_support import records, run, written_log

from producers.recording import read_recording
from schemas.events import Topology
from schemas.results import Scope
from streams.incidents.clocks import said_clocks
from streams.incidents.decision import Decision, Reason

HOUR = 3_600 * 10**9
DECIDED = Decision(
    symptom="hang",
    area="unknown",
    verdict="ambiguous",
    reason=Reason.NOBODY_APART,
    onset=at(5),
    iteration=None,
    suspects=[],
    victims=[],
)
JOB = Scope(kind="job", name="j")


def of(scope: Scope, *, ahead: float = 0, **shifts: int) -> list[str]:
    view = new_view()
    late: dict[int, dict[str, Any]] = {rank: {"dropped": {"retimed": 3}} for rank in (2, 3)} if ahead else {}
    told = [summary(rank, shifted_ns=shifts.get(identity(rank).node, 0), **late.get(rank, {})) for rank in range(8)]
    view.update(closed(told))
    return said_clocks(view, DECIDED, scope)


@pytest.mark.parametrize(
    ("scope", "shifts", "said"),
    [
        (JOB, {}, []),
        (
            JOB,
            {"node01": HOUR},
            ["times of node01 were set back by 1 h: the clock there shows another zone than others'"],
        ),
        (
            Scope(kind="node", name="node01", nodes=["node01"], ranks="2-3"),
            {"node01": -HOUR * 11 // 2, "node02": HOUR},
            ["times of node01 were set forward by 5 h 30 min: the clock there shows another zone than others'"],
        ),
        (Scope(kind="node", name="node03", nodes=["node03"], ranks="6-7"), {"node01": HOUR}, []),
    ],
)
def test_a_zone_that_was_corrected_is_said(scope: Scope, shifts: dict[str, int], said: list[str]) -> None:
    assert of(scope, **shifts) == said


@pytest.mark.parametrize(("ranks", "said"), [("", True), ("2", True), ("6", False)])
def test_times_that_were_not_believed_are_said(ranks: str, said: bool) -> None:
    found = of(Scope(kind="rank", name="r", ranks=ranks), ahead=1)
    assert bool(found) == said
    assert all("ran ahead" in one and "less exact" in one for one in found)


def test_a_node_in_another_zone_is_told_on_the_way(tmp_path: Path) -> None:
    starts = []
    for rank, hour in enumerate((12, 12, 14)):
        folder = tmp_path / f"logs/node{rank}/run-7_abcdefg{rank}/attempt_0/0"
        folder.mkdir(parents=True)
        lines = [f"2025-11-29 {hour}:00:{step:02d},000 iteration {step}/ 500 | lm loss: 2.0 |" for step in range(1, 31)]
        (folder / "stdout.log").write_text("\n".join(lines) + "\n")
        starts.append({"rank": rank, "local_rank": 0, "node": f"node{rank}", "pid": 10 + rank, "ts": 1764417600})
    (tmp_path / "pids.jsonl").write_text("\n".join(map(json.dumps, starts)))
    recording = read_recording(tmp_path)
    told = [
        (arrival.batch.identity.rank, one.shifted_ns, one.time)
        for arrival in recording.arrivals
        for one in arrival.batch.events
        if isinstance(one, Topology) and one.shifted_ns
    ]
    assert told == [(2, 2 * HOUR, 1_764_417_601 * 10**9)]
    log = written_log(recording)
    run(log)
    assert {one.identity.rank: one.shifted_ns for one in records(log, "windows") if one.shifted_ns} == {2: 2 * HOUR}
    assert [one.announced for one in records(log, "windows") if one.shifted_ns] == [[(12, "trainer")]]
