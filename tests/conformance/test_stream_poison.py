"""A record that cannot be read, or that is nonsense, reaches its topic or its own window and stops nothing."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streams_support import (
    JOBS,
    RESULTS,
    TOPIC_OF,
    TRACEBACK,
    Raw,
    Script,
    agent,
    at,
    between_ticks,
    is_tick,
    lines,
    log_of,
    node_of,
    pid_of,
    raw_of,
    records,
    run,
    said,
    tick,
    worker,
    written_log,
)

from schemas.codec import encode, headers, kind_of
from schemas.events import Batch, Event, Frame, Job, Log, Metric, Stack, Topology
from schemas.identity import Identity
from schemas.ports import Entry
from schemas.results import DeadLetter
from streams.config import StreamConfig
from streams.log.memory import MemoryLog
from streams.snapshots import MemorySnapshots

GOOD = encode(lines([3], job="hang", seq=7))

POISON: dict[str, tuple[bytes, dict[str, str]]] = {
    "no JSON": (b"\x00\xff not json", headers("log")),
    "nothing": (b"", headers("log")),
    "torn": (GOOD[:-9], headers("log")),
    "not UTF-8": (GOOD.replace(b"hello", b"\xff\xfe"), headers("log")),
    "half a character": (GOOD.replace(b"hello", b"\\ud800"), headers("log")),
    "a field of another type": (GOOD.replace(b'"seq":7', b'"seq":"7"'), headers("log")),
    "a field is missing": (GOOD.replace(b'"seq":7,', b""), headers("log")),
    "a time that is no integer": (GOOD.replace(b'"time":', b'"time":0.5,"was":'), headers("log")),
    "a tick that is a batch": (GOOD, headers("tick")),
    "an array": (b"[1, 2]", headers("log")),
    "deep": (b"[" * 100_000, headers("log")),
    "the schema of another topic": (GOOD, headers("metric")),
    "a schema that nobody knows": (GOOD, {"schema": "gossip", "version": "1"}),
    "no schema": (GOOD, {}),
}


def inserted(raw: Raw, value: bytes, described: dict[str, str], topic: str = "logs") -> Raw:
    """The entry in the middle of the topic's partition 0."""
    entries = raw[topic, 0]
    middle = len(entries) // 2
    bad = Entry(0, b"the|key", value, described, 17)
    return {**raw, (topic, 0): [*entries[:middle], bad, *entries[middle:]]}


