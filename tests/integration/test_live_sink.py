"""The sink of a running pipeline over both engines: stored, then committed; whatever fails, each line is seen once."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise

import pytest
import sink_support as support
from clickhouse_front import Front
from exposition_support import exposed, samples, value
from live_sink_support import Commit, Desk, Insert, at_work, away, once, visible

from schemas import codec
from schemas.ports import Entry
from sinks.clickhouse import Client, open_client
from sinks.live import LAST_RETRY_S
from sinks.metrics import SinkMetrics
from sinks.migrate import migrate
from sinks.sink import Limits

# A pause begins with the step behind the try, a quarter of a second later here.
PAUSES = [pause + 0.25 for pause in (0.5, 1, 2, 4, 8, 16, 30, 30)]


@pytest.fixture
def client(dsn: str) -> Iterator[Client]:
    with open_client(dsn) as opened:
        migrate(opened)
        yield opened


@pytest.fixture
def server(request: pytest.FixtureRequest, dsn: str) -> Front | None:
    """The front where the database lies behind one."""
    if dsn.startswith("chdb"):
        return None
    running: Front = request.getfixturevalue("front")
    return running


def test_rows_are_stored_and_only_then_committed(client: Client) -> None:
    desk = Desk(client)
    desk.log.put(*support.everything())
    desk.put(6)
    desk.steps(8)
    tables = [call.table if isinstance(call, Insert) else "commit" for call in desk.calls]
    assert tables.count("commit") == 1 and tables[-1] == "commit"
    assert {"logs", "windows", "incidents", "anomalies", "dead_letters"} < set(tables)
    ends = {(topic, number): desk.log.end(topic, number) for topic, number in desk.committed}
    assert desk.committed == ends
    assert desk.sink.held == 0
    assert sum(desk.sink.counts.values()) > len(support.everything())


def test_small_batches_wait_for_others_and_full_ones_are_stored_at_once(client: Client) -> None:
    desk = Desk(client, Limits(rows=10))
    desk.put(3)
    desk.steps(4)
    assert (desk.sink.held, desk.calls) == (3, [])
    desk.put(2)
    desk.step()
    assert [call.at for call in desk.calls] == [1.25, 1.25], "a second after the first line came"
    assert visible(client) == once(3)
    assert desk.sink.held == 2, "those that came with the step that stored the others"
    desk.put(40)
    desk.steps(2)
    assert [call.at for call in desk.calls][2:] == [1.75, 1.75], "the step after the one that read them"
    assert visible(client) == once(45)
    assert desk.holds.count(True) == 0


def test_a_batch_that_is_full_by_bytes_is_stored_at_once(client: Client) -> None:
    desk = Desk(client, Limits(value_bytes=300))
    desk.put(2)
    desk.steps(2)
    assert [type(call) for call in desk.calls] == [Insert, Commit]


def test_while_clickhouse_is_away_the_same_bytes_are_tried_again_with_growing_pauses_and_nothing_is_read(
    client: Client, server: Front | None
) -> None:
    desk = at_work(client)
    desk.put(5)
    desk.step()
    with away(client, server):
        desk.steps(4 * 95)
        assert desk.sink.trouble.startswith("cannot insert into logs: ") and "\n" not in desk.sink.trouble
        desk.put(5)
        desk.step()
    tries = desk.inserts
    assert [later.at - sooner.at for sooner, later in pairwise(tries)] == PAUSES
    assert len({(call.table, call.token, call.data) for call in tries}) == 1
    assert (desk.commits, desk.sink.retries, desk.sink.entries) == ([], len(tries), 6)
    assert desk.holds[5:] == [True] * len(desk.holds[5:]), "it stays a member and is brought nothing"
    desk.steps(4 * (int(LAST_RETRY_S) + 3))
    assert desk.inserts[len(tries)].token == tries[0].token
    assert (visible(client), desk.sink.trouble) == (once(11), "")
    assert desk.sink.retries == len(tries)


def test_pauses_are_short_again_after_all_went_well(client: Client, server: Front | None) -> None:
    desk = at_work(client)
    for _ in range(2):
        desk.put()
        desk.step()
        before = len(desk.inserts)
        with away(client, server):
            desk.steps(14)
        tries = desk.inserts[before:]
        assert [later.at - sooner.at for sooner, later in pairwise(tries)] == PAUSES[:2]
        desk.steps(12)
        assert desk.sink.trouble == ""
    assert visible(client) == once(3)


def test_one_table_that_fails_lets_no_other_be_stored_twice_and_nothing_be_committed(client: Client) -> None:
    desk = Desk(client)
    desk.log.put(support.anomaly(), support.incident(), support.late(), support.template())
    desk.put(2)
    desk.step()
    client.command("RENAME TABLE incidents TO elsewhere")
    desk.steps(12)
    assert desk.commits == []
    client.command("RENAME TABLE elsewhere TO incidents")
    desk.steps(20)
    assert len(desk.commits) == 1
    for table in ("logs", "late", "anomalies", "templates"):
        assert len([call for call in desk.inserts if call.table == table]) == 1, table


def test_a_commit_that_fails_is_tried_again_without_storing_again(client: Client) -> None:
    desk = Desk(client)
    desk.put(3)
    desk.step()
    desk.refused_commits = 4
    desk.steps(4 * 10)
    assert len(desk.inserts) == 1
    assert [later.at - sooner.at for sooner, later in pairwise(desk.commits)] == PAUSES[:4]
    assert len({str(call.offsets) for call in desk.commits}) == 1
    assert (desk.sink.trouble, desk.sink.retries) == ("", 4)
    assert desk.committed == {("stamped.logs", 0): 1, ("stamped.logs", 1): 2}
    assert visible(client) == once(3)


def test_while_a_commit_fails_it_says_so_and_reads_nothing(client: Client) -> None:
    desk = Desk(client)
    desk.put(3)
    desk.step()
    desk.refused_commits = 1
    desk.steps(4)
    assert desk.sink.trouble == "Kafka does not take the offsets"
    desk.put(3)
    desk.step()
    assert (desk.holds[-1], desk.sink.held) == (True, 0)


def test_forgetting_drops_what_is_not_committed_and_it_is_read_again(client: Client, server: Front | None) -> None:
    desk = Desk(client)
    desk.put(4)
    desk.step()
    assert desk.sink.held == 4
    desk.rebalance()
    assert (desk.sink.held, desk.calls) == (0, [])
    desk.step()
    with away(client, server):
        desk.steps(12)
        assert desk.sink.trouble
        desk.rebalance()
        assert (desk.sink.held, desk.sink.trouble) == (0, "")
    desk.refused_commits = 1
    desk.steps(6)
    assert desk.sink.trouble, "stored and not committed"
    desk.rebalance()
    desk.steps(8)
    assert desk.committed == {("stamped.logs", 0): 2, ("stamped.logs", 1): 2}
    assert visible(client) == once(4)


def test_what_is_left_is_stored_and_committed_in_the_end(client: Client, server: Front | None) -> None:
    desk = at_work(client)
    desk.put(4)
    desk.step()
    with away(client, server):
        desk.steps(8)
        tries = len(desk.inserts)
        desk.sink.finish()
        assert len(desk.inserts) == tries + 1, "once more, whatever the pause"
        assert (desk.commits, desk.sink.held) == ([], 4)
    desk.sink.finish()
    assert desk.committed == {("stamped.logs", 0): 2, ("stamped.logs", 1): 3}
    assert visible(client) == once(5)
    before = len(desk.calls)
    desk.sink.finish()
    assert len(desk.calls) == before, "nothing is left"


@pytest.mark.parametrize("seed", range(4))
def test_every_line_is_seen_once_whatever_fails_in_whatever_order(
    client: Client, server: Front | None, seed: int
) -> None:
    chance = random.Random(seed)
    desk = Desk(client, Limits(rows=7))
    for _ in range(60):
        desk.put(chance.randint(0, 5))
        match chance.randrange(8):
            case 0:
                with away(client, server):
                    desk.steps(chance.randint(1, 9))
            case 1 if server is not None:
                server.lose_answers(chance.randint(1, 2))
            case 2 if server is not None:
                server.refuse_statements(252, "Too many parts (300). (TOO_MANY_PARTS)", 500)
            case 3:
                desk.refused_commits = chance.randint(1, 3)
            case 4:
                desk.rebalance()
            case 5:
                desk.crash()
        desk.steps(chance.randint(1, 6))
    desk.refused_commits = 0
    desk.steps(4 * 2 * int(LAST_RETRY_S))
    assert (desk.sink.trouble, desk.sink.held) == ("", 0)
    assert desk.committed == {("stamped.logs", number): desk.log.end("stamped.logs", number) for number in (0, 1)}
    assert visible(client) == once(desk.lines)


@pytest.mark.parametrize("sent", [2**63, 10**19, -(2**70)])
def test_a_record_sent_at_no_time_at_all_stops_nothing(client: Client, sent: int) -> None:
    desk = Desk(client)
    desk.put()
    entry: Entry = desk.log.read("stamped.logs", 1, 0, 1)[0]
    for body in (entry.value, b"{", codec.encode(support.identity())):
        desk.log.append("stamped.logs", b"k", body, entry.headers, sent, 1)
    desk.put()
    desk.steps(8)
    assert (desk.sink.trouble, desk.sink.held) == ("", 0)
    assert visible(client) == once(2)
    assert desk.sink.counts["dead_letters"] == 2


def test_its_metrics_follow_it(client: Client, server: Front | None) -> None:
    desk = Desk(client)
    metrics = SinkMetrics(lambda: desk.sink, lambda: bool(desk.sink.trouble), lambda: {("stamped.logs", 0): 0})
    desk.put(3)
    desk.step()
    with away(client, server):
        desk.steps(8)
        found = samples(exposed(metrics))
        assert value(found, "rankwatch_held_entries") == value(found, "rankwatch_entries_total") == 3
        assert (value(found, "rankwatch_retries_total"), value(found, "rankwatch_sink_waits")) == (2, 1)
    desk.steps(8)
    found = samples(exposed(metrics))
    assert (value(found, "rankwatch_held_entries"), value(found, "rankwatch_rows_total", table="logs")) == (0, 3)
    assert value(found, "rankwatch_sink_waits") == 0
    never = SinkMetrics(lambda: None, lambda: True, dict)
    assert [(name, amount) for (name, _), amount in samples(exposed(never)).items()] == [("rankwatch_sink_waits", 1)]
