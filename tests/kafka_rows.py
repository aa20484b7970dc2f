"""What a database shows of a run, to compare two of them row by row."""

from __future__ import annotations

from pathlib import Path

from producers.recording import Recording
from rankwatch import diagnose
from schemas.codec import kind_of
from sinks.clickhouse import Client, open_client
from sinks.migrate import migrate
from sinks.sink import Sink

EVENT_TABLES = {"log": "logs", "stack": "stacks", "collective": "collectives"}
"""Kind to the table in which every event of it is one row, and nothing else is."""

_TABLES = (
    "SELECT name FROM system.tables WHERE database = currentDatabase() AND engine LIKE '%MergeTree'"
    " AND name NOT IN ('migrations', 'runs') ORDER BY name"
)

_COMPARED = {
    "meta_alerts": "name != 'watchdog'"
    " OR (subject, since) IN (SELECT subject, max(since) FROM meta_alerts WHERE name = 'watchdog' GROUP BY subject)"
}
"""Which rows of a table are compared, where not all: a partition that holds no job passes over as many minutes at once
as have been reported to it by then, and is heard for the last of them (``streams.meta.beat``)."""

Rows = dict[str, list[str]]
"""Rows by table, as text, sorted."""


def visible(client: Client) -> Rows:
    """The rows of every table as a query with FINAL shows them, but for the run id, which tells deployments apart."""
    shown = {}
    for (table,) in client.query(_TABLES).result_rows:
        sql = f"SELECT * EXCEPT run_id FROM {table} FINAL WHERE {_COMPARED.get(table, '1')} ORDER BY ALL"
        shown[table] = sorted(repr(row) for row in client.query(sql, query_formats={"DateTime64": "int"}).result_rows)
    return shown


def shown_at(dsn: str) -> Rows:
    with open_client(dsn) as client:
        return visible(client)


def expected_rows(recording: Recording, place: Path) -> Rows:
    """What a database shows after a run in memory, stored as if it were live."""
    found = diagnose.run(recording)
    with open_client(f"chdb://{place}") as client:
        migrate(client)
        Sink(found.log, client).drain()
        return visible(client)


def produced(recording: Recording) -> dict[str, int]:
    """Events by table, for the kinds of which every event is one row."""
    counts = dict.fromkeys(EVENT_TABLES.values(), 0)
    for arrival in recording.arrivals:
        table = EVENT_TABLES.get(kind_of(arrival.batch))
        if table:
            counts[table] += len(arrival.batch.events)
    return counts


def losses(expected: Rows, found: Rows) -> tuple[int, int, int]:
    """How many rows are lost, are others than expected, and are shown twice."""
    lost = others = twice = 0
    for table in expected.keys() | found.keys():
        wanted, seen = expected.get(table, []), found.get(table, [])
        lost += len(set(wanted) - set(seen))
        others += len(set(seen) - set(wanted))
        twice += len(seen) - len(set(seen))
    return lost, others, twice


def differences(expected: Rows, found: Rows) -> list[str]:
    """By table, in words, what is lost, other, or shown twice; empty where both show the same."""
    said = []
    for table in sorted(expected.keys() | found.keys()):
        wanted, seen = {table: expected.get(table, [])}, {table: found.get(table, [])}
        lost, others, twice = losses(wanted, seen)
        if lost or others or twice:
            said.append(f"{table}: {lost} lost, {others} others, {twice} twice, of {len(wanted[table])}")
    return said
