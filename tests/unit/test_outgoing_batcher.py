"""Events into batches: when they go out, how they are numbered, and what is too large for the log."""

from __future__ import annotations

import msgspec
import pytest
from outgoing_support import SECOND, SMALL, T0

from producers.outgoing.batcher import Batcher
from producers.outgoing.config import OutgoingConfig
from producers.outgoing.records import Record, letter_record
from schemas.codec import decode, encode, headers
from schemas.events import Batch, Event, Frame, Log, Metric, Stack
from schemas.identity import Identity
from schemas.results import DeadLetter

RANK_5 = Identity(job="j", rank=5, node="n")
RANK_6 = Identity(job="j", rank=6, node="n")
LIMIT = SMALL.record_bytes


def log(text: str, **more: str) -> Log:
    return Log(time=T0, stream="stderr", text=text, **more)


def metric(n: int = 0) -> Metric:
    return Metric(time=T0 + n, name="m", value=float(n))


def batcher(config: OutgoingConfig = SMALL) -> Batcher:
    return Batcher("node02", "b7", config)


def read(record: Record | DeadLetter) -> Batch[Event]:
    assert isinstance(record, Record)
    found: Batch[Event] = decode(record.headers["schema"], record.value)
    assert record.events == len(found.events)
    return found


def test_one_batch_for_each_worker_and_kind() -> None:
    made = batcher()
    for identity, event in ((RANK_5, metric(1)), (RANK_6, metric(2)), (RANK_5, log("a")), (RANK_5, metric(3))):
        assert made.add(identity, event, T0) == []
    out = made.flush(T0)
    assert [(r.topic, r.key, r.headers, r.time) for r in out] == [
        ("metrics", b"j|5", headers("metric"), T0),
        ("metrics", b"j|6", headers("metric"), T0),
        ("logs", b"j|5", headers("log"), T0),
    ]
    assert [read(r).events for r in out] == [[metric(1), metric(3)], [metric(2)], [log("a")]]
    assert [read(r).identity for r in out] == [RANK_5, RANK_6, RANK_5]


def test_workers_that_share_a_key_but_differ_otherwise_have_batches_of_their_own() -> None:
    made = batcher()
    loader = msgspec.structs.replace(RANK_5, process_type="dataloader", device="gpu1", group="")
    made.add(RANK_5, metric(1), T0)
    made.add(loader, metric(2), T0)
    assert [read(r).identity for r in made.flush(T0)] == [RANK_5, loader]


def test_a_batch_is_due_one_second_after_its_first_event() -> None:
    made = batcher()
    made.add(RANK_5, metric(1), T0)
    made.add(RANK_5, metric(2), T0 + SECOND - 1)
    made.add(RANK_6, metric(3), T0 + 1)
    assert made.due(T0 + SECOND - 1) == []
    assert [len(read(r).events) for r in made.due(T0 + SECOND)] == [2]
    assert [read(r).identity for r in made.due(T0 + SECOND + 1)] == [RANK_6]
    assert made.due(T0 + 99 * SECOND) == [] and made.open_bytes == 0


def test_a_clock_that_is_set_back_does_not_hold_a_batch_for_ever() -> None:
    made = batcher()
    made.add(RANK_5, metric(), T0)
    assert made.due(T0 - 3600 * SECOND) == []
    assert len(made.due(T0 - 3599 * SECOND)) == 1


def test_a_full_batch_goes_out_at_once_and_none_is_much_larger() -> None:
    made = batcher()
    out = [r for n in range(200) for r in made.add(RANK_5, log(f"{n} " + "x" * 90), T0)] + made.flush(T0)
    assert all(isinstance(r, Record) and len(r.value) <= SMALL.batch_bytes for r in out)
    assert [e.text.split()[0] for r in out for e in read(r).events if isinstance(e, Log)] == [
        str(n) for n in range(200)
    ]
    assert min(len(r.value) for r in out[:-1] if isinstance(r, Record)) > SMALL.batch_bytes - 300


def test_an_event_larger_than_a_batch_goes_alone_and_in_its_turn() -> None:
    made = batcher()
    made.add(RANK_5, log("before"), T0)
    out = made.add(RANK_5, log("y" * 5_000), T0)
    made.add(RANK_5, log("behind"), T0)
    assert [len(read(r).events) for r in [*out, *made.flush(T0)]] == [1, 1, 1]


def test_numbers_rise_without_gaps_over_all_workers_and_kinds() -> None:
    made = batcher()
    out: list[Record | DeadLetter] = []
    for n in range(300):
        out += made.add(Identity(job="j", rank=n % 7, node="n"), log("z" * 300) if n % 2 else metric(n), T0)
        out += made.add(RANK_5, Stack(time=T0, process_type="p" * 9_000, pid=1), T0)
        if n % 50 == 0:
            out += made.due(T0 + n * SECOND)
    out += made.flush(T0)
    batches = [read(r) for r in out if isinstance(r, Record)]
    assert [b.seq for b in batches] == list(range(len(batches)))
    assert {(b.producer, b.boot) for b in batches} == {("node02", "b7")}
    assert sum(len(b.events) for b in batches) == 300 and len(out) - len(batches) == 300


