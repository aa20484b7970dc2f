"""Windows come out the same by the short way and by the long one: plain lines, batches in order, bytes made already."""

from __future__ import annotations

import random

import msgspec
import pytest
from iteration_lines import LINES as ITERATION_LINES
from phase_lines import TURNS
from predefined_samples import LINES as PREDEFINED
from streams_support import CONFIG, at, put, run, tick, values_of, worker

from schemas.codec import decode, encode
from schemas.events import Batch, Event, Heartbeat, Log, Metric
from schemas.identity import Identity
from streams.lines.facts import facts_of_all
from streams.log.memory import MemoryLog
from streams.stages.rank import RankStage
from streams.stages.worker import WorkerState, summarise

TEXTS = [
    *("hello", "step 7 done", "loading shard 12 of 40", "waiting for 10.0.0.1:29500", "run 3f2a9c1e goes on", ""),
    *(
        "Downloading model",
        "world size: 8",
        "x" * 600,
        "two\nlines",
        "Traceback (most recent call last):\nKeyError: 'a'",
    ),
    *("[1] Sending process 12 closing signal SIGTERM", "failed (exitcode: 1) local_rank: 0 (pid: 12)"),
    *("Received 15 death signal, shutting down workers",),
    *(sample.text for sample in ITERATION_LINES),
    *(text for _, _, text, _ in PREDEFINED),
    *(turn[0] for turn in TURNS),
]
SEEDS = range(30)


def some_event(chance: random.Random, time: int) -> Event:
    iteration = chance.choice([None] * 9 + [chance.randrange(50)])
    kind = chance.random()
    if kind < 0.1:
        return Metric(time=time, name=chance.choice("ab"), value=chance.random(), iteration=iteration)
    if kind < 0.15:
        return Heartbeat(time=time, pids=[12])
    text = chance.choice(TEXTS if chance.random() < 0.3 else TEXTS[:5])
    return Log(time=time, stream="stdout", text=text, iteration=iteration)


def summed(who: Identity, state: WorkerState, ordered: list[Event], *, short: bool) -> list[bytes]:
    known = facts_of_all([event.text for event in ordered if isinstance(event, Log)])
    if not short:
        known = [msgspec.structs.replace(facts, plain=False, ends=True) for facts in known]
    summary, stamped = summarise(who, state, ordered, 3, CONFIG, known)
    return [encode(summary), *map(encode, stamped), encode(state)]


@pytest.mark.parametrize("rank", [0, None])
@pytest.mark.parametrize("seed", SEEDS)
def test_lines_that_say_nothing_are_summed_up_as_if_they_were_looked_at(seed: int, rank: int | None) -> None:
    chance = random.Random(seed)
    who = Identity(job="job", node="node0", rank=rank)
    ordered = [some_event(chance, at(30 + place / 100)) for place in range(chance.randrange(300))]
    phase = chance.choice(["", "", "train", "checkpoint"])
    short, long = (WorkerState(phase=phase, iteration=chance.choice([None, 3])) for _ in range(2))
    long.iteration = short.iteration
    assert summed(who, short, ordered, short=True) == summed(who, long, ordered, short=False)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_worker_s_lines_go_on_in_their_one_order(seed: int) -> None:
    chance = random.Random(seed)
    log = MemoryLog(1)
    expected: list[tuple[int, str, int, int, str]] = []
    for seq in range(12):
        producer, lines = chance.choice("pq"), chance.randrange(1, 20)
        seconds = [chance.choice([seq / 2, seq / 4, 3.0]) + place / 10 for place in range(lines)]
        if chance.random() < 0.3:
            chance.shuffle(seconds)
        events = [Log(time=at(second), stream="stdout", text=f"{seq} {place}") for place, second in enumerate(seconds)]
        put(log, Batch(producer=producer, boot="b", seq=seq, identity=worker("job", 0), events=events))
        expected += [(event.time, producer, seq, place, event.text) for place, event in enumerate(events)]
    tick(log, 30)
    run(log)
    stamped = [event for value in values_of(log, "stamped.logs") for event in decode("log", value).events]
    assert [event.text for event in stamped] == [row[-1] for row in sorted(expected)]


def test_bytes_that_an_output_has_already_are_those_of_its_record() -> None:
    chance = random.Random(1)
    log = MemoryLog(1)
    for seq in range(40):
        found = [Log(time=at(seq / 5), stream="stdout", text=chance.choice(TEXTS) * 40) for _ in range(200)]
        put(log, Batch(producer="p", boot="b", seq=seq, identity=worker("job", seq % 2), events=found))
    tick(log, 30)
    stage = RankStage(0, 1, 1, CONFIG)
    for topic, partition in stage.inputs:
        for entry in log.read(topic, partition, 0, 100):
            stage.on_entry(topic, partition, entry)
    outputs = [output for _ in range(3) for output in stage.close() or []]
    made = [output for output in outputs if output.value]
    assert {output.topic for output in made} == {"stamped.logs", "windows"} and len(made) > 4
    assert all(output.value == encode(output.record) for output in made)
