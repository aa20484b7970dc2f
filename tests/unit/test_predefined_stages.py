"""Predefined templates through both stages: one id in every job, and only causes and cascades raise anything."""

from __future__ import annotations

from predefined_samples import LINES
from streams_support import Script, hanging, records, run, worker, written_log

from schemas.events import Event, Log
from schemas.results import Incident, Notice, Template, Window
from streams.config import StreamConfig
from streams.log.memory import MemoryLog
from streams.stages.worker import WorkerState, summarise

XID = "NVRM: Xid (PCI:0000:{}:00): {}, pid=7, name=python3, Ch 00000008"
BESIDE = [text for _, role, text, _ in LINES if role in ("confirmation", "advice")]


def through(script: Script) -> MemoryLog:
    log = written_log(script.recording)
    run(log)
    return log


def latest(log: MemoryLog) -> list[Incident]:
    return list({one.id: one for one in records(log, "incidents")}.values())


def judged(log: MemoryLog) -> list[object]:
    return [(one.reason, one.verdict, one.onset, one.suspects, one.victims, one.severity) for one in latest(log)]


def test_confirmations_and_advice_open_no_incident_and_send_no_notice() -> None:
    script = Script()
    script.start(4)
    script.train(4, 1, 40)
    script.alive(4, 0, 40)
    for at, text in enumerate(BESIDE):
        script.log(worker("job", 2), 10.1 + at / 4, text)
    log = through(script)
    assert latest(log) == []
    notices: list[Notice] = records(log, "notices")
    assert notices == []
    windows: list[Window] = records(log, "windows")
    assert any(count.predefined == "xid.45" for window in windows for count in window.signatures)
    assert not any(window.fatals for window in windows)


def test_confirmations_and_advice_change_nobody_whom_blame_names() -> None:
    quiet, loud = hanging(), hanging()
    for at, text in enumerate(BESIDE):
        loud.log(worker("hang", 3), 31.1 + at / 4, text)
    before, after = (judged(through(script)) for script in (quiet, loud))
    assert len(before) == 1
    assert before == after


def test_two_jobs_give_a_predefined_line_the_same_template_and_a_follower_goes_with_its_cause() -> None:
    ids = []
    for job, bus in (("one", "0f"), ("two", "9b")):
        script = Script(job)
        script.start(4)
        script.train(4, 1, 20)
        script.log(worker(job, 2), 21, XID.format(bus, 79))
        script.log(worker(job, 2), 22, XID.format(bus, 154))
        script.alive(4, 0, 40)
        log = through(script)
        templates: list[Template] = records(log, "templates")
        ids.append({one.id for one in templates if "." in one.id})
        fatals = [fatal for window in records(log, "windows") for fatal in window.fatals]
        assert [(one.template, one.values["followed_by"]) for one in fatals] == [("xid.79", "154")]
        assert [one.rule for one in records(log, "notices")] == ["gpu_hardware"]
    assert ids[0] == ids[1] == {"xid.79", "xid.154"}


def test_a_flood_of_other_lines_in_a_window_keeps_no_predefined_one_out() -> None:
    texts = ["hello", "good bye", XID.format("0f", 43), XID.format("0f", 63), XID.format("0f", 92)]
    lines: list[Event] = [Log(time=at, stream="stdout", text=text) for at, text in enumerate(texts)]
    summary, _ = summarise(worker("job", 0), WorkerState(), lines, 0, StreamConfig(signatures_per_window=1))
    assert {count.predefined or count.masked for count in summary.signatures} == {"hello", "xid.43"}
    assert summary.dropped == {"signatures": 3}
