"""The feed over Kafka: each revision once, the newest last, notices until an incident adopts them."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sink_support as support
from kafka_pipeline import Pipeline, pipeline, until
from streams_support import restarting

from schemas.codec import encode, headers
from schemas.results import Notice
from streams.report import moment

pytestmark = pytest.mark.xdist_group("kafka")
NOTICE = Notice(
    id="n",
    notification_key="n1",
    job="job1",
    attempt="0",
    time=support.T0,
    rule="out_of_memory",
    text="out_of_memory in job job1: attribution pending \x1b[2J",
)


def put(live: Pipeline, topic: str, kind: str, record: msgspec.Struct) -> None:
    live.log.append(topic, b"job1", encode(record), headers(kind), support.T0)
    live.log.flush()


def lines_of(live: Pipeline, arguments: list[str], wanted: int) -> list[str]:
    """What a feed prints until it has printed so many lines, and a little later."""
    feed = live.start("feed", *arguments)
    end = time.monotonic() + 60
    while len(live.said_by(feed).splitlines()) < wanted and time.monotonic() < end:
        time.sleep(0.2)
    time.sleep(1.5)
    feed.send_signal(signal.SIGTERM)
    assert feed.wait(30) == 0
    return live.said_by(feed).splitlines()


def test_what_is_kept_is_shown_once_each_and_never_steers_the_terminal(kafka: str, tmp_path: Path) -> None:
    with pipeline(kafka, tmp_path, partitions=2) as live:
        put(live, "notices", "notice", NOTICE)
        put(live, "notices", "notice", msgspec.structs.replace(NOTICE, id="again", rule="exception"))
        for revision in (1, 2, 1, 2):
            put(live, "incidents", "incident", support.incident(revision))
        live.log.append("incidents", b"job1", b"no json", headers("incident"), support.T0)
        live.log.flush()
        shown = lines_of(live, ["--from-beginning"], 5)
        (notice,) = [line for line in shown if "attribution pending" in line]
        assert notice.startswith(f"{moment(NOTICE.time)}  NOTICE  out_of_memory in job job1: "), "the day, too"
        assert sum("job job1: hang, area data; " in line for line in shown) == 2
        assert sum("not a incident record" in line or "not an incident record" in line for line in shown) == 1
        assert not any("\x1b" in line for line in shown)
        assert shown.count(f"    {support.stack_class().text}") == 1, "where they are is said again if it changes"
        assert len(shown) == 5
        rows = [
            json.loads(line) for line in lines_of(live, ["--from-beginning", "--format", "json"], 4) if line[0] == "{"
        ]
        assert [row["kind"] for row in rows] == ["notice", "incident", "incident"]
        assert [row.get("revision") for row in rows[1:]] == [1, 2]


def test_the_watchdog_travels_the_whole_pipeline_and_an_incident_adopts_its_notice(kafka: str, tmp_path: Path) -> None:
    with pipeline(kafka, tmp_path, partitions=2) as live:
        feed = live.start("feed", "--format", "json")
        said = live.start("feed")
        live.start("worker")
        until(lambda: "partitions 0-1" in live.printed() and live.printed().count("stage") >= 2, live.printed)
        live.publish(restarting().recording)

        def rows() -> list[dict[str, Any]]:
            return [json.loads(line) for line in live.said_by(feed).splitlines() if line[0] == "{"]

        def told() -> bool:
            beats = {row["subject"] for row in rows() if row["kind"] == "meta" and row["name"] == "watchdog"}
            return beats == {"partition 0", "partition 1"} and any(row["kind"] == "incident" for row in rows())

        until(told, live.printed)
        notices = [row for row in rows() if row["kind"] == "notice"]
        incident = next(row for row in rows() if row["kind"] == "incident")
        assert [row["notification_key"] for row in notices] == [incident["notification_key"]], "one alert an attempt"
        assert incident["adopts"]["id"] == notices[0]["id"]
        until(lambda: f"[adopts the early notice of {notices[0]['time']}]" in live.said_by(said), live.printed)
        assert "watchdog" not in live.said_by(said)


def test_a_feed_begins_now_and_follows(kafka: str, tmp_path: Path) -> None:
    with pipeline(kafka, tmp_path, partitions=2) as live:
        put(live, "incidents", "incident", support.incident(1, id="before"))
        feed = live.start("feed", "--format", "json")
        end = time.monotonic() + 60
        revision = 0
        while not live.said_by(feed) and time.monotonic() < end:
            revision += 1
            put(live, "incidents", "incident", support.incident(revision, id="after"))
            time.sleep(0.5)
        assert {json.loads(line)["id"] for line in live.said_by(feed).splitlines()} == {"after"}
