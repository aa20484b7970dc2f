"""Recorded alarms: which files are such, what they say of place and time, and what is left aside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from producers.recording import Recording, read_recording
from schemas.events import Alert

STARTS = [
    {"rank": r, "local_rank": r % 2, "node": f"node0{r // 2}", "pid": 10 + r, "ts": 1764417600 + r} for r in range(4)
]
DAY = "2025-11-29T"


def listed(name: str, since: str, until: str | None = None, *, status: Any = None, **labels: str) -> dict[str, Any]:
    fields: dict[str, Any] = {"labels": {"alertname": name, "severity": "critical", **labels}, "startsAt": DAY + since}
    fields["annotations"] = {"summary": f"{name} fires"}
    if until is not None:
        fields["endsAt"] = until if "T" in until else DAY + until
    return fields if status is None else fields | {"status": status}


def sent(*alerts: dict[str, Any]) -> dict[str, Any]:
    return {"version": "4", "status": "firing", "receiver": "oncall", "alerts": list(alerts)}


def of_object(kind: str, name: str, when: str | None = "12:00:02Z") -> dict[str, Any]:
    told = {
        "kind": "Event",
        "involvedObject": {"kind": kind, "name": name},
        "reason": "NodeNotReady",
        "type": "Warning",
    }
    return told | {"message": "node is not ready", "lastTimestamp": None if when is None else DAY + when}


def event(second: int, message: str, **metadata: str) -> dict[str, Any]:
    told = {"id": str(second), "source": "system", "type": "alert", "job_id": "", "severity": 2, "metadata": metadata}
    return told | {"message": message, "timestamp": (1764417600 + second) * 1000}


def plain(time: Any, **fields: str) -> dict[str, Any]:
    return {"time": time, "name": "link_down", "text": "port 7 is down", "severity": "major"} | fields


def read(tmp_path: Path, text: str | bytes, starts: list[dict[str, Any]] = STARTS) -> Recording:
    (tmp_path / "pids.jsonl").write_text("\n".join(json.dumps(one) for one in starts))
    (tmp_path / "told").write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_recording(tmp_path)


def found(recording: Recording) -> list[tuple[str, str, str, float]]:
    """Node, name, status and second of each alarm."""
    return [
        (arrival.batch.identity.node, one.name, one.status, (one.time - 1764417600 * 10**9) / 1e9)
        for arrival in recording.arrivals
        for one in arrival.batch.events
        if isinstance(one, Alert)
    ]


def notes(recording: Recording) -> dict[str, int]:
    return {note.reason: note.count for note in recording.inputs.unused}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([listed("GpuXid", "12:00:02Z", instance="node01:9400")]),
        json.dumps([listed("GpuXid", "12:00:02Z", instance="node01:9400")], indent=2),
        json.dumps(listed("GpuXid", "12:00:02Z", instance="node01.cluster.local:9400")),
        json.dumps(sent(listed("GpuXid", "12:00:02Z", status="firing", node="node01"))),
        json.dumps(sent(listed("GpuXid", "12:00:02Z", status="firing", node="node01")), indent=2),
        json.dumps(sent(listed("GpuXid", "13:00:02+01:00", status="firing", Hostname="node01"))) + "\n",
        json.dumps([listed("GpuXid", "12:00:02Z", "12:05:02Z", status={"state": "active"}, node="node01")]),
    ],
)
def test_alarms_of_an_alert_manager_are_told_by_their_content(tmp_path: Path, text: str) -> None:
    assert found(read(tmp_path, text)) == [("node01", "GpuXid", "firing", 2.0)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (json.dumps({"events": [event(2, "disk of node01 is full")]}, indent=2), ("node01", "alert", "", 2.0)),
        (json.dumps({"events": [event(2, "full", node="node01")]}), ("node01", "alert", "", 2.0)),
        (json.dumps(of_object("Node", "node01")), ("node01", "NodeNotReady", "", 2.0)),
        (
            json.dumps({"kind": "List", "items": [of_object("Pod", "p"), of_object("Node", "node01")]}, indent=2),
            ("node01", "NodeNotReady", "", 2.0),
        ),
        (json.dumps(plain(1764417602, switch="leaf3")), ("", "link_down", "", 2.0)),
        (json.dumps(plain("2025-11-29T12:00:02Z", node="node00")), ("node00", "link_down", "", 2.0)),
        (json.dumps(plain(1764417602000, storage="scratch", status="firing")), ("", "link_down", "firing", 2.0)),
    ],
)
def test_so_are_events_of_an_agent_and_rows_of_ones_own(tmp_path: Path, text: str, expected: Any) -> None:
    assert found(read(tmp_path, text)) == [expected]


def test_one_that_was_resolved_is_told_twice_and_one_that_was_sent_again_once(tmp_path: Path) -> None:
    alarms = [
        listed("Warm", "12:00:01Z", "12:00:02Z", node="node00", status="resolved"),
        listed("Warm", "12:00:01Z", "0001-01-01T00:00:00Z", node="node00", status="firing"),
        listed("Lapsed", "12:00:01Z", "12:00:01.5Z", node="node01"),
        listed("Lapsed", "12:00:01Z", "12:00:02.5Z", node="node01"),
    ]
    assert found(read(tmp_path, json.dumps(alarms))) == [
        ("node00", "Warm", "firing", 1.0),
        ("node01", "Lapsed", "firing", 1.0),
        ("node00", "Warm", "resolved", 2.0),
        ("node01", "Lapsed", "resolved", 2.5),
    ]


def test_an_alarm_makes_no_recording_longer(tmp_path: Path) -> None:
    recording = read(tmp_path, json.dumps([listed("Fires", "12:00:01Z", "2025-12-01T00:00:00Z", node="node00")]))
    assert found(recording) == [("node00", "Fires", "firing", 1.0)]
    assert recording.span[1] == (1764417600 + 3) * 10**9


def test_alarms_alone_are_read(tmp_path: Path) -> None:
    assert len(found(read(tmp_path, json.dumps(plain(1764417602, node="node00")), starts=[]))) == 1


def test_what_fires_since_before_the_recording_stands_at_its_beginning(tmp_path: Path) -> None:
    recording = read(tmp_path, json.dumps([listed("Old", "09:00:00Z", node="node00")]))
    assert found(recording) == [("node00", "Old", "firing", 0.0)]
    (told,) = [one for a in recording.arrivals for one in a.batch.events if isinstance(one, Alert)]
    assert told.since == (1764417600 - 3 * 3600) * 10**9


@pytest.mark.parametrize(
    ("alarm", "reason"),
    [
        (listed("Nowhere", "12:00:01Z"), "an alarm that names no node, switch or storage"),
        (listed("Over", "09:00:00Z", "10:00:00Z", node="node00"), "an alarm that was over before the recording begins"),
        (listed("Late", "13:00:00Z", node="node00"), "an alarm that began after the recording ends"),
        (listed("When", "yesterday", node="node00"), "startsAt is not a time between 2000 and 2100"),
        (7, "not a JSON object"),
        ({"labels": {}}, "not a row like the others of this file"),
    ],
)
def test_what_is_none_of_the_recording_is_noted(tmp_path: Path, alarm: Any, reason: str) -> None:
    recording = read(tmp_path, json.dumps([listed("Fine", "12:00:01Z", node="node00"), alarm, alarm]))
    assert [name for _, name, _, _ in found(recording)] == ["Fine"]
    assert sum(count for note, count in notes(recording).items() if note == reason) in (1, 2)


def test_an_alarm_of_a_switch_is_told_to_each_job_and_one_of_a_node_to_those_that_run_there(tmp_path: Path) -> None:
    for number, job in enumerate(("run-7", "run-8")):
        folder = tmp_path / f"logs/node{number}/{job}_abcdefg{number}/attempt_0/0"
        folder.mkdir(parents=True)
        lines = [f"2025-11-29 12:00:{step:02d},000 iteration {step}/ 9 | lm loss: 2.0 |" for step in range(1, 6)]
        (folder / "stdout.log").write_text("\n".join(lines) + "\n")
    alarms = [plain(1764417602, switch="leaf3"), plain(1764417602, node="node1", name="fan")]
    recording = read(tmp_path, "\n".join(map(json.dumps, alarms)), starts=[])
    told = [
        (a.batch.identity.job, one.name) for a in recording.arrivals for one in a.batch.events if isinstance(one, Alert)
    ]
    assert sorted(told) == [("run-7", "link_down"), ("run-8", "fan"), ("run-8", "link_down")]


@pytest.mark.parametrize(
    "text",
    [
        b"[" + b'{"labels":' * 3000,
        b'{"events": [\n{"a": 1}\n]}',
        json.dumps({"items": [of_object("Node", "node00", None), 7, {"involvedObject": 1}]}).encode(),
        json.dumps({"involvedObject": [], "reason": {}, "type": 3}).encode(),
        b'{"alerts": [{"labels": 3}],\n "status": "firing", "receiver": "x"}',
        b'{"labels": {"alertname": {"a": []}}, "startsAt": 1e999}',
        json.dumps(listed("\x1b[31m\ud800", "12:00:01Z", node="\x00")).encode(),
    ],
)
def test_hostile_files_raise_nothing(tmp_path: Path, text: bytes) -> None:
    read(tmp_path, text)


def test_samples_and_logs_are_no_alarms(tmp_path: Path) -> None:
    rows = [{"time": 1764417602, "name": "load", "text": "x", "severity": "info", "node": "node00", "value": 3}]
    assert found(read(tmp_path, json.dumps(rows))) == []
