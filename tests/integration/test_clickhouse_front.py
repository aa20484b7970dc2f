"""The front that stands in for a ClickHouse server in tests answers as one, or refuses."""

from __future__ import annotations

import gzip
import http.client
import socket
from base64 import b64encode
from pathlib import Path
from urllib.parse import urlencode

import clickhouse_connect
import pytest
from clickhouse_front import PASSWORD, Front

from sinks.clickhouse import open_client


def ask(
    front: Front, body: str | bytes = b"", *, method: str = "POST", headers: dict[str, str] | None = None, **more: str
) -> tuple[int, http.client.HTTPMessage, bytes]:
    """Status, headers and body of the answer to one request of the writer."""
    login = {"X-ClickHouse-User": "writer", "X-ClickHouse-Key": PASSWORD} if headers is None else headers
    connection = http.client.HTTPConnection("127.0.0.1", front.port, timeout=30)
    try:
        connection.request(method, f"/?{urlencode(more)}", body, login)
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


def test_query_and_body_are_one_statement_in_the_database_that_is_asked_for(front: Front, database: str) -> None:
    assert (
        ask(front, "currentDatabase(), 'a\\tb'", query="SELECT", database=database)[2]
        == f"{database}\ta\\tb\n".encode()
    )
    assert ask(front, "SELECT {x:String}", param_x="it's")[2] == b"it\\'s\n"
    assert ask(front, "SELECT 1 AS a FORMAT JSONEachRow")[2] == b'{"a":1}\n'
    status, headers, body = ask(front, "CREATE TABLE t (a Int32) ENGINE = Memory", database=database)
    assert (status, headers.get("X-ClickHouse-Format"), body) == (200, None, b"")
    assert ask(front, b"1\n2\n", query="INSERT INTO t (a) FORMAT CSV", database=database)[0] == 200
    assert ask(front, "INSERT INTO t VALUES (3)", database=database)[0] == 200
    assert ask(front, "SELECT sum(a) FROM t", database=database)[2] == b"6\n"


def test_settings_hold_for_their_own_request_only(front: Front) -> None:
    sql = "SELECT getSetting('async_insert'), getSetting('max_threads')"
    assert ask(front, sql, async_insert="0", max_threads="3")[2] == b"false\t3\n"
    assert ask(front, sql, max_threads="4")[2] == b"true\t4\n"
    status, headers, body = ask(front, sql, no_such_setting="1")
    assert (status, headers["X-ClickHouse-Exception-Code"]) == (404, "115")
    assert body.startswith(b"Code: 115. DB::Exception: Unknown setting 'no_such_setting'")


@pytest.mark.parametrize(
    ("sql", "status", "code"),
    [("SELEC 1", 400, "62"), ("SELECT * FROM nowhere", 404, "60"), ("SELECT throwIf(1)", 500, "395")],
)
def test_an_exception_has_its_status_its_code_and_the_version(front: Front, sql: str, status: int, code: str) -> None:
    found, headers, body = ask(front, sql)
    assert (found, headers["X-ClickHouse-Exception-Code"]) == (status, code)
    assert body.startswith(f"Code: {code}. DB::Exception: ".encode())
    assert b"(version 26." in body


def test_only_post_may_write(front: Front, database: str) -> None:
    _, headers, body = ask(front, method="GET", query="CREATE TABLE t (a Int32) ENGINE = Memory", database=database)
    assert headers["X-ClickHouse-Exception-Code"] == "164"
    assert b"READONLY" in body
    assert ask(front, method="GET", query="SELECT getSetting('readonly')")[2] == b"2\n"


def test_nobody_comes_in_without_the_password(front: Front) -> None:
    basic = b64encode(b"writer:wrong").decode()
    for headers in (
        {},
        {"Authorization": f"Basic {basic}"},
        {"X-ClickHouse-User": "nobody", "X-ClickHouse-Key": PASSWORD},
    ):
        status, answered, body = ask(front, "SELECT 1", headers=headers)
        assert (status, answered["X-ClickHouse-Exception-Code"]) == (403, "516")
        assert b"Authentication failed" in body


