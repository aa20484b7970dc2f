"""Silences of a deployment: begun and ended by command, obeyed by a feed that runs, shown again once they are over."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from kafka_pipeline import Pipeline, pipeline, run_all
from silence_support import HOUR, INCIDENT, NOW, silence

from schemas.codec import encode, headers
from schemas.results import Incident, Notice
from streams.log.kafka_silences import store_silence, stored_silences
from streams.silencing import SilenceError

NOTICE = Notice(
    id="n",
    notification_key="n1",
    job="run-8",
    attempt="0",
    time=NOW,
    rule="exception",
    text="exception in job run-8: attribution pending",
)
pytestmark = pytest.mark.xdist_group("kafka")


def put(live: Pipeline, **changes: Any) -> Incident:
    incident = msgspec.structs.replace(INCIDENT, **changes)
    live.log.append("incidents", incident.job.encode(), encode(incident), headers("incident"), 0)
    live.log.flush()
    return incident


def until_shown(live: Pipeline, feed: Any, wanted: int) -> list[str]:
    until = time.monotonic() + 60
    while len(live.said_by(feed).splitlines()) < wanted and time.monotonic() < until:
        time.sleep(0.2)
    return live.said_by(feed).splitlines()


def test_versions_in_the_topic_fold_and_what_cannot_be_used_silences_nothing(kafka: str, tmp_path: Path) -> None:
    with pipeline(kafka, tmp_path, partitions=2) as live:
        assert stored_silences(live.log) == []
        store_silence(live.log, silence("job=run-7"))
        store_silence(live.log, silence("job=run-7", number=2, ends=NOW))
        store_silence(live.log, silence("job=x", id="b"))
        live.log.append("silences", b"b", b"no json", headers("silence"), 0)
        live.log.append("silences", b"b", encode(silence("job=~*", id="b", number=3)), headers("silence"), 0)
        live.log.flush()
        with pytest.raises(SilenceError):
            store_silence(live.log, silence("job=~*"))
        assert [one.label for one in stored_silences(live.log)] == ["b 1", "s 2"]


def test_a_feed_dims_what_is_silenced_and_shows_it_when_that_is_over(kafka: str, tmp_path: Path) -> None:
    with pipeline(kafka, tmp_path, partitions=2) as live:
        store_silence(live.log, silence("node=n1"))
        feeds = [live.start("feed", "--from-beginning", *words) for words in ((), ("--format", "json"))]
        put(live)
        put(live, id="hang", symptom="hang", summary="rank 0 hangs", published=NOW + 1)
        for feed in feeds:
            assert len(until_shown(live, feed, 2)) == 2
        put(live, revision=2, published=NOW + 2)
        put(
            live, id="other", job="other", published=NOW + HOUR, scope=msgspec.structs.replace(INCIDENT.scope, nodes=[])
        )
        shown = [until_shown(live, feed, 5) for feed in feeds]
        for feed in feeds:
            feed.send_signal(signal.SIGTERM)
            assert feed.wait(30) == 0
        lines, rows = shown[0], [json.loads(line) for line in shown[1]]
        assert "[silenced until 2026-11-29T13:00:00.000Z by maria (s 1): new cable]" in lines[0]
        assert [(row["id"], row["revision"], row["silenced"] and row["silenced"]["id"]) for row in rows] == [
            ("i", 1, "s"),
            ("hang", 1, None),
            ("i", 2, "s"),
            ("other", 1, None),
            ("i", 2, None),
        ]
        assert ["silenced" in line for line in lines] == [True, False, True, False, False]


def test_a_silence_that_is_ended_by_command_lets_an_open_incident_show_at_once(kafka: str, tmp_path: Path) -> None:
    with pipeline(kafka, tmp_path, partitions=2, ticks="workers") as live:
        words = ["silence", "add", "--job", "run-?", "--for", "1h", "--by", "maria"]
        ((code, text),) = run_all({"add": words}, *live.where).values()
        (made,) = stored_silences(live.log)
        assert (code, made.id in text) == (0, True)
        feed = live.start("feed", "--from-beginning")
        put(live)
        assert "[silenced until 2" in until_shown(live, feed, 1)[0]
        live.log.append("notices", b"run-8", encode(NOTICE), headers("notice"), 0)
        live.log.flush()
        (notice,) = until_shown(live, feed, 2)[1:]
        assert "attribution pending  [silenced until 2" in notice
        done = run_all({"list": ["silence", "list", "--all"], "end": ["silence", "end", made.id]}, *live.where)
        assert done["list"][0] == 0 and f"{made.id}  " in done["list"][1]
        assert done["end"][0] == 0 and "ended silence" in done["end"][1]
        lines = until_shown(live, feed, 3)
        assert len(lines) == 3 and "silenced" not in lines[2] and "suspect rank 0 on n1" in lines[2]
