"""Opening and closing the embedded engine and a server."""

from __future__ import annotations

import fcntl
import os
import re
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from socket import gethostname

import pytest
import sink_support as support
from clickhouse_front import PASSWORD, Front

from schemas import events
from sinks.address import check_dsn
from sinks.clickhouse import open_client
from sinks.errors import SinkError
from sinks.lock import Wait
from sinks.migrate import migrate
from sinks.query import query
from sinks.rows import blocks_of
from sinks.sink import Sink
from sinks.writer import Writer

HOLD = """
import sys
from sinks.clickhouse import open_client
with open_client(sys.argv[1], who="rankwatch \u001b[31msink") as client:
    client.command("CREATE TABLE IF NOT EXISTS t (a Int32) ENGINE = MergeTree ORDER BY a")
    client.command("INSERT INTO t VALUES (1)")
    print("open", flush=True)
    sys.stdin.readline()
"""

FOREIGN = """
import sys
import chdb
connection = chdb.connect(sys.argv[1])
print("open", flush=True)
sys.stdin.readline()
connection.close()
"""

ROUND_TRIP = """
import sys
from sinks.clickhouse import open_client
from sinks.query import query
with open_client(sys.argv[1]) as client:
    print(query(client, sys.argv[2], 9)[2])
"""


def test_paths_open_and_close_one_after_another_in_one_process(tmp_path: Path) -> None:
    for name in ("one", "two", "one"):
        with open_client(f"chdb://{tmp_path / name}") as client:
            client.command("CREATE TABLE IF NOT EXISTS t (a String) ENGINE = MergeTree ORDER BY a")
            client.insert("t", [[name]], ["a"], column_oriented=True)
    with open_client(f"chdb://{tmp_path / 'one'}") as client:
        assert query(client, "SELECT a FROM t", 9)[2] == [["one"], ["one"]]


def test_memory_is_empty_again_after_closing_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        with open_client("chdb://") as client:
            assert migrate(client)
            assert query(client, "SELECT getSetting('async_insert')", 1)[2] == [[False]]
    assert list(tmp_path.iterdir()) == []


def test_a_directory_keeps_only_itself_and_its_lock(tmp_path: Path) -> None:
    with open_client(f"chdb://{tmp_path}/deep/it's a db") as client:
        migrate(client)
    assert sorted(path.name for path in (tmp_path / "deep").iterdir()) == ["it's a db", "it's a db.lock"]


def test_two_at_once_in_one_process_is_a_clear_error(tmp_path: Path) -> None:
    dsn = f"chdb://{tmp_path / 'one'}"
    with open_client(dsn):
        with pytest.raises(SinkError, match="one is already open in this process"), open_client(dsn):
            pass
        with (
            pytest.raises(SinkError, match="this process holds another embedded database"),
            open_client(f"chdb://{tmp_path / 'two'}"),
        ):
            pass
    with open_client(f"chdb://{tmp_path / 'two'}"):
        pass


def test_a_path_that_another_process_holds_is_waited_for_and_then_refused(tmp_path: Path) -> None:
    dsn = f"chdb://{tmp_path / 'db'}"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, dsn], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdin and holder.stdout
        assert holder.stdout.readline() == "open\n"
        held = f"db is open in process {holder.pid} (rankwatch ?[31msink); "
        remedy = "the embedded database serves one process at a time: stop that one first, or use a ClickHouse server"
        with pytest.raises(SinkError, match=f"{re.escape(held + remedy)}$"), open_client(dsn):
            pass
        pauses: list[float] = []
        told: list[str] = []
        wait = Wait(seconds=1, pause=pauses.append, say=told.append)
        with pytest.raises(SinkError, match=re.escape(held + remedy)), open_client(dsn, wait=wait):
            pass
        assert sum(pauses) == pytest.approx(1.0)
        assert [one.removeprefix(str(tmp_path / "")) for one in told] == [f"/{held}waiting 1 s for it"]
        release = threading.Timer(0.3, holder.stdin.close)
        release.start()
        with open_client(dsn, wait=Wait(seconds=20, pause=time.sleep)) as client:
            assert query(client, "SELECT a FROM t", 9)[2] == [[1]]
        release.join()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\x1b[31m",
        "\u0661\u0662",
        "1" * 400,
        "99999999999999 x",
        "-1 x",
        "0",
        f"4194999 {gethostname()} rankwatch sink\n",
        "\xff\n1",
    ],
)
def test_a_lock_file_is_believed_no_more_than_that_a_process_lives(text: str, tmp_path: Path) -> None:
    lock = tmp_path / "db.lock"
    lock.write_bytes(text.encode("latin-1", "ignore"))
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        expected = "db is open in another process; the embedded database serves one process at a time"
        with pytest.raises(SinkError, match=expected) as caught, open_client(f"chdb://{tmp_path / 'db'}"):
            pass
        assert str(caught.value).isprintable()
    with open_client(f"chdb://{tmp_path / 'db'}", who="x"):
        assert lock.read_text() == f"{os.getpid()} {gethostname()} x\n"