def test_what_the_front_does_not_serve_it_refuses(front: Front) -> None:
    for name in ("session_id", "compress", "role"):
        status, headers, _ = ask(front, "SELECT 1", **{name: "1"})
        assert (status, headers["X-ClickHouse-Exception-Code"]) == (501, "48")
    connection = http.client.HTTPConnection("127.0.0.1", front.port, timeout=30)
    for path, status, body in (("/ping", 200, b"Ok.\n"), ("/play", 404, b"There is no handle /play\n")):
        connection.request("GET", path)
        response = connection.getresponse()
        assert (response.status, response.read()) == (status, body)
    connection.close()


def test_an_insert_that_breaks_off_stores_nothing(front: Front, database: str) -> None:
    ask(front, "CREATE TABLE t (a Int32) ENGINE = Memory", database=database)
    path = "/?" + urlencode(
        {"query": "INSERT INTO t FORMAT CSV", "database": database, "user": "writer", "password": PASSWORD}
    )
    for head, body in (
        ("Content-Length: 100", "1\n2\n"),
        ("Transfer-Encoding: chunked", "4\r\n1\n2\n\r\n"),
        ("Content-Encoding: gzip\r\nContent-Length: 4", "1\n2\n"),
    ):
        with socket.create_connection(("127.0.0.1", front.port), timeout=30) as raw:
            raw.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\n{head}\r\n\r\n{body}".encode())
            raw.shutdown(socket.SHUT_WR)
            assert b"500 Internal Server Error" in raw.recv(1 << 16)
    assert ask(front, "SELECT count() FROM t", database=database)[2] == b"0\n"
    login = {"X-ClickHouse-User": "writer", "X-ClickHouse-Key": PASSWORD, "Content-Encoding": "gzip"}
    more = {"query": "INSERT INTO t FORMAT CSV", "database": database}
    assert ask(front, gzip.compress(b"1\n2\n"), headers=login, **more)[0] == 200
    assert ask(front, "SELECT count() FROM t", database=database)[2] == b"2\n"


@pytest.mark.parametrize("compress", ["lz4", "zstd", "gzip", False])
def test_the_client_writes_and_reads_large_answers_in_every_compression(
    front: Front, database: str, compress: str | bool
) -> None:
    rows = [[number, "x" * 20] for number in range(100_000)]
    client = clickhouse_connect.get_client(
        host="127.0.0.1",
        port=front.port,
        username="writer",
        password=PASSWORD,
        database=database,
        compress=compress,
        autogenerate_session_id=False,
    )
    login = {"X-ClickHouse-User": "writer", "X-ClickHouse-Key": PASSWORD, "Accept-Encoding": compress or "identity"}
    _, headers, _ = ask(front, "SELECT 1", headers=login, enable_http_compression="1")
    assert headers.get("Content-Encoding") == (compress or None)
    client.command("CREATE TABLE t (a UInt32, b LowCardinality(String)) ENGINE = MergeTree ORDER BY a")
    assert client.insert("t", rows, ["a", "b"]).written_rows == len(rows)
    sql = "SELECT a, b FROM t ORDER BY a"
    assert [list(row) for row in client.query(sql).result_rows] == rows
    with client.query_row_block_stream(sql) as blocks:
        assert [list(row) for block in blocks for row in block] == rows
    client.close()


def test_parameters_come_in_forms_too(front: Front) -> None:
    client = clickhouse_connect.get_client(
        host="127.0.0.1",
        port=front.port,
        username="writer",
        password=PASSWORD,
        autogenerate_session_id=False,
        form_encode_query_params=True,
    )
    found = client.query("SELECT {a:String}, {n:Array(Int8)}", parameters={"a": "it's\n\\", "n": [1, 2]}).result_rows
    assert [tuple(row) for row in found] == [("it's\n\\", [1, 2])]
    assert client.ping()
    client.close()


def test_data_and_port_outlive_a_stop_and_a_crash(tmp_path: Path) -> None:
    own = Front(tmp_path / "db")
    try:
        port = own.port
        with open_client(own.dsn()) as client:
            client.command("CREATE TABLE t (a Int32) ENGINE = MergeTree ORDER BY a")
            for end in (own.stop, own.kill):
                client.command("INSERT INTO t VALUES (1)")
                end()
                own.start()
            assert client.command("SELECT count() FROM t") == 2
        assert own.port == port
    finally:
        own.stop()
