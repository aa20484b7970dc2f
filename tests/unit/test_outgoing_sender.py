"""The whole outgoing side: events from many threads to records in the log."""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec
import pytest
from outgoing_support import SECOND, SMALL, T0, FakeTransport, dropped, spool_at

from producers.outgoing.folder import SpoolError
from producers.outgoing.sender import Sender
from schemas.codec import decode
from schemas.events import Log, Metric, Stack
from schemas.identity import Identity

RANKS = [Identity(job="j", rank=rank, node="n") for rank in range(4)]


def metric(n: int) -> Metric:
    return Metric(time=T0 + n, name="m", value=float(n))


def sender_at(root: Path, transport: FakeTransport, boot: str = "b1") -> Sender:
    return Sender(
        "node02", boot, transport, root, msgspec.structs.replace(SMALL, inbox_bytes=5_000_000, spool_bytes=5_000_000)
    )


def test_events_arrive_in_batches_a_second_later(tmp_path: Path) -> None:
    transport = FakeTransport()
    sender = sender_at(tmp_path, transport)
    for n in range(10):
        sender.add(RANKS[0], metric(n), T0 + n)
    sender.pump(T0 + SECOND - 1)
    sender.pump(T0 + SECOND - 1)
    assert transport.delivered == [] and 0 < sender.memory_bytes < 3_000
    sender.pump(T0 + SECOND)
    sender.pump(T0 + SECOND)
    [record] = transport.delivered
    batch = decode("metric", record.value)
    assert [event.value for event in batch.events] == list(range(10))
    assert (batch.producer, batch.boot, batch.seq) == ("node02", "b1", 0)
    assert sender.memory_bytes == 0 and sender.counters.sent_events == 10


def test_batches_of_many_threads_keep_their_numbers_order(tmp_path: Path) -> None:
    transport = FakeTransport()
    sender = sender_at(tmp_path, transport)

    def caller(offset: int) -> None:
        for n in range(300):
            sender.add(RANKS[n % 4], Log(time=T0, stream="s", text="x" * 200), T0 + n + offset)

    threads = [threading.Thread(target=caller, args=(offset,)) for offset in range(4)]
    for thread in threads:
        thread.start()
    now = T0
    while any(thread.is_alive() for thread in threads):
        sender.pump(now)
        now += SECOND // 20
    sender.flush(now)
    while not sender.outbox.idle:
        sender.pump(now)
    batches = [decode("log", record.value) for record in transport.delivered]
    assert sorted(batch.seq for batch in batches) == list(range(len(batches)))
    assert sum(len(batch.events) for batch in batches) == 1_200
    for rank in range(4):
        numbers = [batch.seq for batch in batches if batch.identity.rank == rank]
        assert numbers == sorted(numbers)


def test_what_cannot_be_sent_arrives_as_a_dead_letter(tmp_path: Path) -> None:
    transport = FakeTransport()
    sender = sender_at(tmp_path, transport)
    sender.add(RANKS[1], Stack(time=T0, process_type="p" * 9_000, pid=1), T0)
    sender.pump(T0)
    sender.pump(T0)
    [record] = transport.delivered
    assert record.topic == "dead-letters" and decode("dead_letter", record.value).topic == "stacks"
    assert sender.counters.letters == 1


def test_close_keeps_what_is_still_in_batches_for_the_next_boot(tmp_path: Path) -> None:
    sender = sender_at(tmp_path, FakeTransport(up=False))
    for n in range(5):
        sender.add(RANKS[n % 2], metric(n), T0)
    sender.close(T0)
    sender.add(RANKS[0], metric(9), T0)
    assert dropped(sender.counters) == {"closed": (1, 1)}
    after = FakeTransport()
    sender = sender_at(tmp_path, after, "b2")
    for _ in range(5):
        sender.pump(T0)
    batches = [decode("metric", record.value) for record in after.delivered]
    assert [(batch.boot, batch.seq, len(batch.events)) for batch in batches] == [("b1", 0, 3), ("b1", 1, 2)]


def test_a_spool_in_use_is_an_error_at_the_start(tmp_path: Path) -> None:
    spool_at(tmp_path)
    with pytest.raises(SpoolError, match="held by process"):
        sender_at(tmp_path, FakeTransport())


def test_the_default_settings_are_valid(tmp_path: Path) -> None:
    sender = Sender("node02", "b1", FakeTransport(), tmp_path)
    sender.add(RANKS[0], metric(1), T0)
    assert sender.close(T0) == []
