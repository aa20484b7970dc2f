"""What only a server can do to the sink: lose answers, refuse, restart, and see who asks for what."""

from __future__ import annotations

import os
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
import sink_support as support
from clickhouse_front import PASSWORD, Front

from schemas import events
from sinks.clickhouse import Client, open_client
from sinks.errors import SinkError
from sinks.migrate import migrate, migrations
from sinks.query import query
from sinks.rows import Block, blocks_of
from sinks.sink import Sink
from sinks.writer import Writer

TOO_MANY_PARTS = (
    "Too many parts (3000 with average size of 1.00 KiB) in table 'x.anomalies'."
    " Merges are processing significantly slower than inserts. (TOO_MANY_PARTS)"
)
TOO_MANY_QUERIES = "Too many simultaneous queries. Maximum: 100. (TOO_MANY_SIMULTANEOUS_QUERIES)"


@pytest.fixture
def client(front: Front, database: str) -> Iterator[Client]:
    with open_client(front.dsn(database)) as opened:
        migrate(opened)
        yield opened


def anomaly_sink(client: Client) -> Sink:
    log = support.MemoryLog()
    log.put(support.anomaly("a1"), support.anomaly("a2"), partition=0)
    return Sink(log, client, topics=["anomalies"])


def count(client: Client) -> int:
    """Rows as they lie there, copies and all."""
    found: int = query(client, "SELECT count() FROM anomalies", 1)[2][0][0]
    return found


def failure(sink: Sink) -> str:
    """What a drain says that fails; it stores nothing and moves no offset, and hides the password in all its forms."""
    with pytest.raises(SinkError) as caught:
        sink.drain()
    assert sink.offsets == {}
    text = str(caught.value)
    login = b64encode(f"writer:{PASSWORD}".encode()).decode()
    assert not [word for word in (PASSWORD, quote(PASSWORD, safe=""), login, "url", "?") if word in text]
    return text.removeprefix("cannot insert into anomalies: ")


def test_what_a_server_refuses_is_said_in_its_words_and_stored_by_the_next_drain(front: Front, client: Client) -> None:
    sink = anomaly_sink(client)
    front.refuse_statements(252, TOO_MANY_PARTS, 500)
    assert failure(sink) == TOO_MANY_PARTS
    front.refuse_statements(202, TOO_MANY_QUERIES, 503, times=2)
    assert [failure(sink), failure(sink)] == [TOO_MANY_QUERIES] * 2
    assert sink.drain() == {"anomalies": 2}
    assert (count(client), front.faults_left()) == (2, 0)


def test_a_busy_server_is_asked_again_by_the_client(front: Front, client: Client) -> None:
    front.refuse_statements(202, TOO_MANY_QUERIES, 503, times=2, statement="SELECT")
    assert query(client, "SELECT 1", 9)[2] == [[1]]
    assert front.faults_left() == 0


def test_a_server_that_went_away_is_one_short_line_and_the_same_sink_goes_on(front: Front, client: Client) -> None:
    sink = anomaly_sink(client)
    front.refuse_connections()
    try:
        assert failure(sink).endswith("no answer from ClickHouse: connection refused")
        with pytest.raises(SinkError, match=r"^no answer from ClickHouse: connection refused$"):
            query(client, "SELECT 1", 9)
        with pytest.raises(SinkError, match=r"^cannot tell which migrations were applied: no answer from ClickHouse: "):
            migrate(client)
    finally:
        front.listen_again()
    assert sink.drain() == {"anomalies": 2}
    assert count(client) == 2


def test_requests_that_are_lost_twice_fail_and_store_nothing(front: Front, client: Client) -> None:
    sink = anomaly_sink(client)
    front.lose_requests(2)
    assert failure(sink) == "no answer from ClickHouse: remote end closed connection"
    assert count(client) == 0
    assert sink.drain() == {"anomalies": 2}
    assert count(client) == 2


@pytest.mark.parametrize("user", ["reader", "analyst"])
def test_a_user_who_may_only_read_is_told_so_when_migrating(front: Front, database: str, user: str) -> None:
    with (
        open_client(front.dsn(database, user=user)) as client,
        pytest.raises(SinkError, match=r"^cannot tell which migrations were applied: .*\(READONLY\)$"),
    ):
        migrate(client)


def test_a_migration_whose_record_was_lost_runs_again(front: Front, database: str) -> None:
    first, *rest = migrations()
    with open_client(front.dsn(database)) as client:
        front.lose_requests(2)
        with pytest.raises(SinkError, match=rf"^migration {first.name} was applied but cannot be recorded: "):
            migrate(client)
        assert migrate(client) == [first.name, *(migration.name for migration in rest)]
        assert migrate(client) == []


def test_an_answer_that_was_lost_once_is_sent_again_by_the_client_under_the_same_token(
    front: Front, client: Client
) -> None:
    sink = anomaly_sink(client)
    before = len(front.seen("INSERT"))
    front.lose_answers(1)
    assert sink.drain() == {"anomalies": 2}
    sent = front.seen("INSERT")[before:]
    assert len(sent) == 2
    assert len({request["insert_deduplication_token"] for request in sent}) == 1
    assert count(client) == 2