@pytest.mark.parametrize("case", POISON)
def test_what_cannot_be_read_is_a_dead_letter_and_changes_nothing_else(case: str) -> None:
    value, described = POISON[case]
    raw = raw_of(written_log(JOBS["hang"]()))
    expected = log_of(raw)
    run(expected)
    log = log_of(inserted(raw, value, described))
    run(log, store=MemorySnapshots())
    assert said(log) == said(expected)
    (letter,) = records(log, "dead-letters")
    assert isinstance(letter, DeadLetter)
    assert (letter.value, letter.key, letter.headers) == (value, b"the|key", described)
    assert (letter.topic, letter.partition, letter.offset) == ("logs", 0, len(raw["logs", 0]) // 2)
    assert letter.stage == "rank"
    assert letter.reason
    assert "\n" not in letter.reason


def test_what_cannot_be_read_on_the_windows_topic_is_a_dead_letter_of_the_job_stage() -> None:
    raw = raw_of(written_log(JOBS["hang"]()))
    expected, log = log_of(raw), log_of(raw)
    run(expected)
    for partition in range(2):
        log.append("windows", b"hang", b'{"id": 5}', headers("window"), 0, partition)
        log.append("windows", b"hang", b"{}", headers("log"), 0, partition)
    run(log)
    topics = ("anomalies", "merged.stacks", "incidents", "templates")
    assert said(log, topics) == said(expected, topics)
    assert [letter.stage for letter in records(log, "dead-letters")] == ["job"] * 4


def test_every_raw_topic_turns_nonsense_into_dead_letters() -> None:
    raw = raw_of(written_log(JOBS["hang"]()))
    expected = log_of(raw)
    run(expected)
    for (topic, _), kept in list(raw.items()):
        raw = inserted(raw, b"?", kept[0].headers and headers("tick"), topic)
    log = log_of(raw)
    run(log)
    assert said(log) == said(expected)
    assert len(records(log, "dead-letters")) == len(raw)


def test_a_later_version_with_unknown_fields_is_read() -> None:
    def newer(held: list[Entry]) -> list[Entry]:
        return [
            Entry(e.offset, e.key, b'{"colour":{"deep":[1]},' + e.value[1:], {**e.headers, "version": "9"}, e.time)
            for e in held
        ]

    raw = raw_of(written_log(JOBS["restart"]()))
    expected, log = log_of(raw), log_of({part: between_ticks(held, newer) for part, held in raw.items()})
    run(expected)
    run(log)
    assert said(log) == said(expected)
    assert not records(log, "dead-letters")


def hostile(*events: Event, identity: Identity | None = None, seq: int = 0) -> Batch[Any]:
    who = identity or worker("hostile", 0)
    return Batch(producer="hostile", boot="b", seq=seq, identity=who, events=list(events))


def said_at(second: float, text: str, iteration: int | None = None) -> Log:
    return Log(time=at(second), stream="stdout", text=text, iteration=iteration)


ENTRY = (
    "  time      : {day}_12:00:00\n  host      : node00\n"
    "  rank      : 0 (local_rank: 0)\n  exitcode  : 1 (pid: 5)\n  error_file: <N/A>"
)
BIG = 10**25

NONSENSE: dict[str, Batch[Any]] = {
    "no events": hostile(),
    "a day that is in no calendar": hostile(
        said_at(15, ENTRY.format(day="2026-02-30")), identity=agent("hostile", "node00")
    ),
    "the year nought": hostile(said_at(15, ENTRY.format(day="0000-00-00")), identity=agent("hostile", "node00")),
    "a negative time": hostile(Log(time=-1, stream="stdout", text="x")),
    "a time beyond 64 bits": hostile(Log(time=BIG, stream="stdout", text="x")),
    "a sequence number beyond 64 bits": hostile(said_at(15, "x"), seq=BIG),
    "an iteration beyond 64 bits": hostile(
        said_at(15, "step 1 timers (ms): forward 1.0", BIG), Metric(time=at(15), name="loss", value=1.0, iteration=BIG)
    ),
    "a pid beyond 64 bits": hostile(Topology(time=at(15), pid=BIG)),
    "a rank beyond 64 bits": hostile(said_at(15, "x"), identity=Identity(job="hostile", rank=BIG)),
    "a negative rank": hostile(said_at(15, "x"), identity=Identity(job="hostile", rank=-1)),
    "sums beyond a float": hostile(
        *(Metric(time=at(15), name="power", value=1.7e308) for _ in range(3)),
        *(Metric(time=at(15 + i / 100), name="forward_s", value=1.7e308, iteration=i) for i in range(60)),
    ),
    "steps shorter than a nanosecond": hostile(
        Log(time=at(15), stream="stdout", text="iteration 1/ 500 | lm loss: 1.0 |", iteration=1),
        Log(time=at(15) + 1, stream="stdout", text="iteration 9/ 500 | lm loss: 1.0 |", iteration=9),
        *(Metric(time=at(15 + second), name="cpu", value=1.0) for second in range(55)),
    ),
    "no names": hostile(
        Metric(time=at(15), name="", value=1.0),
        Stack(time=at(15), process_type="", pid=0, frames=[Frame("", "")]),
        said_at(15, ""),
        identity=Identity(job="", rank=0),
    ),
    "a bar in the job": hostile(said_at(15, TRACEBACK), identity=Identity(job="a|b|c", rank=0)),
    "a node without a name": hostile(said_at(15, TRACEBACK), identity=Identity(job="hostile")),
    "an empty layout": hostile(Job(time=at(15), layout={"pp": 0, "tp": 0, "world": 0})),
    "a layout that divides nothing": hostile(said_at(15, "world size: 0, tensor-model-parallel size: 0")),
    "control characters": hostile(said_at(15, "\x00\x1b[31m\u2028\r\n\ufeff" * 50)),
    "a long line": hostile(said_at(15, "a1 " * 200_000)),
}


def told(log: MemoryLog, job: str) -> dict[str, list[bytes]]:
    """What was said of one job."""
    name = b'"job":"' + job.encode() + b'"'
    return {topic: [value for value in values if name in value] for topic, values in said(log, RESULTS).items()}


def wire(batch: Batch[Any]) -> bytes:
    """The batch's bytes with numbers that our own encoder refuses."""
    return json.dumps(msgspec.to_builtins(batch)).encode()


@pytest.mark.parametrize("case", NONSENSE)
def test_nonsense_that_can_be_read_stops_nothing_and_changes_no_other_job(case: str) -> None:
    raw = raw_of(written_log(JOBS["hang"]()))
    expected = log_of(raw)
    run(expected)
    one = NONSENSE[case]
    kind = kind_of(one) if one.events else "log"
    mixed = raw
    for event_kind, batch in by_kind(one).items() or [(kind, one)]:
        mixed = placed(mixed, TOPIC_OF[event_kind], batch, event_kind)
    log = log_of(mixed)
    run(log, store=MemorySnapshots())
    assert told(log, "hang") == told(expected, "hang")
    run(log, store=MemorySnapshots())


def by_kind(one: Batch[Any]) -> dict[str, Batch[Any]]:
    kinds: dict[str, list[Event]] = {}
    for event in one.events:
        kinds.setdefault(kind_of(hostile(event)), []).append(event)
    return {
        kind: Batch(producer=one.producer, boot=one.boot, seq=one.seq, identity=one.identity, events=events)
        for kind, events in kinds.items()
    }


def placed(raw: Raw, topic: str, batch: Batch[Any], kind: str) -> Raw:
    """The batch in partition 0, behind the tick of second 14."""
    entries = raw[topic, 0]
    ticks = [place for place, entry in enumerate(entries) if is_tick(entry)]
    place = ticks[13] + 1
    bad = Entry(0, batch.identity.key.encode(), wire(batch), headers(kind), at(15))
    return {**raw, (topic, 0): [*entries[:place], bad, *entries[place:]]}


TRICKY = st.sampled_from(
    [
        TRACEBACK,
        "iteration 5/ 100 | elapsed time per iteration (ms): 100.0 | lm loss: nan |",
        "step 7 timers (ms): forward_compute nan data_load inf allreduce_wait 1e999",
        "world size: 9999999",
        "world size: 8, data-parallel size: 0 tensor-model-parallel size: 2 pipeline-model-parallel size: 4",
        "RuntimeError: CUDA out of memory",
        "saving checkpoint at iteration 5",
        "Sending process 5 closing signal SIGTERM",
        "failed (exitcode: -99999) local_rank: 0 (pid: 5) of binary",
        "Traceback (most recent call last):",
        "Training finished",
    ]
)
TIMES = st.integers(min_value=at(-100), max_value=at(200))
SMALL = st.one_of(st.none(), st.integers(min_value=0, max_value=2**40))
NUMBERS = st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False, width=64))
NAMES = st.sampled_from(["loss", "forward_s", "step_time_ms", "cpu_percent", "ctx_switches", ""])
EVENTS = st.one_of(
    st.builds(Log, time=TIMES, stream=st.just("s"), text=st.one_of(TRICKY, st.text(max_size=40)), iteration=SMALL),
    st.builds(Metric, time=TIMES, name=NAMES, value=NUMBERS, iteration=SMALL),
    st.builds(Topology, time=TIMES, pid=st.integers(0, 9), world_size=st.one_of(st.none(), st.integers(-9, 99))),
    st.builds(
        Stack,
        time=TIMES,
        process_type=st.sampled_from(["trainer", "dataloader", ""]),
        pid=st.integers(0, 9),
        thread=st.sampled_from(["MainThread", ""]),
        frames=st.lists(st.builds(Frame, st.sampled_from(["all_reduce", "wait", ""]), st.text(max_size=9)), max_size=3),
    ),
)
WHO = st.one_of(
    st.builds(
        Identity, job=st.sampled_from(["a", "b"]), attempt=st.sampled_from(["0", "1", "x"]), rank=st.integers(0, 3)
    ),
    st.builds(Identity, job=st.sampled_from(["a", "b"]), node=st.sampled_from(["", "node00"])),
)


