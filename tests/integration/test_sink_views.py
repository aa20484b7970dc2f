"""Migrations, the views that answer what people ask, and how answers look."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest
import sink_support as support

from schemas.results import JobIncident
from sinks.clickhouse import Client, open_client
from sinks.errors import SinkError
from sinks.migrate import Migration, migrate, migrations
from sinks.query import query
from sinks.sink import Sink


@pytest.fixture(scope="module")
def client(shared_dsn: str) -> Iterator[Client]:
    with open_client(shared_dsn) as opened:
        migrate(opened)
        log = support.MemoryLog()
        log.put(*support.everything())
        for _ in range(2):
            Sink(log, opened).drain()
        yield opened


def ask(client: Client, sql: str) -> list[list[object]]:
    return query(client, sql, 100)[2]


def test_a_changed_migration_is_refused_and_a_new_one_applied(client: Client) -> None:
    first, *rest = migrations()
    changed = msgspec.structs.replace(first, text=first.text + "-- changed\n")
    with pytest.raises(SinkError, match="0001_create_logs was applied as 0001_create_logs with another text"):
        migrate(client, [changed, *rest])
    new = Migration(9000, "9000_create_x", "CREATE TABLE x (a Int32) ENGINE = Memory;\nINSERT INTO x VALUES (1);\n")
    assert migrate(client, [first, *rest, new]) == ["9000_create_x"]
    assert migrate(client, [first, *rest, new]) == []
    assert ask(client, "SELECT * FROM x") == [[1]]


def test_a_failing_statement_is_named_and_its_migration_not_recorded(client: Client) -> None:
    text = "CREATE TABLE IF NOT EXISTS y (a Int32) ENGINE = Memory;\nSELEC 1;\n"
    with pytest.raises(SinkError, match=r"migration 9001_add_y, statement 2: Syntax error"):
        migrate(client, [Migration(9001, "9001_add_y", text)])
    assert ask(client, "SELECT count() FROM migrations WHERE version = 9001") == [[0]]
    assert migrate(client, [Migration(9001, "9001_add_y", text.replace("SELEC 1", "SELECT 1"))]) == ["9001_add_y"]


def test_incidents_latest_has_the_newest_revision_only(client: Client) -> None:
    sql = "SELECT id, revision, status, suspect_ranks, suspect_nodes, victims FROM incidents_latest WHERE job = 'job1'"
    assert ask(client, sql) == [["i1", 2, "resolved", [3], ["node02"], "0-2,4-6"]]
    assert ask(client, "SELECT revision, status FROM incidents FINAL ORDER BY revision") == [
        [1, "open"],
        [2, "resolved"],
    ]


def test_incidents_with_fleet_says_of_which_one_of_several_jobs_each_is_part(client: Client) -> None:
    member = JobIncident(job="job1", attempt="0", incident="i1")
    whole = support.incident(id="f1", job="-", attempt="", summary="hang of 2 jobs", members=[member])
    gone = msgspec.structs.replace(whole, id="f2", revision=2, members=[])
    log = support.MemoryLog()
    log.put(support.incident(), msgspec.structs.replace(whole, id="f2"), gone, whole, support.incident(id="i2"))
    Sink(log, client, run_id="fleet").drain()
    sql = "SELECT job, id, fleet, fleet_summary FROM incidents_with_fleet WHERE run_id = 'fleet' ORDER BY id"
    assert ask(client, sql) == [
        ["-", "f1", "", ""],
        ["-", "f2", "", ""],
        ["job1", "i1", "f1", "hang of 2 jobs"],
        ["job1", "i2", "", ""],
    ]
    client.command("ALTER TABLE incidents DELETE WHERE run_id = 'fleet' SETTINGS mutations_sync = 2")


def test_node_history_latest_has_the_newest_row_of_a_node(client: Client) -> None:
    log = support.MemoryLog()
    log.put(support.node_history(), support.node_history(support.T0 + 20 * support.S, counted=4))
    Sink(log, client, run_id="history").drain()
    sql = "SELECT cluster, node, counted, node_days FROM node_history_latest WHERE run_id = 'history'"
    assert ask(client, sql) == [["c1", "node02", 4, 11.5]]


def test_anomalies_and_windows_are_seen_once(client: Client) -> None:
    assert ask(client, "SELECT id, suspect_ranks, suspect_scores FROM anomalies_latest") == [
        ["a1", [3, None], [0.75, 0.5]]
    ]
    assert ask(client, "SELECT id FROM anomalies_latest WHERE metric = 'data_load'") == [["a1"]]
    assert ask(client, "SELECT id FROM anomalies_latest WHERE metric = ''") == []
    assert ask(client, "SELECT count() FROM windows_latest") == [[4]]


def test_meta_alerts_latest_says_what_fires_now(client: Client) -> None:
    sql = "SELECT id, name, subject, status, severity, text, cluster FROM meta_alerts_latest"
    assert ask(client, sql) == [
        ["m1", "skew", "job1|node02", "resolved", "warning", "the clock of node02 runs ahead", "c1"]
    ]
    assert ask(client, "SELECT status FROM meta_alerts FINAL ORDER BY ts") == [["firing"], ["resolved"]]


def test_what_jobs_are_is_asked_by_name_and_value_or_as_a_whole(client: Client) -> None:
    asked = "SELECT DISTINCT job FROM job_facts WHERE facet = 'environment' AND name = 'NCCL_ALGO' AND value = 'Tree'"
    assert ask(client, asked) == [["job1"]]
    assert ask(client, asked.replace("Tree", "LL")) == []
    whole = (
        "SELECT framework, command, world_size, layout, environment, versions, flags, differing FROM job_descriptions"
    )
    assert ask(client, whole) == [
        [
            *("megatron", "torchrun train.py", "8", {"tp": "2"}, {"OMP_NUM_THREADS": "8"}, {"torch": "2.5.1"}, {}),
            {
                "environment.NCCL_ALGO": ["Ring", "Tree"],
                "environment.NCCL_TOPO_FILE": [""],
                "flags.bf16": ["false", "true"],
            },
        ]
    ]


def test_merged_stacks_latest_says_where_everybody_is(client: Client) -> None:
    sql = "SELECT role, group_number, ranks, rank_list, missing, minority, activity, place FROM merged_stacks_latest"
    assert ask(client, f"{sql} WHERE job = 'job1' ORDER BY class_number, group_number") == [
        ["trainer", 0, "0-2,4,6", [0, 1, 2, 4, 6], "5", False, "communication", "all_reduce (dist.py:99)"],
        ["trainer", 1, "5", [5], "0-2,4,6", True, "data", "next (loader.py:7)"],
        ["critic", 0, "", [], "", False, "unobserved", ""],
    ]
    sql = "SELECT unobserved, unobserved_reasons, more_groups, more_ranks, more_classes, functions, lines FROM"
    assert ask(client, f"{sql} merged_stacks_latest ORDER BY class_number, group_number LIMIT 1") == [
        [["3"], ["Permission denied"], 1, "2", 2, ["main", "all_reduce"], [10, 99]],
    ]
    assert ask(client, "SELECT uniqExact(ts), count() FROM merged_stacks FINAL") == [[2, 6]]
    assert ask(client, "SELECT stacks FROM incidents_latest WHERE id = 'i1'") == [
        [["ranks 0-2,4,6 in all_reduce (dist.py:99); rank 5 in next (loader.py:7)"]]
    ]


def test_comparisons_latest_says_how_a_job_stood_last_beside_others(client: Client) -> None:
    sql = "SELECT verdict, library_jobs, baseline, setting_names, goes_with_names, goes_with_having_shown"
    assert ask(client, f"{sql} FROM comparisons_latest") == [["supported", ["a", "b"], ["a"], ["fp8"], ["fp8"], [2]]]
    assert ask(client, "SELECT count() FROM comparisons FINAL") == [[2]]


def test_rank_timeline_tells_what_a_rank_did(client: Client) -> None:
    sql = (
        "SELECT ts, phase, iteration, activities, fatal_rules, exit_codes FROM rank_timeline WHERE rank = 3 ORDER BY ts"
    )
    assert ask(client, sql) == [
        ["2025-11-29T12:00:00.123456789Z", "train", 40, ["communication"], ["oom"], [None, 1]],
        ["2025-11-29T12:00:10.123456789Z", "train", 40, ["communication"], ["oom"], [None, 1]],
    ]
    assert ask(client, "SELECT DISTINCT worker FROM rank_timeline ORDER BY worker") == [["3"], ["4"]]


def test_fatals_show_a_line_with_its_template_and_what_was_extracted(client: Client) -> None:
    sql = (
        "SELECT DISTINCT worker, rule, template, role, process_type, extracted['pid'], text FROM fatals WHERE rank = 3"
    )
    assert ask(client, sql) == [["3", "oom", "host.oom_node", "candidate", "kernel", "42", "CUDA OOM"]]
    assert ask(client, "SELECT count() FROM fatals") == [[4]]
    names = "fatal_templates, fatal_values"
    assert ask(client, f"SELECT {names} FROM windows_latest LIMIT 1")[0] == [
        ["host.oom_node"],
        [{"constraint": "CONSTRAINT_NONE", "pid": "42"}],
    ]


def test_fatals_of_windows_that_are_older_than_their_columns_are_shown(client: Client) -> None:
    columns = "job, ts, worker, rank, id, fatal_rules, fatal_texts"
    values = "'old', '2025-11-29 12:00:00', '5', 5, 'w-old', ['oom', 'xid'], ['a', 'b']"
    client.command(f"INSERT INTO windows ({columns}) VALUES ({values})")
    sql = "SELECT printed, rule, template, text FROM fatals WHERE job = 'old' ORDER BY rule"
    assert ask(client, sql) == [
        ["2025-11-29T12:00:00.000000000Z", "oom", "", "a"],
        ["2025-11-29T12:00:00.000000000Z", "xid", "", "b"],
    ]


def test_log_templates_count_what_was_printed_once(client: Client) -> None:
    sql = "SELECT id, text, records, workers FROM log_templates"
    assert ask(client, sql) == [["t1", "loss is <*>", 20, ["3", "4", "node:node02"]]]


def test_otel_logs_speak_opentelemetry(client: Client) -> None:
    names, types, rows = query(client, "SELECT * FROM otel_logs ORDER BY Timestamp LIMIT 1", 5)
    row = dict(zip(names, rows[0], strict=True))
    kinds = dict(zip(names, types, strict=True))
    assert row["Timestamp"] == "2025-11-29T12:00:00.123456789Z"
    assert (row["SeverityText"], row["SeverityNumber"], row["ServiceName"]) == ("WARNING", 13, "job1")
    assert str(row["Body"]).startswith("loss is nan\nat step 40")
    assert row["ResourceAttributes"] == {
        "service.name": "job1",
        "service.instance.id": "3",
        "host.name": "node02",
        "k8s.cluster.name": "c1",
        "rankwatch.attempt": "0",
        "rankwatch.rank": "3",
        "rankwatch.local_rank": "1",
        "rankwatch.role": "trainer",
        "rankwatch.process_type": "trainer",
        "rankwatch.coordinates": "dp=1 pp=0,4",
    }
    assert row["LogAttributes"]["log.file.path"] == "/logs/3.out"
    assert row["LogAttributes"]["rankwatch.iteration"] == "40"
    assert {row[name] for name in ("TraceId", "SpanId", "EventName", "ScopeVersion", "RunId")} == {""}
    assert kinds["ResourceAttributes"] == kinds["LogAttributes"] == "Map(String, String)"
    assert kinds["SeverityNumber"] == "UInt8"
    assert ask(client, "SELECT count() FROM otel_logs WHERE ServiceName = 'job1'") == [[2]]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT nope FROM logs", "Unknown expression identifier `nope`"),
        ("SELECT * FROM no_such", "Unknown table expression identifier 'no_such'"),
        ("SELEC 1", "SELEC is refused"),
        ("SELECT throwIf(number = 100000) FROM numbers(200000)", "is non-zero"),
        ("  -- nothing", "there is no statement"),
        ("/**/" * 5000, "there is no statement"),
        ("CREATE TABLE z (a Int32) ENGINE = Memory", "CREATE is refused: only statements that read"),
        ("-- x\n ((drop table logs", "DROP is refused"),
        ("SELECT 1 INTO /* x */ OUTFILE '/tmp/x'", "INTO OUTFILE is refused"),
        ("SELECT 1 INTO" + "/**/ -- x\n" * 5000 + "x", "Syntax error"),
    ],
)
def test_wrong_sql_is_one_line_and_the_client_lives_on(client: Client, sql: str, message: str) -> None:
    with pytest.raises(SinkError) as caught:
        query(client, sql, 500_000)
    text = str(caught.value)
    assert message in text
    assert "\n" not in text
    assert "version" not in text
    assert "Stack trace" not in text
    assert ask(client, "SELECT 1") == [[1]]


def test_answers_are_bounded_exact_and_named_even_when_empty(client: Client) -> None:
    assert query(client, "SELECT number FROM numbers(1000000) -- many", 3) == (["number"], ["UInt64"], [[0], [1], [2]])
    assert query(client, "SELECT 1 AS a, ts FROM logs WHERE 0;", 3) == (
        ["a", "ts"],
        ["UInt8", "DateTime64(9, 'UTC')"],
        [],
    )
    assert ask(client, "SHOW TABLES LIKE 'incidents'") == [["incidents"]]
    noon = "toDateTime('2025-11-29 12:00:00', 'Asia/Tokyo')"
    sql = f"SELECT [ts], toNullable(ts), {noon}, toDate('2025-11-29') FROM logs FINAL ORDER BY ts LIMIT 1"
    times, one, tokyo, day = ask(client, sql)[0]
    assert (times, one) == (["2025-11-29T12:00:00.123456789Z"], "2025-11-29T12:00:00.123456789Z")
    assert (tokyo, str(day)) == ("2025-11-29T03:00:00Z", "2025-11-29")


def test_an_answer_without_end_ends_at_the_bound(client: Client) -> None:
    assert ask(client, "SELECT number FROM system.numbers")[-1] == [99]
    assert ask(client, "SELECT number FROM numbers(1000) LIMIT 500") == [[number] for number in range(100)]
    assert ask(client, "SELECT number FROM numbers(1000) ORDER BY number DESC LIMIT 2 OFFSET 1") == [[998], [997]]
    assert ask(client, "SELECT count() FROM (SELECT number FROM numbers(1000))") == [[1000]]
    assert len(ask(client, "SELECT number FROM numbers(1000) UNION ALL SELECT number FROM numbers(1000)")) == 100
