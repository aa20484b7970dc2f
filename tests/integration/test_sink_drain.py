"""The sink over the real engine, embedded and behind HTTP: what goes in comes out, once."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import sink_support as support

from schemas import codec, events, results
from schemas.topics import TOPICS
from sinks.clickhouse import Client, open_client
from sinks.errors import SinkError
from sinks.migrate import behind, migrate, migrations
from sinks.rows import Block, blocks_of
from sinks.runs import Run, record_run
from sinks.sink import SINK_TOPICS, Limits, Sink
from sinks.writer import Writer

EXAMPLES = Path(inspect.getfile(codec)).parent / "examples"
EVENT_TABLES = ("logs", "stacks", "metrics", "collectives", "profiles", "timelines", "alerts")
DERIVED_TABLES = (
    "windows",
    "late",
    "templates",
    "library",
    "anomalies",
    "merged_stacks",
    "incidents",
    "node_history",
    "meta_alerts",
    "silences",
    "comparisons",
)


@pytest.fixture
def client(dsn: str) -> Iterator[Client]:
    with open_client(dsn) as opened:
        migrate(opened)
        yield opened


def full_log() -> support.MemoryLog:
    log = support.MemoryLog()
    log.put(*support.everything())
    return log


def stored(client: Client, table: str, columns: list[str]) -> list[tuple[object, ...]]:
    sql = f"SELECT {', '.join(columns)} FROM {table} FINAL ORDER BY ALL"
    formats = {"DateTime64": "int"} | ({"String": "bytes"} if table == "dead_letters" else {})
    return [tuple(row) for row in client.query(sql, query_formats=formats).result_rows]


def finals(client: Client) -> dict[str, int]:
    names = client.query(
        "SELECT name FROM system.tables WHERE database = currentDatabase() AND engine LIKE '%MergeTree'"
    )
    return {
        name: client.query(f"SELECT count() FROM {name} FINAL").result_rows[0][0]
        for (name,) in sorted(names.result_rows)
    }


def as_sortable(rows: list[tuple[object, ...]]) -> list[str]:
    return sorted(repr(row) for row in rows)


def expected(table: str) -> Block:
    """The rows that the pure functions give for this table, all records together."""
    columns: dict[str, list[object]] = {}
    for record in support.everything():
        for block in blocks_of(codec.kind_of(record), record, "r1", support.T0 + 5 * support.S):
            if block.table == table:
                for name, values in block.columns.items():
                    columns.setdefault(name, []).extend(values)
    return Block(table, columns)


def test_migrations_are_applied_once_in_order_and_outlive_closing(dsn: str) -> None:
    names = [migration.name for migration in migrations()]
    assert names == sorted(names)
    with open_client(dsn) as client:
        assert behind(client) == "Rankwatch has no tables in this database yet: `rankwatch migrate` makes them"
        assert migrate(client, migrations()[:-2]) == names[:-2]
        assert behind(client).startswith(f"2 of {len(names)} migrations were not applied here: ")
        assert migrate(client) == names[-2:]
        assert (migrate(client), behind(client)) == ([], "")
    with open_client(dsn) as client:
        assert migrate(client) == []
        recorded = client.query("SELECT version, name, checksum FROM migrations FINAL ORDER BY version").result_rows
    assert [tuple(row) for row in recorded] == [(one.version, one.name, one.checksum) for one in migrations()]


def test_everything_stored_comes_back_equal(client: Client) -> None:
    counts = Sink(full_log(), client, run_id="r1").drain()
    for table in (*EVENT_TABLES, *DERIVED_TABLES, "dead_letters"):
        block = expected(table)
        assert block.rows == counts[table] > 0, table
        names = list(block.columns)
        if table == "dead_letters":
            block.columns["reason"] = [b"not json"]
        found = stored(client, table, names)
        wanted = list(zip(*block.columns.values(), strict=True))
        if table == "dead_letters":
            assert found[0][names.index("key")] == b"\xffkey"
            assert found[0][names.index("value")] == b"\x00\xfe raw"
        else:
            assert as_sortable(found) == as_sortable(wanted), table


def test_every_table_and_column_has_a_comment_and_every_column_is_filled(client: Client) -> None:
    tables = client.query("SELECT name, comment FROM system.tables WHERE database = currentDatabase()").result_rows
    assert {name for name, _ in tables} >= {
        *EVENT_TABLES,
        *DERIVED_TABLES,
        *("ranks", "jobs", "runs", "dead_letters"),
    }
    assert [name for name, comment in tables if not comment] == []
    columns = client.query(
        "SELECT table, name FROM system.columns WHERE database = currentDatabase() AND comment = ''"
        " AND table IN (SELECT name FROM system.tables WHERE database = currentDatabase() AND engine LIKE '%MergeTree')"
    ).result_rows
    assert columns == []
    for table in (*EVENT_TABLES, *DERIVED_TABLES, "ranks", "jobs", "job_facts"):
        wanted = client.query(
            "SELECT name FROM system.columns"
            " WHERE database = currentDatabase() AND table = {t:String} AND default_kind = ''",
            parameters={"t": table},
        ).result_rows
        assert {name for (name,) in wanted} == set(expected(table).columns), table


def test_drain_twice_inserts_nothing_twice(client: Client) -> None:
    sink = Sink(full_log(), client)
    assert sink.drain()
    before = finals(client)
    assert sink.drain() == {}
    assert finals(client) == before


def test_redelivery_shows_no_duplicates(client: Client) -> None:
    log = full_log()
    Sink(log, client).drain()
    before = finals(client)
    # A crash before the offsets were saved, then a producer that sends all of it again in other batches.
    Sink(log, client).drain()
    log.put(*support.everything(), partition=1)
    Sink(log, client, limits=Limits(rows=1)).drain()
    after = finals(client)
    # A dead letter that was sent again is the same record at the same origin.
    assert after == before


def test_copies_without_a_token_fold_by_their_sort_key(client: Client) -> None:
    for number, record in enumerate([*support.everything(), *support.everything()]):
        for block in blocks_of(codec.kind_of(record), record, "", support.T0):
            Writer(client).write(block, f"delivery {number}")
    raw = client.query("SELECT count() FROM logs").result_rows[0][0]
    assert raw == 4
    counts = finals(client)
    assert {counts[table] for table in EVENT_TABLES} == {2}
    assert (counts["windows"], counts["ranks"], counts["jobs"], counts["incidents"]) == (4, 2, 1, 2)


def test_a_used_token_never_drops_other_rows(client: Client) -> None:
    one = Sink(full_log(), client, run_id="r1", topics=["stamped.logs"])
    one.drain()
    other = support.MemoryLog()
    event = msgspec.structs.replace(support.stamped()[0].events[0], time=support.T0 + 1)
    other.put(support.batch(event))
    Sink(other, client, run_id="r1", topics=["stamped.logs"]).drain()
    assert finals(client)["logs"] == 3


def test_runs_do_not_mix(client: Client) -> None:
    log = full_log()
    Sink(log, client).drain()
    Sink(log, client, run_id="r1").drain()
    counts = client.query("SELECT run_id, count() FROM anomalies_latest GROUP BY run_id ORDER BY run_id").result_rows
    assert [tuple(row) for row in counts] == [("", 1), ("r1", 1)]
    assert finals(client)["logs"] == 4


def test_same_log_same_rows_in_same_order_whatever_the_batches(client: Client) -> None:
    log = full_log()
    Sink(log, client, run_id="big").drain()
    Sink(log, client, run_id="small", limits=Limits(rows=1, entries_per_read=1)).drain()
    for table in (*EVENT_TABLES, "windows", "anomalies", "incidents", "ranks"):
        key = client.query(
            "SELECT sorting_key FROM system.tables WHERE database = currentDatabase() AND name = {t:String}",
            parameters={"t": table},
        ).result_rows[0][0]
        sql = f"SELECT * EXCEPT run_id FROM {table} FINAL WHERE run_id = {{run:String}} ORDER BY {key}"
        big, small = (client.query(sql, parameters={"run": run}).result_rows for run in ("big", "small"))
        assert big == small, table


def test_offsets_are_respected_and_advance(client: Client) -> None:
    log = support.MemoryLog(partitions=1)
    log.put(*(support.anomaly(f"a{number}") for number in range(5)))
    sink = Sink(log, client, topics=["anomalies"], offsets={("anomalies", 0): 3})
    assert sink.drain() == {"anomalies": 2}
    assert sink.offsets == {("anomalies", 0): 5}
    log.put(support.anomaly("a5"))
    assert sink.drain() == {"anomalies": 1}


def test_offsets_stay_where_an_insert_failed(client: Client) -> None:
    log = full_log()
    sink = Sink(log, client, topics=["anomalies"])
    client.command("RENAME TABLE anomalies TO away")
    with pytest.raises(SinkError, match="there is no table anomalies; apply the migrations first"):
        sink.drain()
    assert sink.offsets == {}
    client.command("RENAME TABLE away TO anomalies")
    assert sink.drain() == {"anomalies": 1}


def test_unreadable_records_become_dead_letters(client: Client) -> None:
    log = support.MemoryLog()
    log.put(support.anomaly())
    for value, headers in (
        (b"\xff not json", {"schema": "anomaly", "version": "1"}),
        (b"{}", {"schema": "incident", "version": "1"}),
        (b"{}", {"schema": "no such", "version": "1"}),
        (b"[" * 100_000, {"schema": "anomaly"}),
        (codec.encode(events.Tick(time=1)), codec.headers("tick")),
        (b"{}", {}),
    ):
        log.append("anomalies", b"\xfekey", value, headers, support.T0, 1)
    assert Sink(log, client).drain() == {"anomalies": 1, "dead_letters": 6}
    rows = client.query(
        "SELECT topic, partition, offset, stage, key, sent, value FROM dead_letters FINAL ORDER BY partition, offset",
        query_formats={"String": "bytes", "DateTime64": "int"},
    ).result_rows
    assert tuple(rows[0])[1:] == (1, rows[0][2], b"sink", b"\xfekey", support.T0, b"\xff not json")
    assert len({row[2] for row in rows}) == 6


def test_numbers_that_no_column_holds_stop_only_their_own_record(client: Client) -> None:
    log = support.MemoryLog()
    good = events.Metric(time=support.T0, name="loss", value=1.0)
    huge = events.Metric(time=2**70, name="loss", value=1.0)
    log.put(
        support.batch(good),
        support.batch(huge, seq=2),
        support.batch(good, seq=3, who=support.identity(2**40)),
        support.batch(msgspec.structs.replace(good, pid=2**63 - 1), seq=4),
        support.anomaly(),
        msgspec.structs.replace(support.anomaly("a2"), victims=[2**31]),
        support.window(3, dropped={"log": 2**64}),
    )
    assert Sink(log, client).drain() == {"anomalies": 1, "dead_letters": 4, "metrics": 2}
    reasons = client.query("SELECT DISTINCT reason FROM dead_letters ORDER BY reason").result_rows
    said = [reason for (reason,) in reasons]
    assert said[:2] == [
        "anomalies.victims: a value is out of the range of Int32",
        "metrics.rank: a value is out of the range of Int32",
    ]
    assert said[2].startswith("not a metric record: ") and "events[0].time" in said[2]
    assert said[3] == "windows.dropped: a value is out of the range of Int64"


def test_values_that_are_not_finite_are_null_with_their_name(client: Client) -> None:
    log = support.MemoryLog()
    log.put(
        support.batch(
            *(
                events.Metric(time=support.T0 + place, name="loss", value=value, nonfinite=name)
                for place, (value, name) in enumerate([(1.5, ""), (None, "nan"), (None, "-inf"), (0.0, "")])
            )
        )
    )
    Sink(log, client).drain()
    rows = client.query("SELECT value, nonfinite FROM metrics FINAL ORDER BY ts").result_rows
    assert [tuple(row) for row in rows] == [(1.5, ""), (None, "nan"), (None, "-inf"), (0.0, "")]
    assert client.query("SELECT avg(value) FROM metrics FINAL").result_rows[0][0] == 0.75


def test_more_than_a_hundred_days_fit_into_one_batch(client: Client) -> None:
    log = support.MemoryLog()
    days = [support.T0 - day * 86_400 * support.S for day in range(150)]
    log.put(support.batch(*(events.Alert(time=day, name="xid", text="") for day in days)))
    assert Sink(log, client).drain() == {"alerts": 150}
    client.command("OPTIMIZE TABLE alerts FINAL")
    # Recordings are often old: retention counts from when a row was stored.
    assert finals(client)["alerts"] == 150


def test_ranks_and_jobs_come_from_windows_without_nodes(client: Client) -> None:
    log = support.MemoryLog()
    idle = support.identity(None, job="-")
    log.put(
        *(support.window(rank, support.T0 + step * 10 * support.S) for rank in (0, 3) for step in range(3)),
        support.window(None),
        support.window(None, identity=idle, id="idle"),
        support.window(3, identity=support.identity(3, attempt="1", node="node07"), id="second", iteration=None),
    )
    Sink(log, client).drain()
    Sink(log, client, limits=Limits(rows=2)).drain()
    ranks = client.query(
        "SELECT attempt, rank, node, role, dp, pp, coordinates, last_seen - first_seen, iteration"
        " FROM ranks_latest ORDER BY attempt, rank"
    ).result_rows
    assert [tuple(row)[:7] for row in ranks] == [
        ("0", 0, "node02", "trainer", 1, None, "dp=1 pp=0,4"),
        ("0", 3, "node02", "trainer", 1, None, "dp=1 pp=0,4"),
        ("1", 3, "node07", "trainer", 1, None, "dp=1 pp=0,4"),
    ]
    assert [(float(row[7]), row[8]) for row in ranks] == [(30, 40), (30, 40), (10, None)]
    jobs = client.query("SELECT job, attempt, world_size, layout FROM jobs_latest ORDER BY attempt").result_rows
    assert [tuple(row) for row in jobs] == [("job1", "0", 8, "dp=4 tp=2"), ("job1", "1", 8, "dp=4 tp=2")]


def test_a_template_that_learned_more_replaces_the_older_one(client: Client) -> None:
    log = support.MemoryLog(partitions=1)
    log.put(support.template(["abc", "def"]), support.template())
    Sink(log, client).drain()
    Sink(log, client, limits=Limits(rows=1)).drain()
    assert [tuple(row) for row in client.query("SELECT id, signatures FROM templates FINAL").result_rows] == [
        ("t1", ["abc", "def"])
    ]


def test_a_run_is_recorded_once_with_its_latest_end(client: Client) -> None:
    run = Run(run_id="r1", kind="diagnose", job="job1", started=support.T0, ended=support.T0)
    record_run(client, run)
    done = msgspec.structs.replace(run, ended=support.T0 + 1, versions={"mask": "m1"}, inputs=7)
    record_run(client, done)
    record_run(client, done)
    rows = client.query("SELECT * FROM runs FINAL", query_formats={"DateTime64": "int"}).result_rows
    assert [tuple(row) for row in rows] == [("r1", "diagnose", "job1", support.T0, support.T0 + 1, {"mask": "m1"}, 7)]


def test_full_records_are_kept_as_json(client: Client) -> None:
    Sink(full_log(), client).drain()
    for table, kind, record in (
        ("incidents", "incident", support.incident()),
        ("anomalies", "anomaly", support.anomaly()),
        ("windows", "window", support.window(None)),
    ):
        texts = [row[0] for row in client.query(f"SELECT json FROM {table} FINAL").result_rows]
        assert record in [codec.decode(kind, text.encode()) for text in texts]
        assert all(json.loads(text) for text in texts)


def test_every_golden_example_is_stored(client: Client) -> None:
    log = support.MemoryLog()
    for topic in SINK_TOPICS:
        for kind in TOPICS[topic].kinds:
            for example in sorted((EXAMPLES / kind).iterdir()):
                log.append(topic, b"key", example.read_bytes(), codec.headers(kind), support.T0)
    counts = Sink(log, client).drain()
    assert counts.pop("dead_letters") == len(list((EXAMPLES / "dead_letter").iterdir()))
    assert set(counts) == {*EVENT_TABLES, *DERIVED_TABLES, "ranks", "jobs", "job_facts"}


def test_distant_times_are_stored_and_fold(client: Client) -> None:
    log = support.MemoryLog()
    times = [0, 1, 2**63 - 1]
    log.put(support.batch(*(events.Alert(time=time, name="xid", text="") for time in times)))
    Sink(log, client).drain()
    log.put(support.batch(*(events.Alert(time=time, name="xid", text="") for time in times)))
    Sink(log, client).drain()
    rows = client.query("SELECT ts FROM alerts FINAL ORDER BY ts", query_formats={"DateTime64": "int"}).result_rows
    assert [time for (time,) in rows] == times


def test_a_log_without_a_topic_is_an_error_and_progress_is_not_stored(client: Client) -> None:
    with pytest.raises(SinkError, match="the log has no topic nonsense"):
        Sink(full_log(), client, topics=["nonsense"]).drain()
    log = support.MemoryLog()
    log.put(results.Progress(partition=0, end=support.T0))
    assert Sink(log, client, topics=SINK_TOPICS).drain() == {}
