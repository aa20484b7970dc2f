"""Alarms of the platform in incidents: shown where they came before at its place, deciding nothing but a lost node."""

from __future__ import annotations

from typing import Any

import pytest
from detection_support import at as fixed_at
from streams_support import Script, at, hanging, records, slowing, steady, worker, written_log
from streams_support import run as through

from schemas.events import Alert, Topology
from schemas.identity import Identity
from schemas.results import Anomaly, Incident, Suspect
from streams.incidents.decision import Decision, Reason
from streams.incidents.hardware_beside import ALERT, ALERT_FIRES, ALERT_OVER, KEPT, beside, kept

DOWN = "error: Nodes node02 not responding, setting DOWN"


def alarmed(script: Script, node: str, second: float, **fields: Any) -> Script:
    who = Identity(job=script.job, node=node, rank_reason="alarm", process_type="platform")
    values: dict[str, Any] = {"name": "HostTooWarm", "text": "inlet at 41 C", "severity": "critical"}
    script.send(who, Alert(time=at(second), **(values | fields)))
    return script


def incidents(script: Script) -> list[Incident]:
    log = written_log(script.recording)
    through(log)
    latest = {one.id: one for one in sorted(records(log, "incidents"), key=lambda one: one.revision)}
    return list(latest.values())


def told(incident: Incident) -> list[str]:
    return [piece.text for piece in incident.evidence if piece.detector == "platform_alerts"]


@pytest.mark.parametrize(
    ("node", "second", "fields", "shown"),
    [
        ("node02", 25, {}, True),
        ("node02", 25, {"status": "firing"}, True),
        ("node01", 25, {}, False),
        ("node02", 45, {}, False),
        ("", 25, {"storage": "scratch"}, True),
    ],
    ids=["before", "fires", "another node", "after", "storage"],
)
def test_a_hang_shows_what_the_platform_told_before_at_its_place(
    node: str, second: float, fields: dict[str, Any], shown: bool
) -> None:
    bare = incidents(hanging())[0]
    (incident,) = incidents(alarmed(hanging(), node, second, **fields))
    assert bool(told(incident)) == shown
    assert (incident.suspects, incident.reason, incident.onset) == (bare.suspects, bare.reason, bare.onset)
    assert incident.severity == bare.severity


def test_what_was_resolved_before_is_not_shown() -> None:
    script = alarmed(hanging(), "node02", 12, status="firing")
    alarmed(script, "node02", 20, status="resolved", since=at(12))
    assert told(incidents(script)[0]) == []


def test_an_alarm_that_fires_and_an_attempt_that_begins_later_meet() -> None:
    script = hanging()
    script.observations = [one for one in script.observations if one.event.time >= at(0.2)]
    alarmed(script, "node02", 0.1, status="firing", since=at(-4000))
    (text,) = told(incidents(script)[0])
    assert text.startswith("node02: HostTooWarm")


def test_an_alarm_of_a_switch_stands_beside_those_under_it() -> None:
    def wired(leaf: str) -> Script:
        script = alarmed(hanging(), "", 25, switch=leaf, text="port 3 flaps")
        for number in range(4):
            who = Identity(job=script.job, node=f"node{number:02d}", rank_reason="topology", process_type="platform")
            script.send(who, Topology(time=at(0.5), pid=0, process_type="node", switch=f"s0.leaf{number // 2}"))
        return script

    assert told(incidents(wired("leaf1"))[0])[0].startswith("switch leaf1: ")
    assert told(incidents(wired("leaf0"))[0]) == []


def test_alarms_alone_open_nothing() -> None:
    script = steady(ranks=4, seconds=60)
    for second in range(5, 55):
        alarmed(script, "node01", second, name=f"A{second}")
    assert incidents(script) == []


