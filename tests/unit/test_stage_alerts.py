"""Alarms in the stages: bounded in a window, remembered by a job, handed to attempts by their nodes."""

from __future__ import annotations

from typing import Any

import pytest
from detection_support import at, identity

from schemas.events import Alert, Job, Topology
from schemas.results import PlatformAlert
from streams.config import StreamConfig
from streams.stages.alarms import MOST_REMEMBERED, of_places, remembered, switches_of
from streams.stages.alerts import LONGEST_TEXT, MOST_EACH, Alerts, severity_of
from streams.stages.worker import LONGEST_SWITCH, WorkerState, summarise
from streams.switches import only_under, shared, under


def event(second: float = 1, **fields: Any) -> Alert:
    return Alert(**({"time": at(second), "name": "a", "text": "t"} | fields))


def told(second: float = 1, **fields: Any) -> PlatformAlert:
    return PlatformAlert(**({"time": at(second), "since": at(second), "name": "a", "text": "t"} | fields))


def test_a_storm_of_alarms_stays_one_record_and_drives_out_no_critical_one() -> None:
    alerts = Alerts()
    for n in range(10_000):
        alerts.add(event(n / 2000, name=f"a{n}", severity="warning"))
    alerts.add(event(9, severity="PAGE", text="\x1b[31mgone\n" + "x" * 10_000))
    assert len(alerts.kept) == MOST_EACH + 1
    assert alerts.left_out == 10_000 - MOST_EACH
    last = alerts.kept[-1]
    assert (last.severity, len(last.text), last.text.isprintable()) == ("critical", LONGEST_TEXT, True)


def test_what_is_told_again_is_counted() -> None:
    alerts = Alerts()
    for second in (1, 2, 3):
        alerts.add(event(second, status="firing", since=at(1), text=f"{second} errors"))
        alerts.add(event(second, text="the same"))
    assert [(one.status, one.count, one.since) for one in alerts.kept] == [("", 3, at(1)), ("firing", 3, at(1))]


def test_a_device_has_the_form_that_all_sources_share() -> None:
    alerts = Alerts()
    alerts.add(event(device="00000000:9B:00.0"))
    assert alerts.kept[0].device == "0000:9b:00.0"


@pytest.mark.parametrize(
    ("word", "severity"),
    [("page", "critical"), (" Critical", "critical"), ("major", "warning"), ("3", "info"), ("", "info")],
)
def test_words_for_severities(word: str, severity: str) -> None:
    assert severity_of(word) == severity


def test_alarms_are_remembered_while_they_fire_or_are_of_late() -> None:
    old, fires = ("n1", told(1)), ("n1", told(1, status="firing", name="f"))
    over = ("n1", told(50, status="resolved", name="f", since=at(1)))
    assert remembered([old, fires], [], at(40)) == [fires]
    assert remembered([fires], [over], at(40)) == [over]
    assert remembered([], [], at(40)) == []
    many = [("n1", told(n, name=f"a{n}")) for n in range(1000)]
    assert remembered(many, [], 0) == many[-MOST_REMEMBERED:]


def test_alarms_go_to_those_who_run_on_their_node() -> None:
    known = [("n1", told()), ("n2", told()), ("", told(switch="leaf"))]
    assert of_places(known, {"n1", ""}) == [known[0], known[2]]
    assert of_places(known, None) == known
    assert of_places(known, set()) == []


def test_the_latest_word_on_a_nodes_switch_counts_and_there_is_a_bound() -> None:
    assert switches_of([("a", "s.1"), ("a", "s.2"), ("c", "s.3")], {"b": "s.1"}, 2) == {"a": "s.2", "b": "s.1"}


@pytest.mark.parametrize(
    ("path", "switch", "hangs"),
    [
        ("s0.leaf3", "leaf3", True),
        ("s0.leaf3", "s0", True),
        ("s0.leaf3", "s0.leaf3", True),
        ("core.s0.leaf3", "s0.leaf3", True),
        ("s0.leaf3", "leaf", False),
        ("s0.leaf3", "s1.leaf3", False),
        ("", "leaf3", False),
        ("s0.leaf3", "", False),
    ],
)
def test_what_hangs_under_a_switch(path: str, switch: str, hangs: bool) -> None:
    assert under(path, switch) == hangs


TREE = {"a": "s0.l1", "b": "s0.l1", "c": "s0.l2", "d": "s0.l2", "e": "s1.l3"}


@pytest.mark.parametrize(
    ("nodes", "among", "switch"),
    [
        ("ab", "abcd", "s0.l1"),
        ("abcd", "abcde", "s0"),
        ("ac", "abcde", ""),
        ("ac", "ace", "s0"),
        ("a", "acd", ""),
        ("abcd", "abcd", ""),
        ("ab", "abcdx", ""),
        ("ae", "abcde", ""),
    ],
)
def test_nodes_share_a_switch_where_no_other_hangs_under_it(nodes: str, among: str, switch: str) -> None:
    assert only_under(TREE, nodes, among) == switch


def test_a_jobs_environment_and_a_nodes_topology_tell_its_switch() -> None:
    job = Job(time=at(1), environment={"SLURM_TOPOLOGY_ADDR": "s0.leaf3.node01"})
    topology = Topology(time=at(1), pid=0, process_type="node", switch="s1." + "x" * 1000)
    found, _ = summarise(identity(None, node="node01"), WorkerState(), [job], 0, StreamConfig())
    assert (found.switch, found.announced) == ("s0.leaf3", [])
    found, _ = summarise(identity(None, node="node01"), WorkerState(), [topology, event()], 0, StreamConfig())
    assert (len(found.switch), found.announced, len(found.alerts)) == (LONGEST_SWITCH, [], 1)


def test_no_nodes_share_no_switch() -> None:
    assert shared([]) == ""
