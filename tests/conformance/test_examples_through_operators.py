"""Every golden example goes through every operator that takes it: stages, sink, report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from rankwatch.terminal import console
from rankwatch.text import headline, print_incident
from schemas.codec import decode, encode, headers
from schemas.events import Batch, Tick
from schemas.fleet import FleetReport
from schemas.results import DeadLetter, Progress, Window
from schemas.topics import RAW_KINDS, RAW_TOPICS, STAMPED
from sinks.rows import blocks_of, dead_letter_block
from streams.config import SECOND, StreamConfig
from streams.driver import Driver
from streams.log.memory import MemoryLog
from streams.report import as_json

EXAMPLES = Path(__file__).resolve().parents[2] / "schemas" / "examples"
CONFIG = StreamConfig()
DERIVED = (
    "window",
    "late",
    "template",
    "library",
    "anomaly",
    "merged_stacks",
    "incident",
    "node_history",
    "meta",
    "silence",
    "comparison",
)


def versions(kind: str) -> list[Path]:
    return sorted((EXAMPLES / kind).glob("v*.json"))


def example(path: Path) -> Any:
    return decode(path.parent.name, path.read_bytes())


def every(kinds: tuple[str, ...] | list[str]) -> list[Path]:
    return [path for kind in kinds for path in versions(kind)]


def name(path: Path) -> str:
    return f"{path.parent.name}-{path.stem}"


def tick_all(log: MemoryLog, time: int) -> None:
    for topic in RAW_TOPICS:
        for partition in range(log.partitions(topic)):
            log.append(topic, b"", encode(Tick(time=time)), headers("tick"), time, partition)


def records(log: MemoryLog, topic: str) -> list[Any]:
    found = []
    for partition in range(log.partitions(topic)):
        entries = log.read(topic, partition, 0, log.end(topic, partition))
        found += [decode(entry.headers["schema"], entry.value) for entry in entries]
    return found


@pytest.mark.parametrize("path", every(list(RAW_KINDS.values())), ids=name)
def test_a_raw_example_becomes_a_window_and_stamped_events(path: Path) -> None:
    kind, batch = path.parent.name, example(path)
    topic = next(topic for topic, of in RAW_KINDS.items() if of == kind)
    log = MemoryLog(2)
    first = min(event.time for event in batch.events)
    last = max(event.time for event in batch.events)
    log.append(topic, batch.identity.key.encode(), encode(batch), headers(kind), last)
    for time in range(first, last + CONFIG.closing_ns + SECOND, SECOND):
        tick_all(log, time)
    tick_all(log, last + CONFIG.closing_ns)
    Driver(log, CONFIG).run()
    assert records(log, "dead-letters") == [] and records(log, "late") == []
    windows = [one for one in records(log, "windows") if isinstance(one, Window)]
    assert {window.identity.worker for window in windows} == {batch.identity.worker}
    if kind in STAMPED:
        stamped: list[Batch[Any]] = records(log, STAMPED[kind])
        assert sum(len(one.events) for one in stamped) == len(batch.events)
        for one in stamped:
            assert blocks_of(kind, one, "run", last)


@pytest.mark.parametrize("path", every(["window"]), ids=name)
def test_a_window_example_goes_through_the_job_stage(path: Path) -> None:
    window: Window = example(path)
    log = MemoryLog(1)
    log.append("windows", window.identity.job.encode(), encode(window), headers("window"), window.end)
    end = window.end - window.end % CONFIG.window_ns
    for step in range(4):
        progress = Progress(partition=0, end=end + step * CONFIG.window_ns)
        log.append("windows", b"", encode(progress), headers("progress"), progress.end, 0)
    Driver(log, CONFIG).run()
    assert records(log, "dead-letters") == []
    assert {template.job for template in records(log, "templates")} == {window.identity.job}


@pytest.mark.parametrize("path", every(["fleet_report"]), ids=name)
def test_reports_like_the_example_go_through_the_fleet_stage(path: Path) -> None:
    report: FleetReport = example(path)
    log = MemoryLog(1)
    for job in ("run-11", "run-12"):
        one = msgspec.structs.replace(report, job=job, id=job)
        log.append("fleet", one.cluster.encode(), encode(one), headers("fleet_report"), one.end)
    log.append("fleet", b"", encode(Progress(partition=0, end=report.end)), headers("progress"), report.end, 0)
    Driver(log, CONFIG).run()
    assert records(log, "dead-letters") == []
    (whole,) = records(log, "incidents")
    assert [member.job for member in whole.members] == ["run-11", "run-12"]
    assert [one.node for one in records(log, "node.history")] == ["node02"]


@pytest.mark.parametrize("path", every(list(DERIVED)), ids=name)
def test_a_derived_example_becomes_rows(path: Path) -> None:
    blocks = blocks_of(path.parent.name, example(path), "run", 1)
    assert blocks and all(block.rows for block in blocks)


@pytest.mark.parametrize("path", every(["dead_letter"]), ids=name)
def test_a_dead_letter_example_becomes_a_row(path: Path) -> None:
    letter: DeadLetter = example(path)
    assert dead_letter_block(letter, "run", 1).rows == 1


@pytest.mark.parametrize("path", every(["incident"]), ids=name)
def test_an_incident_example_is_shown(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    incident = example(path)
    shown = as_json(incident)
    assert shown["id"] == incident.id and shown["suspects"]
    assert incident.summary in headline(incident).plain
    assert [one["text"] for one in shown["stacks"]] == [one.text for one in incident.stacks]
    print_incident(console(), incident)
    printed = capsys.readouterr().out
    assert all(words in printed for words in (incident.next_step, *(one.text for one in incident.stacks)))


def test_every_kind_is_taken_by_some_operator() -> None:
    here = {*RAW_KINDS.values(), *DERIVED, "dead_letter", "progress", "tick", "fleet_report"}
    elsewhere = {"notice", "snapshot", "deployment"}
    assert {path.name for path in EXAMPLES.iterdir()} == here | elsewhere