def test_that_the_scheduler_lost_a_node_is_no_more_than_a_warning_while_the_job_goes_on() -> None:
    script = alarmed(steady(ranks=4, seconds=90), "node01", 30, source="slurm", text=DOWN.replace("02", "01"))
    (incident,) = incidents(script)
    assert (incident.suspects, incident.reason) == ([], Reason.SURVIVED.value)
    assert (incident.scope.kind, incident.scope.nodes) == ("node", ["node01"])


@pytest.mark.parametrize(("second", "opened"), [(24.5, True), (55, False)])
def test_a_lost_node_is_where_to_look_unless_its_ranks_had_vanished_before(second: float, opened: bool) -> None:
    script = steady(ranks=4, seconds=24)
    for rank in (0, 1):
        lost = f"[rank{rank}]: torch.distributed.DistBackendError: NCCL error: remote process exited"
        script.log(worker(script.job, rank), 26.0 + rank / 10, lost)
    found = incidents(alarmed(script, "node01", second, source="slurm", text=DOWN.replace("02", "01")))
    assert any(one.scope.nodes == ["node01"] for one in found) == opened
    assert [suspect.rank for one in found for suspect in one.suspects if suspect.rank in (0, 1)] == []


def test_the_fastest_ranks_node_does_not_explain_a_slow_one() -> None:
    (incident,) = incidents(alarmed(slowing(), "node00", 20))
    assert told(incident) == []
    (incident,) = incidents(alarmed(slowing(), "node01", 20))
    assert len(told(incident)) == 1


def finding(second: float, grounds: str = ALERT, **fields: Any) -> Anomaly:
    values: dict[str, Any] = {
        "id": f"{second}|{grounds}",
        "detector": "platform_alerts",
        "grounds": grounds,
        "severity": "info",
        "suspects": [Suspect(rank=None, node="n1", score=0.3, why="")],
        "onset": fixed_at(second),
        "metric": "Warm",
    }
    base = {"version": 1, "config": "", "job": "j", "attempt": "0", "axis": "time", "layer": "platform"}
    kind = {"symptom": "crash", "area": "hardware", "text": "", "start": 0, "end": fixed_at(second)}
    return Anomaly(**(base | kind | values | fields))


def decided(area: Any = "compute") -> Decision:
    return Decision(
        symptom="slowdown",
        area=area,
        verdict="supported",
        reason=Reason.SLOW_AND_CHANGED,
        onset=fixed_at(1000),
        iteration=None,
        suspects=[Suspect(rank=3, node="n1", score=1, why="")],
        victims=[],
    )


STORAGE = {"area": "data", "suspects": [Suspect(rank=None, node="", device="scratch", score=0.3, why="")]}


@pytest.mark.parametrize(
    ("known", "decision", "shown"),
    [
        ([finding(900)], decided(), 1),
        ([finding(390)], decided(), 0),
        ([finding(390, ALERT_FIRES)], decided(), 1),
        ([finding(390, ALERT_FIRES), finding(999, ALERT_OVER)], decided(), 0),
        ([finding(390, ALERT_FIRES), finding(1001, ALERT_OVER)], decided(), 1),
        ([finding(390, ALERT_FIRES), finding(999, ALERT_OVER, metric="Other")], decided(), 1),
        ([finding(995, ALERT_FIRES), finding(999, ALERT_OVER)], decided(), 0),
        ([finding(1003, ALERT_FIRES)], decided(), 0),
        ([finding(900, **STORAGE)], decided("data"), 1),
        ([finding(900, **STORAGE)], decided("compute"), 0),
        ([finding(900 + n) for n in range(9)], decided(), 3),
    ],
)
def test_which_alarms_stand_beside_an_incident(known: list[Anomaly], decision: Decision, shown: int) -> None:
    assert len(beside(known, [], decision, 2 * 10**9)) == shown


def test_a_storm_of_alarms_drives_no_change_of_hardware_out() -> None:
    change = finding(1, "hardware_change", detector="hardware_state")
    known: list[Anomaly] = [change]
    for n in range(200):
        known = kept(known, [finding(n)])
    assert known[0] is change
    assert len(known) == KEPT + 1
