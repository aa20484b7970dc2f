"""The outbox: memory while all goes well, the spool otherwise, callers that never wait, and what is counted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import pytest
from outgoing_support import SECOND, SMALL, T0, FakeTransport, die, dropped, files, outbox_at, record

from producers.outgoing.outbox import Outbox
from producers.outgoing.records import OVERHEAD
from schemas.codec import decode
from schemas.ports import Refusal, Transport, refusal_of

STRICT = msgspec.structs.replace(SMALL, unspooled_s=0.0)


def put(outbox: Outbox, count: int, start: int = 0, size: int = 100, lane: str = "j|0") -> list[bytes]:
    values = [b"%05d" % n + b"v" * size for n in range(start, start + count)]
    for value in values:
        outbox.put(record(value, lane, events=2))
    return values


def pump(outbox: Outbox, times: int = 200, now: int = T0, step: int = SECOND // 10) -> int:
    for n in range(times):
        outbox.pump(now + n * step)
    return now + times * step


def test_while_all_goes_well_nothing_touches_the_disk(tmp_path: Path) -> None:
    transport = FakeTransport()
    outbox = outbox_at(tmp_path, transport)
    values = put(outbox, 10)
    assert outbox.memory_bytes == 10 * (105 + 3 + OVERHEAD)
    pump(outbox, 20)
    assert transport.values == values and outbox.idle and outbox.memory_bytes == 0
    assert files(tmp_path) == [] and outbox.spool_bytes == 0
    counted = outbox.counters
    assert (counted.put_records, counted.put_events) == (10, 20)
    assert (counted.sent_records, counted.sent_events, counted.spooled_records) == (10, 20, 0)


def test_the_transport_gets_the_record_as_it_was_put(tmp_path: Path) -> None:
    transport = FakeTransport()
    outbox = outbox_at(tmp_path, transport)
    outbox.put(record("a", events=0))
    pump(outbox, 3)
    assert transport.delivered == [record("a", events=0)]


def test_lanes_go_side_by_side_and_one_record_of_each_at_a_time(tmp_path: Path) -> None:
    transport = FakeTransport(up=False)
    outbox = outbox_at(tmp_path, transport)
    for lane in ("j|0", "j|1"):
        put(outbox, 3, lane=lane)
    outbox.put(record("stack", topic="stacks"))
    outbox.pump(T0)
    assert [(s.record.topic, s.record.key) for s in transport.inside] == [
        ("logs", b"j|0"),
        ("logs", b"j|1"),
        ("stacks", b"j|0"),
    ]


def test_more_of_a_lane_may_be_allowed_at_once(tmp_path: Path) -> None:
    transport = FakeTransport(up=False)
    outbox = outbox_at(tmp_path, transport, msgspec.structs.replace(SMALL, lane_records=3))
    put(outbox, 5)
    outbox.pump(T0)
    assert [s.record.value[:5] for s in transport.inside] == [b"00000", b"00001", b"00002"]


@pytest.mark.parametrize("size", [10, 3_000])
def test_with_a_transport_that_never_has_room_putting_goes_on_and_all_is_bounded(tmp_path: Path, size: int) -> None:
    outbox = outbox_at(tmp_path, FakeTransport(room=0))
    for n in range(80):
        put(outbox, 5, start=5 * n, size=size)
        outbox.pump(T0 + n * SECOND // 10)
        assert outbox.memory_bytes <= SMALL.inbox_bytes + SMALL.flight_bytes
        assert outbox.spool_bytes <= SMALL.spool_bytes
    lost = dropped(outbox.counters)
    assert set(lost) <= {"spool full"} and outbox.counters.sent_records == 0
    assert ("spool full" in lost) == (size == 3_000)


def test_callers_that_put_faster_than_the_pump_lose_the_oldest_counted(tmp_path: Path) -> None:
    transport = FakeTransport()
    outbox = outbox_at(tmp_path, transport)
    values = put(outbox, 100, size=900)
    assert outbox.memory_bytes <= SMALL.inbox_bytes
    pump(outbox)
    assert transport.values == values[-13:]
    assert dropped(outbox.counters) == {"inbox full": (87, 174)}


def test_a_record_that_fits_nowhere_is_counted(tmp_path: Path) -> None:
    outbox = outbox_at(tmp_path, FakeTransport())
    outbox.put(record(b"x" * 30_000, events=7))
    assert outbox.pump(T0) == ["records are being dropped, reason: too large"]
    assert dropped(outbox.counters) == {"too large": (1, 7)} and outbox.idle
    assert outbox.pump(T0 + 1) == []


def test_an_outage_goes_to_the_spool_and_comes_back_in_order(tmp_path: Path) -> None:
    transport = FakeTransport(up=False)
    outbox = outbox_at(tmp_path, transport)
    values = put(outbox, 20)
    outbox.pump(T0)
    assert files(tmp_path) == []
    values += put(outbox, 20, start=20)
    outbox.pump(T0 + SECOND // 2)
    assert len(files(tmp_path)) == 1 and outbox.memory_bytes <= SMALL.flight_bytes
    transport.up = True
    now = pump(outbox, now=T0 + SECOND)
    assert transport.values == values and outbox.idle
    values += put(outbox, 3, start=40)
    spooled = outbox.counters.spooled_records
    pump(outbox, now=now)
    assert transport.values == values and outbox.counters.spooled_records == spooled == 40


def test_what_stays_unsafe_is_written_down_while_it_is_with_the_transport(tmp_path: Path) -> None:
    transport = FakeTransport(up=False)
    outbox = outbox_at(tmp_path, transport)
    values = put(outbox, 3)
    outbox.pump(T0)
    outbox.pump(T0 + 2 * SECOND - 1)
    assert outbox.counters.spooled_records == 0
    outbox.pump(T0 + 2 * SECOND)
    assert outbox.counters.spooled_records == 3
    die(outbox._spool)
    after = FakeTransport()
    pump(outbox_at(tmp_path, after))
    assert after.values == values


def test_what_became_safe_before_a_kill_is_not_sent_again(tmp_path: Path) -> None:
    transport = FakeTransport(up=False)
    outbox = outbox_at(tmp_path, transport, STRICT)
    values = put(outbox, 10)
    outbox.pump(T0)
    transport.up = True
    pump(outbox, 5)
    die(outbox._spool)
    after = FakeTransport()
    pump(outbox_at(tmp_path, after))
    assert transport.values == values[:5] and after.values == values[5:]


def test_a_clock_that_is_set_back_writes_at_once_and_does_not_stop_retries(tmp_path: Path) -> None:
    transport = FakeTransport(up=False)
    outbox = outbox_at(tmp_path, transport)
    put(outbox, 1)
    outbox.pump(T0)
    transport.failure = "timed out"
    outbox.pump(T0 - 3600 * SECOND)
    assert outbox.counters.spooled_records == 1
    transport.failure, transport.up = "", True
    outbox.pump(T0 - 7200 * SECOND)
    outbox.pump(T0 - 7200 * SECOND + 1)
    assert outbox.counters.sent_records == 1


def test_what_failed_is_sent_again_after_a_pause_before_its_followers(tmp_path: Path) -> None:
    transport = FakeTransport(up=False)
    outbox = outbox_at(tmp_path, transport)
    values = put(outbox, 3)
    other = put(outbox, 2, start=50, lane="j|1")
    outbox.pump(T0)
    transport.inside.pop(1).done(None)
    transport.inside.pop(0).done("timed out: no broker")
    outbox.pump(T0 + 1)
    assert [s.record.value for s in transport.inside] == other[1:]
    assert outbox.counters.failed_records == 1
    outbox.pump(T0 + SECOND)
    assert transport.attempts == 3
    transport.up = True
    pump(outbox, now=T0 + SECOND + 1)
    assert [v for v in transport.values if v in values] == values
    assert dropped(outbox.counters) == {} and outbox.idle


@pytest.mark.parametrize("refusal", list(Refusal))
def test_a_refusal_becomes_a_dead_letter_and_one_message(tmp_path: Path, refusal: Refusal) -> None:
    transport = FakeTransport(up=False)
    outbox = outbox_at(tmp_path, transport)
    said = []
    for n in range(3):
        put(outbox, 1, start=n, size=2_000)
        said += outbox.pump(T0 + 2 * n)
        transport.inside.pop().done(f"{refusal}: details {n}")
        said += outbox.pump(T0 + 2 * n + 1)
        transport.inside.pop().done(None) if n == 0 else transport.inside.clear()
    assert said == [f"records for topic logs are refused: {refusal} ({refusal}: details 0)"]
    assert dropped(outbox.counters) == {"refused": (3, 6)} and outbox.counters.letters == 3


def test_a_dead_letter_says_what_was_refused(tmp_path: Path) -> None:
    transport = FakeTransport(up=False)
    outbox = outbox_at(tmp_path, transport)
    [value] = put(outbox, 1, size=2_000)
    outbox.pump(T0)
    transport.inside.pop().done(Refusal.TOO_LARGE)
    transport.up = True
    pump(outbox)
    [sent] = transport.delivered
    letter = decode("dead_letter", sent.value)
    assert sent.topic == "dead-letters" and sent.headers["schema"] == "dead_letter"
    assert (letter.topic, letter.key, letter.value) == ("logs", b"j|0", value[:1_000])
    assert letter.reason.startswith("too large; the first 1000 of 2005 bytes")
    assert outbox.idle


def test_a_dead_letter_that_is_refused_is_only_counted(tmp_path: Path) -> None:
    transport = FakeTransport()
    transport.failure = Refusal.NOT_AUTHORISED
    outbox = outbox_at(tmp_path, transport)
    put(outbox, 1)
    said = [line for n in range(20) for line in outbox.pump(T0 + n)]
    assert [line.partition(" (")[0] for line in said] == [
        "records for topic logs are refused: not authorised",
        "records for topic dead-letters are refused: not authorised",
    ]
    assert dropped(outbox.counters) == {"refused": (2, 3)} and outbox.idle


@pytest.mark.parametrize(
    ("reason", "refusal"),
    [
        ("too large", Refusal.TOO_LARGE),
        ("unknown topic: logs", Refusal.UNKNOWN_TOPIC),
        ("not authorised: x: y", Refusal.NOT_AUTHORISED),
        ("too large a queue", None),
        ("timed out: unknown topic", None),
        ("", None),
    ],
)
def test_which_reasons_are_final(reason: str, refusal: Refusal | None) -> None:
    assert refusal_of(reason) is refusal


def test_close_writes_what_is_not_safe_and_the_next_boot_sends_it_first(tmp_path: Path) -> None:
    transport = FakeTransport(up=False)
    outbox = outbox_at(tmp_path, transport)
    values = put(outbox, 5)
    outbox.pump(T0)
    values += put(outbox, 20, start=5)
    outbox.pump(T0 + 1)
    values += put(outbox, 5, start=25)
    assert outbox.close(T0 + 2) == [] and outbox.close(T0 + 3) == []
    outbox.put(record("late", events=4))
    assert outbox.pump(T0 + 4) == ["records are being dropped, reason: closed"]
    assert dropped(outbox.counters) == {"closed": (1, 4)}
    after = FakeTransport()
    outbox = outbox_at(tmp_path, after)
    values += put(outbox, 3, start=30)
    pump(outbox)
    assert after.values == values and outbox.counters.recovered_records == 30


def test_close_takes_in_what_became_safe_at_the_last_moment(tmp_path: Path) -> None:
    transport = FakeTransport()
    outbox = outbox_at(tmp_path, transport)
    put(outbox, 1)
    outbox.pump(T0)
    outbox.close(T0)
    assert outbox.counters.sent_records == 1 and files(tmp_path) == []


def test_with_a_disk_that_refuses_records_still_go_through_memory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    transport = FakeTransport()
    outbox = outbox_at(tmp_path / "file/x", transport, STRICT)
    values = put(outbox, 10)
    said = outbox.pump(T0)
    assert said == [f"spool {tmp_path / 'file/x'} cannot be written: Not a directory"]
    pump(outbox)
    assert transport.values == values and dropped(outbox.counters) == {}


def test_with_neither_disk_nor_log_what_memory_cannot_hold_is_counted(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    transport = FakeTransport(up=False)
    outbox = outbox_at(tmp_path / "file/x", transport)
    values = put(outbox, 28)
    pump(outbox, 5)
    assert dropped(outbox.counters) == {"spool failed": (8, 16)}
    transport.up = True
    pump(outbox)
    assert transport.values == values[:20]
    transport.up = False
    put(outbox, 2)
    pump(outbox, 1)
    outbox.close(T0)
    assert dropped(outbox.counters) == {"spool failed": (10, 20)}


def test_a_record_whose_file_is_dropped_is_counted_and_not_sent_again(tmp_path: Path) -> None:
    transport = FakeTransport(up=False)
    outbox = outbox_at(tmp_path, transport, STRICT)
    values = put(outbox, 2, size=5_000)
    outbox.pump(T0)
    for n in range(20):
        put(outbox, 1, start=2 + n, size=5_000)
        outbox.pump(T0 + n)
    lost = outbox.counters.dropped_records["spool full"]  # type: ignore[index]
    assert lost >= 2 and len(transport.inside) == 1
    transport.inside.pop().done("timed out")
    transport.up = True
    pump(outbox, now=T0 + SECOND)
    assert values[0] not in transport.values and len(transport.delivered) == 22 - lost and outbox.idle


def test_a_callback_that_comes_twice_counts_once(tmp_path: Path) -> None:
    transport = FakeTransport(up=False)
    outbox = outbox_at(tmp_path, transport)
    put(outbox, 1)
    outbox.pump(T0)
    sent = transport.inside.pop()
    sent.done(None)
    sent.done(None)
    sent.done("timed out")
    outbox.pump(T0)
    assert outbox.counters.sent_records == 1 and outbox.counters.failed_records == 0 and outbox.idle


class Stuck(FakeTransport):
    """Takes over nothing for as long as it is held."""

    def __init__(self) -> None:
        super().__init__()
        self.entered, self.go_on = threading.Event(), threading.Event()

    def send(
        self,
        topic: str,
        key: bytes,
        value: bytes,
        headers: Mapping[str, str],
        time: int,
        done: Callable[[str | None], None],
    ) -> bool:
        self.entered.set()
        assert self.go_on.wait(60)
        return super().send(topic, key, value, headers, time, done)


def test_callers_do_not_wait_for_a_pump_that_is_stuck(tmp_path: Path) -> None:
    transport = Stuck()
    outbox = outbox_at(tmp_path, transport)
    values = put(outbox, 1)
    thread = threading.Thread(target=pump, args=(outbox,))
    thread.start()
    assert transport.entered.wait(60)
    values += put(outbox, 10, start=1)
    assert thread.is_alive()
    transport.go_on.set()
    thread.join()
    pump(outbox)
    assert transport.values == values


def test_records_from_many_threads_all_arrive_in_their_lanes_order(tmp_path: Path) -> None:
    transport = FakeTransport()
    config = msgspec.structs.replace(SMALL, inbox_bytes=10_000_000, spool_bytes=10_000_000)
    outbox = outbox_at(tmp_path, transport, config)

    def caller(lane: int) -> None:
        put(outbox, 200, lane=f"j|{lane}")

    threads = [threading.Thread(target=caller, args=(lane,)) for lane in range(6)]
    for thread in threads:
        thread.start()
    now = T0
    while any(thread.is_alive() for thread in threads) or not outbox.idle:
        outbox.pump(now)
        now += SECOND // 20
    assert outbox.counters.put_records == outbox.counters.sent_records == 1_200
    for lane in range(6):
        mine = [r.value for r in transport.delivered if r.key == b"j|%d" % lane]
        assert mine == sorted(mine) and len(mine) == 200


def test_the_fake_is_a_transport() -> None:
    transport: Transport = FakeTransport()
    assert transport.poll() is None