def test_process_ids_of_another_machine_or_container_name_no_process_here(tmp_path: Path) -> None:
    lock = tmp_path / "db.lock"
    lock.write_text(f"{os.getpid()} elsewhere rankwatch sink\n")
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        expected = "db is open in another process, rankwatch sink on elsewhere; "
        with pytest.raises(SinkError, match=expected), open_client(f"chdb://{tmp_path / 'db'}"):
            pass


def test_a_path_that_a_foreign_program_holds_is_refused(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", FOREIGN, str(tmp_path / "db")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdin and holder.stdout
        holder.stdout.readline()
        with pytest.raises(SinkError, match="a program that is not ours"), open_client(f"chdb://{tmp_path / 'db'}"):
            pass
        holder.stdin.close()


def test_a_killed_holder_does_not_lock_for_good(tmp_path: Path) -> None:
    dsn = f"chdb://{tmp_path / 'db'}"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, dsn], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout
        holder.stdout.readline()
        holder.kill()
    with open_client(dsn) as client:
        assert query(client, "SELECT a FROM t", 9)[2] == [[1]]


@pytest.mark.parametrize("zone", ["Asia/Tokyo"])
def test_times_are_exact_to_the_nanosecond_in_any_zone(dsn: str, zone: str) -> None:
    times = [support.T0, 0, 1, 1_699_999_999_999_999_999, 4_102_444_799_999_999_999]
    log = support.MemoryLog()
    log.put(support.batch(*(events.Alert(time=time, name="xid", text="") for time in times)))
    with open_client(dsn) as client:
        migrate(client)
        Sink(log, client).drain()
        sql = "SELECT ts, toUnixTimestamp64Nano(ts), toString(ts), toDate(ts) FROM alerts FINAL ORDER BY ts"
        here = query(client, sql, 9)[2]
    assert [row[1] for row in here] == sorted(times)
    assert ["2025-11-29T12:00:00.123456789Z", support.T0, "2025-11-29 12:00:00.123456789"] in [row[:3] for row in here]
    there = subprocess.run(
        [sys.executable, "-c", ROUND_TRIP, dsn, sql],
        env={**os.environ, "TZ": zone},
        capture_output=True,
        text=True,
        check=True,
    )
    assert there.stdout.strip() == repr(here)


def test_an_unreachable_server_is_one_line_without_password() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with (
            pytest.raises(SinkError, match=rf"^cannot reach ClickHouse at 127\.0\.0\.1:{port}: connection refused$"),
            open_client(f"http://me:s3cret@127.0.0.1:{port}/db"),
        ):
            pass


def test_a_server_that_repeats_the_password_never_makes_it_seen(front: Front) -> None:
    text = f"writer: no login with {PASSWORD}. (AUTHENTICATION_FAILED)"
    front.refuse_statements(516, text, 403, statement="SELECT VERSION()")
    with pytest.raises(SinkError) as caught, open_client(front.dsn()):
        pass
    assert str(caught.value).endswith("refuses: writer: no login with ***. (AUTHENTICATION_FAILED)")
    assert caught.value.__suppress_context__


def test_a_wrong_password_and_a_database_that_is_not_there_are_one_clear_line(front: Front) -> None:
    place = rf"^ClickHouse at 127\.0\.0\.1:{front.port} refuses: "
    wrong = "n0t the one"
    with (
        pytest.raises(SinkError, match=place + "writer: Authentication failed: .*AUTHENTICATION_FAILED") as caught,
        open_client(front.dsn(password=wrong)),
    ):
        pass
    assert wrong not in str(caught.value)
    with (
        pytest.raises(SinkError, match=place + r"Database nowhere does not exist\. \(UNKNOWN_DATABASE\)$"),
        open_client(front.dsn("nowhere")),
    ):
        pass


