"""The view of silenced incidents says in SQL what the decision in Python says."""

from __future__ import annotations

import msgspec
import sink_support as support
from silence_support import CASES, HOUR, INCIDENT, NOW, TOGETHER, members, several, silence

from schemas.meta import MetaAlert
from sinks.clickhouse import open_client
from sinks.migrate import migrate
from sinks.query import query
from sinks.sink import Sink
from streams.silencing import SilenceReason

LATER = 4_000_000_000_000_000_000
"""In the year 2096."""


def test_the_view_and_the_decision_agree(dsn: str) -> None:
    with open_client(dsn) as client:
        migrate(client)
        for number, (_, incident, asked, _) in enumerate(CASES):
            log = support.MemoryLog()
            log.put(msgspec.structs.replace(INCIDENT, **incident), silence(asked))
            Sink(log, client, run_id=f"{number:03d}").drain()
        sql = (
            "SELECT run_id, silence, silence_number, at_publication, holds_now FROM incidents_silenced ORDER BY run_id"
        )
        found = query(client, sql, 100)[2]
    wanted = [
        [f"{number:03d}", "s", 1, True, False] for number, case in enumerate(CASES) if case[3] is SilenceReason.SILENCED
    ]
    assert found == wanted


def test_the_view_and_the_decision_agree_on_incidents_of_several_jobs(dsn: str) -> None:
    with open_client(dsn) as client:
        migrate(client)
        for number, (_, changes, told, asked, _) in enumerate(TOGETHER):
            log = support.MemoryLog()
            silences = [silence(text, id=text, ends=LATER) for text in asked]
            log.put(several(changes), *members(told), *silences)
            Sink(log, client, run_id=f"{number:03d}").drain()
        sql = "SELECT DISTINCT run_id FROM incidents_silenced WHERE job = '-' AND at_publication AND holds_now"
        found = query(client, f"{sql} ORDER BY run_id", 100)[2]
    held = (SilenceReason.SILENCED, SilenceReason.MEMBERS_SILENCED)
    assert found == [[f"{number:03d}"] for number, case in enumerate(TOGETHER) if case[4] in held]


def test_it_holds_now_only_while_the_newest_version_does_and_the_incident_is_open(dsn: str) -> None:
    old, new = silence("job=~run-?", ends=LATER), silence("job=~run-?", number=2, ends=NOW + HOUR)
    open_, over = INCIDENT, msgspec.structs.replace(INCIDENT, revision=2, status="resolved", published=NOW + 2 * HOUR)
    with open_client(dsn) as client:
        migrate(client)
        for run_id, records in {"a": [open_, old], "b": [open_, old, new], "c": [over, old]}.items():
            log = support.MemoryLog()
            log.put(*records)
            Sink(log, client, run_id=run_id).drain()
        sql = "SELECT run_id, at_publication, holds_now, silence_number FROM incidents_silenced ORDER BY run_id"
        assert query(client, sql, 100)[2] == [["a", True, True, 1], ["b", True, False, 2], ["c", True, False, 1]]
        assert query(client, "SELECT count() FROM silences_latest", 1)[2] == [[3]]


def test_one_of_several_jobs_is_silenced_no_longer_than_each_that_it_is_made_of(dsn: str) -> None:
    old = [silence("team=speech", id="a", ends=NOW + HOUR), silence("team=vision", id="b", ends=LATER)]
    with open_client(dsn) as client:
        migrate(client)
        log = support.MemoryLog()
        log.put(several({}), *members(set()), *old)
        Sink(log, client, run_id="r").drain()
        sql = "SELECT silence, at_publication, holds_now FROM incidents_silenced WHERE job = '-' ORDER BY silence"
        assert query(client, sql, 100)[2] == [["a", True, False], ["b", True, False]]


def test_an_alert_whose_cluster_becomes_known_is_over_all_the_same(dsn: str) -> None:
    begun = support.meta_alert(cluster="")
    over = msgspec.structs.replace(begun, cluster="c1", status="resolved", time=begun.time + HOUR)
    with open_client(dsn) as client:
        migrate(client)
        log = support.MemoryLog()
        log.put(begun, over)
        Sink(log, client, run_id="r").drain()
        assert query(client, "SELECT cluster, status FROM meta_alerts_latest", 9)[2] == [["c1", "resolved"]]


def test_an_alert_of_a_worker_that_does_not_say_it_again_no_longer_fires(dsn: str) -> None:
    def lag(subject: str, time: int) -> MetaAlert:
        return support.meta_alert(id=subject, name="lag", subject=subject, since=support.T0, time=time)

    with open_client(dsn) as client:
        migrate(client)
        log = support.MemoryLog()
        # Of long ago, and of a moment that has not come yet: no clock decides what is shown.
        log.put(*(lag(name, support.T0) for name in ("worker a-1", "sink a-2", "worker a-4", "job1|node02")))
        log.put(lag("worker a-3", LATER))
        log.put(msgspec.structs.replace(lag("worker a-4", support.T0), status="resolved"))
        Sink(log, client, run_id="r").drain()
        sql = "SELECT subject, status FROM meta_alerts_latest ORDER BY subject"
        assert query(client, sql, 9)[2] == [
            ["job1|node02", "firing"],
            ["sink a-2", "unheard"],
            ["worker a-1", "unheard"],
            ["worker a-3", "firing"],
            ["worker a-4", "resolved"],
        ]
