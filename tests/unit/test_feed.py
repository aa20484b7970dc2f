"""The feed's lines: what is told, in which order, once; and that no text steers the terminal."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
import sink_support as support

from rankwatch.feed import Feed
from rankwatch.pulse import Pulse
from schemas.codec import encode, headers, kind_of
from schemas.ports import Entry
from schemas.results import Notice, Scope, Suspect
from streams.log.backlog import PAGE, backlog, ends_of
from streams.log.memory import MemoryLog
from streams.meta import BEAT_NS, beat
from streams.report import moment

TOPIC = {"incident": "incidents", "notice": "notices", "meta": "meta"}
T0 = support.T0
NOTICE = Notice(
    id="n",
    notification_key="n1",
    job="job1",
    attempt="0",
    time=T0,
    rule="exception",
    text="exception in job job1: attribution pending",
)
EVIL = "\x1b[2Jred\x07\nnext\u2028\u202etxt"


def entries(*records: Any) -> list[tuple[str, Entry]]:
    return [
        (TOPIC[kind_of(one)], Entry(offset, b"", encode(one), headers(kind_of(one)), 1))
        for offset, one in enumerate(records)
    ]


def shown(capsys: pytest.CaptureFixture[str], *polls: list[Any], as_json: bool = False) -> list[str]:
    feed = Feed(as_json=as_json, pulse=Pulse(1, 0))
    for records in polls:
        feed.show(entries(*records))
    return capsys.readouterr().out.splitlines()


def test_an_incident_says_what_where_since_when_who_how_sure_and_what_next(capsys: pytest.CaptureFixture[str]) -> None:
    one = support.incident(1, scope=Scope(kind="rank", name="rank 3", ranks="3", nodes=["node02"]), stacks=[])
    (line,) = shown(capsys, [one])
    parts = (
        f"{moment(one.published)}  CRITICAL  job job1: hang, area data; rank 3 on node02; since ",
        "after iteration 40, in train; suspect rank 3 ",
        "; victims ranks 0-2,4-6; unobserved rank 7; ",
        "supported: one_candidate; next: look at node02",
    )
    places = [line.index(part) for part in parts]
    assert places == sorted(places) and places[0] == 0
    assert line.endswith("  i1 revision 1")


def test_it_says_of_what_it_is_part_and_that_it_was_there_before(capsys: pytest.CaptureFixture[str]) -> None:
    why = "it proved to be part of another incident"
    over = {"status": "resolved", "severity": "info", "resolution": why, "merged_into": "i9"}
    lines = shown(capsys, [support.incident(1, recurs=2, stacks=[])], [support.incident(2, **over, stacks=[])])
    assert "; 2 earlier attempts had one like it; next: " in lines[0]
    assert f": {why}, i9]" in lines[1]


def test_a_notice_is_said_once_and_the_incident_says_that_it_adopts_it(capsys: pytest.CaptureFixture[str]) -> None:
    again = msgspec.structs.replace(NOTICE, id="n2", rule="collective_timeout", time=T0 + 1)
    plain = {"stacks": []}
    lines = shown(capsys, [NOTICE, again], [support.incident(1, **plain)], [support.incident(2, **plain), again])
    assert len(lines) == 3
    assert lines[0] == f"{moment(T0)}  NOTICE  exception in job job1: attribution pending"
    assert f"[adopts the early notice of {moment(T0)}]" in lines[1]
    assert "adopts" not in lines[2], "once"
    rows = [json.loads(line) for line in shown(capsys, [NOTICE], [support.incident(1)], as_json=True)]
    assert [row["kind"] for row in rows] == ["notice", "incident"]
    assert rows[1]["adopts"] == {"time": moment(T0), "rule": "exception", "id": "n"}
    assert rows[0]["notification_key"] == rows[1]["notification_key"]
    (row,) = [json.loads(line) for line in shown(capsys, [support.incident(1)], as_json=True)]
    assert row["adopts"] is None


def test_a_notice_that_nothing_followed_is_closed_by_the_time_of_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    beats = [beat(0, None, T0 + minute * BEAT_NS) for minute in (1, 2, 5, 6)]
    lines = shown(capsys, [NOTICE], *[[one] for one in beats])
    assert len(lines) == 2, "beats are for machines"
    assert lines[1] == (
        f"{moment(beats[2].time)}  NOTICE OVER  job job1: nothing that pages followed the early notice of "  # type: ignore[union-attr]
        f"{moment(T0)} (exception)"
    )
    rows = [json.loads(line) for line in shown(capsys, [NOTICE], *[[one] for one in beats], as_json=True)]
    assert [row["kind"] for row in rows] == ["notice", "meta", "meta", "meta", "notice_over", "meta"]


def test_what_is_read_together_is_told_in_order_of_time(capsys: pytest.CaptureFixture[str]) -> None:
    over = support.incident(2, status="resolved", resolution="iterations go on", stacks=[])
    again = msgspec.structs.replace(NOTICE, id="n2", time=over.published + 1)
    second = support.incident(1, id="i2", onset=again.time, published=again.time + 1, stacks=[])
    lines = shown(capsys, [second, again, over, support.incident(1, stacks=[]), NOTICE])
    assert [line.split("  ")[1] for line in lines] == ["NOTICE", "CRITICAL", "CRITICAL", "NOTICE", "CRITICAL"]
    assert [moment(T0) in lines[1], moment(again.time) in lines[4]] == [True, True], "each adopts its own"


def test_an_alert_about_the_pipeline_is_said_once_and_so_is_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    begun, over = support.meta_alert(), support.meta_alert(status="resolved", time=T0 + 20, text="it is right again")
    lines = shown(capsys, [begun, begun], [over, begun], [over])
    assert [line[len(moment(T0)) :].split("  m1")[0] for line in lines] == [
        "  WARNING  pipeline  skew  the clock of node02 runs ahead",
        "  OVER  pipeline  skew  it is right again",
    ]


def test_silence_of_the_pipeline_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    feed = Feed(as_json=False, pulse=Pulse(2, T0))
    for minute in (1, 4, 5, 6):
        feed.look(T0 + minute * BEAT_NS)
    (line,) = capsys.readouterr().out.splitlines()
    assert f"{moment(T0 + 5 * BEAT_NS)}  CRITICAL  pipeline  pipeline_silent  the pipeline is silent: " in line


@pytest.mark.parametrize(
    "record",
    [
        msgspec.structs.replace(NOTICE, text=EVIL, job=EVIL, rule=EVIL),
        support.meta_alert(text=EVIL, name=EVIL, subject=EVIL, id=EVIL),
        support.incident(
            1,
            id=EVIL,
            job=EVIL,
            next_step=EVIL,
            phase=EVIL,
            status="resolved",
            resolution=EVIL,
            scope=Scope(kind="node", name=EVIL, nodes=[EVIL]),
            suspects=[Suspect(rank=1, node=EVIL, score=1.0, why=EVIL, role=EVIL)],
            stacks=[support.stack_class(text=EVIL)],
        ),
    ],
    ids=["notice", "meta", "incident"],
)
def test_nothing_that_a_log_line_says_steers_the_terminal(record: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for as_json in (False, True):
        feed = Feed(as_json=as_json, pulse=Pulse(1, 0))
        feed.show(entries(record, *[one for one in [beat(0, None, T0 + 9 * BEAT_NS)] if one is not None]))
        out = capsys.readouterr().out
        assert out and all(char.isprintable() for char in out.replace("\n", ""))


def test_what_topics_hold_is_told_in_one_order_of_time_however_much_a_partition_holds() -> None:
    log, many = MemoryLog(3), 2 * PAGE + 7
    for number in range(many):
        log.append("incidents", b"a", b"%d" % (3 * number), {}, 3 * number, partition=2)
        log.append("notices", b"b", b"%d" % (3 * number + 1), {}, 3 * number + 1, partition=0)
    log.append("meta", b"c", b"%d" % (3 * many), {}, 3 * many, partition=1)
    log.append("meta", b"c", b"goes back", {}, 1, partition=1)
    log.append("incidents", b"d", b"the same time", {}, 3 * many, partition=0)
    ends = ends_of(log, ("incidents", "notices", "meta"))
    log.append("incidents", b"e", b"later", {}, 5, partition=0)
    told = [[entry.value for _, entry in group] for group in backlog(log, ends)]
    assert told[:-1] == [[b"%d" % (3 * number + more)] for number in range(many) for more in (0, 1)]
    assert told[-1] == [b"the same time", b"%d" % (3 * many), b"goes back"]
    assert list(backlog(log, {})) == []