@pytest.mark.parametrize(
    ("dsn", "message"),
    [
        ("chdb://relative/db", "an absolute path"),
        ("chdb:///tmp/db?x=1", "an absolute path without"),
        ("mysql://me:s3cret@host/db", "unknown kind of ClickHouse address 'mysql://me:\\*\\*\\*@host/db'"),
        ("http://me:s3cret@host:port/db", "cannot read the ClickHouse address 'http://me:\\*\\*\\*@host:port/db'"),
        ("http://me:s3cret@host/db?nope=1", "unknown option nope"),
        ("http:///db", "names no host"),
        ("http://host/db?password=s3cret", r"'http://host/db\?password=\*\*\*': unknown option password"),
        ("http://host:8123/db?%70assword=a@s3cret", "unknown option password"),
        ("http://host:port/db?password=s3cret", r"'http://host:port/db\?password=\*\*\*': host or port are malformed"),
        ("http://me:s3cret/x@host/db", "host or port are malformed"),
        ("http://me:s3cret@[host/db", "host or port are malformed"),
        ("mysql://host/db?password=s3cret", r"'mysql://host/db\?password=\*\*\*'"),
        ("chdb:///tmp/db?password=s3cret", r"^chdb:///tmp/db\?password=\*\*\*: an absolute path without"),
        ("chdb", "unknown kind of ClickHouse address 'chdb'"),
        ("chdb:///proc/no/db", "cannot open /proc/no/db: "),
        ("chdb:///dev/null", "cannot open /dev/null: it is not a directory"),
        ("", "unknown kind of ClickHouse address ''"),
    ],
)
def test_wrong_addresses_are_one_clear_line(dsn: str, message: str) -> None:
    with pytest.raises(SinkError, match=message) as caught, open_client(dsn):
        pass
    assert "s3cret" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("dsn", ["chdb://", "chdb:///tmp/db", "https://me:s3cret@host/db?verify=0", "HTTP://host"])
def test_an_address_of_a_known_form_passes_without_being_opened(dsn: str) -> None:
    check_dsn(dsn)


def test_a_reader_cannot_write(dsn: str) -> None:
    with open_client(dsn) as client:
        client.command("CREATE TABLE t (a Int32) ENGINE = MergeTree ORDER BY a")
    with open_client(dsn, read_only=True) as client:
        for sql in ("DROP TABLE t", "INSERT INTO t VALUES (1)", "SET readonly = 0"):
            with pytest.raises(Exception, match="READONLY"):
                client.command(sql)
        assert query(client, "SELECT count() FROM t", 9)[2] == [[0]]
    with open_client(dsn) as client:
        client.command("INSERT INTO t VALUES (1)")


def test_a_reader_sees_rows_once_that_lie_there_twice(dsn: str) -> None:
    line = events.Log(time=support.T0, stream="stdout", text="once")
    (block,) = blocks_of("log", support.batch(line), "", 0)
    with open_client(dsn) as client:
        migrate(client)
        client.command("SYSTEM STOP MERGES logs")
        for origin in ("first", "again"):
            Writer(client).write(block, origin)
        assert query(client, "SELECT count() FROM logs", 9)[2] == [[2]]
    with open_client(dsn, read_only=True) as client:
        assert query(client, "SELECT text FROM logs WHERE text LIKE '%c%' ORDER BY ts LIMIT 9", 9)[2] == [["once"]]
        joined = (
            "WITH l AS (SELECT rank FROM logs) SELECT count(), (SELECT count() FROM logs) FROM l JOIN l AS m USING rank"
        )
        assert query(client, joined, 9)[2] == [[1, 1]]
        assert query(client, "SELECT count() FROM logs FINAL", 9)[2] == [[1]]
        assert query(client, "SELECT count() FROM numbers(3)", 9)[2] == [[3]]


@pytest.mark.parametrize(
    ("user", "readonly", "sent", "final"),
    [("writer", 1, "1", "1"), ("reader", 1, None, None), ("analyst", 2, None, "1")],
)
def test_a_server_is_asked_in_its_read_only_mode(
    front: Front, database: str, user: str, readonly: int, sent: str | None, final: str | None
) -> None:
    with open_client(front.dsn(database, user=user), read_only=True) as client:
        sql = "SELECT getSetting('readonly'), currentDatabase()"
        assert query(client, sql, 9)[2] == [[readonly, database]]
        # A user whose profile only reads may not set `readonly`, not even to what it is.
        assert front.seen("SELECT GETSETTING")[-1].get("readonly") == sent
        assert front.seen("SELECT GETSETTING")[-1].get("final") == final
        for write in ("CREATE TABLE t (a Int32) ENGINE = Memory", f"DROP DATABASE {database}"):
            with pytest.raises(Exception, match="READONLY"):
                client.command(write)
        with pytest.raises(SinkError, match="READONLY"):
            query(client, "SELECT 1 SETTINGS readonly = 0", 9)


@pytest.mark.parametrize("names", [["holiday.jpg"], [".git"], ["logs", "data"]])
def test_a_folder_of_something_else_is_refused_and_left_alone(names: list[str], tmp_path: Path) -> None:
    for name in names:
        (tmp_path / "folder" / name).mkdir(parents=True)
    with (
        pytest.raises(SinkError, match="folder: the folder is not empty and holds no database"),
        open_client(f"chdb://{tmp_path / 'folder'}"),
    ):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
    assert sorted(path.name for path in (tmp_path / "folder").iterdir()) == sorted(names)


def test_an_empty_folder_becomes_a_database(tmp_path: Path) -> None:
    (tmp_path / "db").mkdir()
    for _ in range(2):
        with open_client(f"chdb://{tmp_path / 'db'}") as client:
            assert query(client, "SELECT 1", 9)[2] == [[1]]
