"""A sink's group without a broker, and a client that writes down what is inserted, in one list with the commits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import sink_support as support
from clickhouse_front import Front

from schemas import events
from schemas.ports import Entry
from sinks.clickhouse import Client
from sinks.live import LiveSink, Pace
from sinks.sink import SINK_TOPICS, Limits, Place

PACE = Pace(flush_s=1.0, wait_s=0.0)
TABLE = "logs"


class Insert(msgspec.Struct, frozen=True):
    """One try to insert; ``data`` are the columns' bytes."""

    at: float
    table: str
    token: str
    data: bytes


class Commit(msgspec.Struct, frozen=True):
    """One try to commit."""

    at: float
    offsets: dict[Place, int]


class Desk:
    """A live sink over a log in memory and a real database, driven by a clock that is counted.

    ``calls`` are the tries to insert and commit in order, ``holds`` says of each poll whether it was told to bring
    nothing. The sink reads on at what is committed after ``rebalance``.
    """

    def __init__(self, client: Client, limits: Limits | None = None) -> None:
        self.log = support.MemoryLog(2)
        self.calls: list[Insert | Commit] = []
        self.holds: list[bool] = []
        self.refused_commits = 0
        self.committed: dict[Place, int] = {}
        self.now = 0.0
        self.lines = 0
        self._positions: dict[Place, int] = {}
        self._client = client
        self._limits = limits
        self.sink = self._new_sink()

    def _new_sink(self) -> LiveSink:
        return LiveSink(self, self, limits=self._limits, pace=PACE)

    def put(self, lines: int = 1) -> None:
        """Append so many lines, each an entry of its own."""
        for _ in range(lines):
            number = self.lines = self.lines + 1
            line = events.Log(time=support.T0 + number, stream="stdout", text=f"line {number}")
            self.log.put(support.batch(line, seq=number), partition=number % 2)

    def step(self, seconds: float = 0.25) -> None:
        """One step of the sink, so much later than the last."""
        self.now += seconds
        self.sink.step(self.now)

    def steps(self, number: int) -> None:
        for _ in range(number):
            self.step()

    def rebalance(self) -> None:
        """The partitions went to others and came back."""
        self.sink.forget()
        self._positions = {}

    def crash(self) -> None:
        """The process dies; another begins at what is committed."""
        self.sink, self._positions = self._new_sink(), {}

    @property
    def inserts(self) -> list[Insert]:
        return [call for call in self.calls if isinstance(call, Insert)]

    @property
    def commits(self) -> list[Commit]:
        return [call for call in self.calls if isinstance(call, Commit)]

    # The client, as far as it is not passed on.

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def insert(self, table: str, data: Sequence[Sequence[Any]], *columns: Any, **more: Any) -> Any:
        token = more["settings"]["insert_deduplication_token"]
        self.calls.append(Insert(self.now, table, token, msgspec.msgpack.encode(data)))
        return self._client.insert(table, data, *columns, **more)

    # The subscription.

    def poll(self, limit: int, wait_s: float, *, hold: bool = False) -> Sequence[tuple[str, int, Entry]]:
        self.holds.append(hold)
        found: list[tuple[str, int, Entry]] = []
        if hold:
            return found
        for topic in SINK_TOPICS:
            for partition in range(self.log.partitions(topic)):
                at = self._positions.get((topic, partition), self.committed.get((topic, partition), 0))
                entries = self.log.read(topic, partition, at, limit - len(found))
                found += [(topic, partition, entry) for entry in entries]
                self._positions[topic, partition] = at + len(entries)
        return found

    def commit(self, offsets: Mapping[Place, int]) -> bool:
        self.calls.append(Commit(self.now, dict(offsets)))
        if self.refused_commits:
            self.refused_commits -= 1
            return False
        self.committed |= offsets
        return True


def at_work(client: Client) -> Desk:
    """A sink that has stored and committed one line already, so that it knows the table."""
    desk = Desk(client)
    desk.put()
    desk.steps(6)
    assert desk.commits and not desk.sink.held
    desk.calls, desk.holds = [], []
    return desk


def visible(client: Client) -> list[tuple[str, int]]:
    """Lines as a reader sees them, and how often each."""
    rows = client.query(
        f"SELECT text, count() FROM {TABLE} FINAL GROUP BY text ORDER BY length(text), text"
    ).result_rows
    return [(text, count) for text, count in rows]


def once(lines: int) -> list[tuple[str, int]]:
    """What is visible where each line is stored once."""
    return [(f"line {number}", 1) for number in range(1, lines + 1)]


@contextmanager
def away(client: Client, front: Front | None) -> Iterator[None]:
    """ClickHouse cannot be inserted into: its port is closed, or in the embedded engine the table is gone."""
    if front is None:
        client.command(f"RENAME TABLE {TABLE} TO away")
    else:
        front.refuse_connections()
    try:
        yield
    finally:
        if front is None:
            client.command(f"RENAME TABLE away TO {TABLE}")
        else:
            front.listen_again()