def test_an_insert_that_was_stored_but_seems_lost_is_sent_again_and_stored_once(front: Front, client: Client) -> None:
    client.command("SYSTEM STOP MERGES")
    try:
        sink = anomaly_sink(client)
        before = len(front.seen("INSERT"))
        front.lose_answers(2)
        assert failure(sink) == "no answer from ClickHouse: remote end closed connection"
        assert count(client) == 2
        # The same sink again, then one that starts over at its saved offsets after a crash.
        assert sink.drain() == {"anomalies": 2}
        assert anomaly_sink(client).drain() == {"anomalies": 2}
        assert len(front.seen("INSERT")) - before == 4
        assert count(client) == 2
        # What a token is for: the same rows under another one are stored again, until a merge.
        Writer(client).write(alerts_block(1), "first")
        Writer(client).write(alerts_block(1), "second")
        assert query(client, "SELECT count() FROM alerts", 1)[2] == [[2]]
    finally:
        client.command("SYSTEM START MERGES")


def alerts_block(number: int) -> Block:
    log = support.batch(events.Alert(time=support.T0 + number, name="xid", text=""))
    (block,) = blocks_of("alert", log, "", support.T0)
    return block


def test_other_rows_of_the_same_origin_are_never_taken_for_those_already_stored(client: Client) -> None:
    writer = Writer(client)
    for number in (1, 2, 1, 2):
        assert writer.write(alerts_block(number), "run:alerts:0:0-0") == 1
    assert query(client, "SELECT count() FROM alerts", 1)[2] == [[2]]
    # What the engine does with a used token and other rows: it says that it wrote them, and drops them.
    columns = alerts_block(3).columns
    for _ in range(2):
        columns["ts"] = [columns["ts"][0] + 1]
        told = client.insert(
            "alerts",
            list(columns.values()),
            list(columns),
            column_oriented=True,
            settings={"insert_deduplication_token": "used"},
        )
        assert told.written_rows == 1
    assert query(client, "SELECT count() FROM alerts", 1)[2] == [[3]]


def test_inserts_are_never_asynchronous_and_hold_any_number_of_days(front: Front, client: Client) -> None:
    # Asked of the engine, by a default that is evaluated during the insert.
    columns = "a Int32, asynchronous Bool DEFAULT getSetting('async_insert')"
    client.command(f"CREATE TABLE t ({columns}) ENGINE = MergeTree ORDER BY a")
    Writer(client).insert("t", ["a"], [[1]])
    assert query(client, "SELECT a, asynchronous FROM t", 9)[2] == [[1, False]]
    sent = front.seen("INSERT")[-1]
    assert (sent["async_insert"], sent["max_partitions_per_insert_block"]) == ("0", "0")


def test_a_server_that_crashes_and_comes_back_has_what_it_confirmed(tmp_path: Path) -> None:
    own = Front(tmp_path / "db")
    try:
        with open_client(own.dsn()) as client:
            migrate(client)
            sink = anomaly_sink(client)
            assert sink.drain() == {"anomalies": 2}
            own.kill()
            assert failure_of_query(client) == "no answer from ClickHouse: connection refused"
            own.start()
            # The window of tokens is on disk as well.
            assert anomaly_sink(client).drain() == {"anomalies": 2}
            assert count(client) == 2
    finally:
        own.stop()


def failure_of_query(client: Client) -> str:
    with pytest.raises(SinkError) as caught:
        query(client, "SELECT 1", 1)
    return str(caught.value)


TIMES = (0, 1, 1_699_999_999_999_999_999, support.T0, 4_102_444_799_999_999_999)

STORE_TIMES = """
import sys
import sink_support as support
from schemas import events
from sinks.clickhouse import open_client
from sinks.migrate import migrate
from sinks.query import query
from sinks.rows import Block, blocks_of
from sinks.sink import Sink
from sinks.writer import Writer
log = support.MemoryLog()
log.put(support.batch(*(events.Alert(time=int(time), name="xid", text="") for time in sys.argv[3:])))
with open_client(sys.argv[1]) as client:
    migrate(client)
    Sink(log, client).drain()
    print(query(client, sys.argv[2], 9)[2])
"""


def test_times_are_exact_whatever_the_zones_of_client_and_server(tmp_path: Path) -> None:
    sql = "SELECT ts, toUnixTimestamp64Nano(ts), toString(ts), toDate(ts) FROM alerts FINAL ORDER BY ts"
    own = Front(tmp_path / "db", zone="America/St_Johns")
    try:
        there = subprocess.run(
            [sys.executable, "-c", STORE_TIMES, own.dsn(), sql, *map(str, TIMES)],
            env={**os.environ, "TZ": "Asia/Tokyo", "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        )
        with open_client(own.dsn()) as client:
            rows = query(client, sql, 9)[2]
            assert query(client, "SELECT timezone()", 1)[2] == [["America/St_Johns"]]
    finally:
        own.stop()
    assert there.stdout.strip() == repr(rows)
    assert [row[1] for row in rows] == list(TIMES)
    assert rows[3][0] == "2025-11-29T12:00:00.123456789Z"


def test_an_error_in_the_middle_of_an_answer_is_one_line(client: Client) -> None:
    # Past what a server holds back, so that the answer had begun well.
    with pytest.raises(SinkError, match=r"^Value passed to 'throwIf' function is non-zero: .*NON_ZERO\)$"):
        query(client, "SELECT number, throwIf(number = 900000) FROM numbers(1000000)", 10_000_000)
    assert query(client, "SELECT 1", 1)[2] == [[1]]


def test_the_commands_store_on_a_server_and_a_reader_asks_it(front: Front, database: str) -> None:
    def run(*arguments: str) -> str:
        command = [sys.executable, "-m", "rankwatch", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert "supported  [5]" in run("demo", "--clickhouse", front.dsn(database))
    sql = "SELECT suspect_ranks FROM incidents_latest WHERE symptom = 'hang'"
    told = run("sql", sql, "--format", "json", "--clickhouse", front.dsn(database, user="reader"))
    assert told == '{"suspect_ranks":[5]}\n'