@pytest.mark.parametrize("filler", ["x", "\x00", "€", "😀", '"', "\n", "\ud800"])
def test_a_log_text_too_long_for_a_record_is_cut_in_the_middle_with_a_mark(filler: str) -> None:
    text = "2026-12-01 ERROR start" + filler * 50_000 + "RuntimeError: the end"
    [out] = batcher().add(RANK_5, log(text, file="a.log"), T0)
    assert isinstance(out, Record) and LIMIT * 0.9 < len(out.value) <= LIMIT
    [event] = read(out).events
    assert isinstance(event, Log)
    assert event.text.startswith("2026-12-01 ERROR start") and event.text.endswith("RuntimeError: the end")
    start, _, rest = event.text.partition("\n[... ")
    count, _, end = rest.partition(" characters cut ...]\n")
    assert len(start) + int(count) + len(end) == len(text)
    assert event.file == "a.log"


def test_the_longest_log_that_fits_is_not_touched() -> None:
    made = batcher()
    lengths = range(LIMIT - 400, LIMIT)
    cut = {n: "characters cut" in read(made.add(RANK_5, log("x" * n), T0)[0]).events[0].text for n in lengths}  # type: ignore[attr-defined]
    longest = max(n for n in lengths if not cut[n])
    assert all(cut[n] == (n > longest) for n in lengths)
    assert LIMIT - longest < 250


def test_what_is_no_log_text_becomes_a_dead_letter_that_fits() -> None:
    stack = Stack(time=T0, process_type="t", pid=1, frames=[Frame("f" * 100, "g" * 100, n) for n in range(100)])
    [letter] = batcher().add(RANK_5, stack, T0)
    assert isinstance(letter, DeadLetter)
    assert (letter.topic, letter.partition, letter.stage, letter.key) == ("stacks", -1, "producer", b"j|5")
    assert letter.value == encode(stack)[: SMALL.letter_bytes] and "too large" in letter.reason
    assert f"the first 1000 of {len(encode(stack))} bytes" in letter.reason
    sent = letter_record(letter, T0)
    assert sent.topic == "dead-letters" and decode("dead_letter", sent.value) == letter
    assert len(sent.value) <= LIMIT


def test_a_log_whose_other_fields_are_too_long_is_a_dead_letter() -> None:
    [letter] = batcher().add(RANK_5, log("short", file="f" * 9_000), T0)
    assert isinstance(letter, DeadLetter)


def test_an_identity_that_leaves_no_room_is_a_dead_letter_that_fits() -> None:
    [letter] = batcher().add(Identity(job="j" * 20_000, rank=1), metric(), T0)
    assert isinstance(letter, DeadLetter)
    assert len(letter_record(letter, T0).value) <= LIMIT


def test_two_dead_letters_have_different_places_and_the_same_one_its_own() -> None:
    made = batcher()
    letters = [made.add(RANK_5, Stack(time=T0 + n, process_type="p" * 9_000, pid=1), T0)[0] for n in (1, 2, 1)]
    places = [letter.offset for letter in letters if isinstance(letter, DeadLetter)]
    assert places[0] == places[2] != places[1]
    assert all(0 <= place < 2**63 for place in places)


def test_surrogates_in_a_log_are_replaced_and_elsewhere_make_a_dead_letter() -> None:
    made = batcher()
    made.add(RANK_5, log("a\udc80b", file="f\udcff"), T0)
    [event] = read(made.flush(T0)[0]).events
    assert isinstance(event, Log) and (event.text, event.file) == ("a?b", "f?")
    [letter] = made.add(RANK_5, Metric(time=T0, name="m\ud800", value=1.0), T0)
    assert isinstance(letter, DeadLetter) and b"m\\ud800" in letter.value
    [letter] = made.add(Identity(job="j\ud800", rank=1), metric(), T0)
    assert isinstance(letter, DeadLetter) and letter.key == b"j\\ud800|1"
    assert made.flush(T0) == []


def test_open_batches_are_bounded_in_number_and_bytes_and_the_oldest_goes_early() -> None:
    few = msgspec.structs.replace(SMALL, open_batches=3)
    made = batcher(few)
    out = [r for n in range(10) for r in made.add(Identity(job="j", rank=n, node="n"), metric(n), T0)]
    assert [read(r).identity.rank for r in out] == list(range(7))
    made = batcher()
    for n in range(200):
        made.add(Identity(job="j", rank=n, node="n"), log("x" * 500), T0)
        assert made.open_bytes <= SMALL.open_bytes
    assert 0 < len(made.flush(T0)) < 100 and made.open_bytes == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("batch_bytes", 0),
        ("batch_age_s", -1.0),
        ("batch_age_s", float("nan")),
        ("unspooled_s", 1e9),
        ("batch_bytes", 900_001),
        ("letter_bytes", 450_000),
        ("inbox_bytes", 900_000),
        ("flight_bytes", 900_000),
        ("segment_bytes", 900_000),
        ("segment_bytes", 600_000_000),
    ],
)
def test_settings_that_cannot_work_are_refused_by_name(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=name if value != 900_000 else "record_bytes"):
        OutgoingConfig(**{name: value})  # type: ignore[arg-type]