@settings(max_examples=80, derandomize=True, database=None, deadline=None)
@given(st.lists(st.tuples(WHO, EVENTS, st.integers(0, 60)), min_size=1, max_size=40))
def test_any_events_go_through_both_stages_and_their_snapshots(found: list[tuple[Identity, Event, int]]) -> None:
    log = MemoryLog(2)
    ordered = sorted(enumerate(found), key=lambda one: one[1][2])
    tick(log, -1)
    at_second = 0
    for seq, (identity, event, second) in ordered:
        while at_second < second:
            tick(log, at_second)
            at_second += 1
        one = Batch(producer="p", boot="b", seq=seq, identity=identity, events=[event])
        kind = kind_of(one)
        log.append(TOPIC_OF[kind], identity.key.encode(), encode(one), headers(kind), at(second))
    for second in range(at_second, 100):
        tick(log, second)
    raw = raw_of(log)
    run(log, StreamConfig(), store=MemorySnapshots())
    assert not records(log, "dead-letters")
    again, store = log_of(raw), MemorySnapshots()
    for part, entries in raw.items():
        assert again.end(*part) == len(entries)
    run(again, store=store)
    run(again, store=store)
    assert said(again) == said(log)


def test_a_node_that_reports_an_exit_before_its_rank_is_known_is_remembered() -> None:
    """Launchers may speak before any rank has: what they said must wait as long as for any other job."""
    script = Script("early")
    failed = f"failed (exitcode: -9) local_rank: 1 (pid: {pid_of(1)}) of binary: python"
    script.log(agent("early", node_of(1)), 3, failed)
    for rank in (0, 1):
        script.send(worker("early", rank), Topology(time=at(11), pid=pid_of(rank), world_size=2))
        script.log(worker("early", rank), 12, "hello")
    log = written_log(script.recording)
    run(log)
    assert [one.text for one in records(log, "anomalies") if one.detector == "worker_exit"] == [
        "rank 1 ended by SIGKILL"
    ]


def test_a_last_word_of_an_old_attempt_does_not_silence_the_running_one() -> None:
    """A process of attempt 0 that is seen for the first time while attempt 1 runs is no newer attempt."""

    def found(*, last_word: bool) -> list[str]:
        script = Script("job")
        script.start(4, attempt="1")
        script.train(4, 1, 30, attempt="1")
        script.alive(4, 0, 70, attempt="1")
        script.stacks(4, range(35, 70, 5), 3, attempt="1")
        if last_word:
            script.log(worker("job", 0, "0"), 22, "bye")
        log = written_log(script.recording)
        run(log)
        return [one.summary for one in records(log, "incidents") if one.attempt == "1"]

    assert found(last_word=False)
    assert found(last_word=True) == found(last_word=False)
