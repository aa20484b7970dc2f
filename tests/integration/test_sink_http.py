"""What only a server can do to the sink: lose answers, refuse, restart, and see who asks for what."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from urllib.parse import quote

import pytest
import sink_support as support
from clickhouse_front import PASSWORD, Front

from sinks.clickhouse import Client, open_client
from sinks.errors import SinkError
from sinks.migrate import migrate, migrations
from sinks.query import query
from sinks.sink import Sink

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
