"""How long it takes, live over Kafka, from a fatal line to its early notice, and from the last evidence to a name.

    python tests/benchmarks/latency.py [--jobs N] [--ranks N] [--partitions N] [--quiet]

A rank worker and a job worker run as processes, with the workers' clock; simulated jobs append their events in real
time, one job after another, so that some always run. Half of them fail by an error of one rank, half hang until the
ranks' dumps tell who never came. What appears is read as the feed reads it. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import heapq
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

import kafka_support
import msgspec
import numpy as np
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from kafka_pipeline import Pipeline, pipeline

from schemas.codec import decode, encode, headers, kind_of
from schemas.events import Batch, Collective, Event, Heartbeat, Log, Topology
from schemas.events import Job as JobEvent
from schemas.identity import Identity
from schemas.results import Incident, Notice, Progress
from schemas.topics import RAW_TOPIC_OF
from streams.config import StreamConfig
from streams.incidents.situation import TOGETHER_NS
from streams.log.kafka_tail import KafkaTail

SECOND = 1_000_000_000
PER_NODE = 8
EVERY_S = 2.618
"""A job begins so long after the one before it: no divisor of a window, so faults lie everywhere in one."""
STEPS = 12
"""Iterations before the fault, one a second."""
DUMPS_AFTER_S = 12.0
"""How long a job hangs before its ranks dump what they wait for."""
WAIT_S = 45.0
"""How long after the last evidence a name may take."""
CULPRIT = 5
CONFIG = StreamConfig()
TRACEBACK = (
    "Traceback (most recent call last):\n"
    '  File "/job/train.py", line 90, in train\n'
    "    loss = model(batch)\n"
    "ValueError: negative length in shard"
)

LOST = "node01:77:88 [0] misc/socket.cc:49 NCCL WARN socketProgress: Connection closed by remote peer node00<4711>"


class Due(NamedTuple):
    """What a worker appends at ``second`` of its job; ``mark`` is what it means for the measurement."""

    second: float
    worker: Identity
    event: Event
    mark: str = ""


class Job:
    """One job and what was seen of it; times are in seconds of ``time.perf_counter``, event times in ns."""

    def __init__(self, number: int, ranks: int, *, hangs: bool) -> None:
        self.name = f"{'hang' if hangs else 'crash'}-{number}"
        self.hangs = hangs
        self.ranks = ranks
        self.appended: dict[str, float] = {}
        self.times: dict[str, int] = {}
        self.noticed: float | None = None
        self.named: float | None = None
        self.published = 0
        self.wrong: list[int | None] = []

    def worker(self, rank: int) -> Identity:
        return Identity(job=self.name, node=f"node{rank // PER_NODE:02d}", rank=rank, local_rank=rank % PER_NODE)

    def agent(self, node: int) -> Identity:
        return Identity(job=self.name, node=f"node{node:02d}", rank_reason="launcher", process_type="launcher")

    def script(self) -> Iterator[Due]:
        """All that it appends, in order of time for each worker."""
        yield Due(0.1, self.worker(0), JobEvent(time=0, world_size=self.ranks, layout={"pp": 1, "tp": 1}))
        for rank in range(self.ranks):
            who = self.worker(rank)
            yield Due(0.1, who, Topology(time=0, pid=1000 + rank, world_size=self.ranks))
            yield Due(0.2, who, Log(time=0, stream="stdout", text=f"[rank {rank}] starting, world size: {self.ranks}"))
            for step in range(1, STEPS + 1):
                text = f"step {step} timers (ms): forward_compute 30{rank % 7}.0 data_load 20.1 allreduce_wait 90.5"
                yield Due(step + rank / self.ranks / 2, who, Log(time=0, stream="stdout", text=text, iteration=step))
        for step in range(1, STEPS + 1):
            text = f"iteration {step:8d}/ 500 | elapsed time per iteration (ms): 1000.{step % 10} | lm loss: 1.0E+00 |"
            yield Due(step + 0.6, self.worker(0), Log(time=0, stream="stdout", text=text, iteration=step))
        last = STEPS + DUMPS_AFTER_S + 15 if self.hangs else STEPS + 15
        for second in range(1, int(last), 2):
            for node in range(-(-self.ranks // PER_NODE)):
                pids = [1000 + rank for rank in range(self.ranks) if rank // PER_NODE == node]
                yield Due(second + 0.5, self.agent(node), Heartbeat(time=0, pids=pids))
        yield from self._hang() if self.hangs else self._crash()

    def _crash(self) -> Iterator[Due]:
        yield Due(STEPS + 1.0, self.worker(CULPRIT), Log(time=0, stream="stderr", text=TRACEBACK), "fatal")
        for rank in range(self.ranks):
            if rank != CULPRIT:
                yield Due(STEPS + 1.2, self.worker(rank), Log(time=0, stream="stderr", text=LOST), "last")
        for rank in range(self.ranks):
            text = f"failed (exitcode: 1) local_rank: {rank % PER_NODE} (pid: {1000 + rank}) of binary: python"
            yield Due(STEPS + 1.3, self.agent(rank // PER_NODE), Log(time=0, stream="stderr", text=text))

    def _hang(self) -> Iterator[Due]:
        for rank in range(self.ranks):
            for sequence in (40, 41):
                if rank == CULPRIT and sequence == 41:
                    continue
                one = Collective(
                    time=0,
                    group="default",
                    ranks=list(range(self.ranks)),
                    sequence=sequence,
                    operation="all_reduce",
                    state="completed" if sequence == 40 else "started",
                )
                yield Due(STEPS + DUMPS_AFTER_S + rank / self.ranks / 4, self.worker(rank), one, "last")

    def bound_s(self) -> float:
        """How long the last record had to wait until the window could be closed that tells whom to name.

        Mostly its own. Of an error what another rank printed at about that time has to be known too, by clocks that may
        differ: so one at the very end of a window is judged with the next.
        """
        last, window = self.times["last"], CONFIG.window_ns
        ends = [(last // window + 1) * window]
        if "fatal" in self.times:
            ends.append(-(-(self.times["fatal"] + TOGETHER_NS) // window) * window)
        end = max(ends) + CONFIG.lateness_ns
        return (end - last) / SECOND


class Bench:
    """Plays jobs against a pipeline and reads what it says."""

    def __init__(self, live: Pipeline, jobs: Sequence[Job]) -> None:
        self._live = live
        self._jobs = {job.name: job for job in jobs}
        self._seq = 0
        self._tail = KafkaTail(live.log, ("notices", "incidents"), beginning=False)

    def play(self) -> None:
        """Append everything when it is due, and read in between, until all are named or have waited long enough."""
        began = time.perf_counter() + 0.5
        due = [
            (began + number * EVERY_S + one.second, serial, job, one)
            for number, job in enumerate(self._jobs.values())
            for serial, one in enumerate(job.script())
        ]
        heapq.heapify(due)
        while due:
            wait = due[0][0] - time.perf_counter()
            if wait > 0:
                self._read(min(wait, 0.05))
                continue
            at, _, job, one = heapq.heappop(due)
            together = [one]
            while due and due[0][0] == at and due[0][2] is job and _same(due[0][3], one):
                together.append(heapq.heappop(due)[3])
            self._append(job, together)
        end = time.perf_counter() + WAIT_S
        while any(job.named is None for job in self._jobs.values()) and time.perf_counter() < end:
            self._read(0.5)
        self._tail.close()

    def _append(self, job: Job, due: list[Due]) -> None:
        """One batch of events of one kind from one worker, with the present time."""
        now = time.time_ns()
        events = [_at(one.event, now) for one in due]
        who = due[0].worker
        self._seq += 1
        batch: Batch[Event] = Batch(producer="bench", boot="0", seq=self._seq, identity=who, events=events)
        kind = kind_of(events[0])
        for mark in {one.mark for one in due} - {""}:
            job.times[mark], job.appended[mark] = now, time.perf_counter()
        self._live.log.append(RAW_TOPIC_OF[kind], who.key.encode(), encode(batch), headers(kind), now)

    def _read(self, wait_s: float) -> None:
        for topic, entry in self._tail.poll(500, wait_s):
            seen = time.perf_counter()
            record: Notice | Incident = decode("notice" if topic == "notices" else "incident", entry.value)
            job = self._jobs[record.job]
            if isinstance(record, Notice):
                job.noticed = job.noticed or seen
                continue
            ranks = [suspect.rank for suspect in record.suspects]
            job.wrong += [rank for rank in ranks if rank != CULPRIT]
            if ranks == [CULPRIT] and job.named is None:
                job.named, job.published = seen, record.published


def _same(one: Due, other: Due) -> bool:
    return one.worker == other.worker and type(one.event) is type(other.event)


def _at(event: Event, now: int) -> Event:
    """The event as if it happened now; a collective was enqueued when the job stopped."""
    created = {"created": now - 10 * SECOND} if isinstance(event, Collective) else {}
    return msgspec.structs.replace(event, time=now, **created)


def figures(values: Sequence[float]) -> dict[str, float]:
    """p50, p99 and the largest, in seconds."""
    if not values:
        return {}
    p50, p99 = np.percentile(values, [50, 99])
    return {"p50": round(float(p50), 2), "p99": round(float(p99), 2), "max": round(max(values), 2)}


def sent_at(live: Pipeline, topic: str) -> Iterator[tuple[Any, float]]:
    """All records of a topic of one kind a record, with the time (s) at which they were sent."""
    name, counts = live.log.name_of(topic), live.log.partitions(topic)
    own = {"bootstrap.servers": live.settings.bootstrap, "group.id": "bench", "enable.partition.eof": True}
    reader = Consumer(own)
    reader.assign([TopicPartition(name, number, OFFSET_BEGINNING) for number in range(counts)])
    ended = 0
    while ended < counts:
        message = reader.poll(5.0)
        if message is None or message.error() is not None:
            ended += 1
            continue
        raw: Any = message
        kind = dict(raw.headers())["schema"].decode()
        yield decode(kind, raw.value()), raw.timestamp()[1] / 1000
    reader.close()


def where_it_goes(live: Pipeline) -> dict[str, dict[str, float]]:
    """Seconds from when a window may be closed to its report by all partitions, and from there to its incidents."""
    reported: dict[int, float] = {}
    for record, sent in sent_at(live, "windows"):
        if isinstance(record, Progress):
            reported[record.end] = max(reported.get(record.end, sent), sent)
    ranks = [sent - (end + CONFIG.lateness_ns) / SECOND for end, sent in sorted(reported.items())[1:]]
    jobs = [sent - reported[record.published] for record, sent in sent_at(live, "incidents")]
    return {"rank_stage_s": figures(ranks), "job_stage_s": figures(jobs)}


def running(live: Pipeline) -> None:
    """Start the workers and wait until they close windows."""
    tail = KafkaTail(live.log, ("meta",), beginning=True)
    for stage in ("rank", "job"):
        live.start("worker", "--stage", stage)
    until = time.monotonic() + 120
    while not tail.poll(10, 0.5):
        if time.monotonic() > until or any(process.poll() is not None for process in live.processes):
            raise SystemExit(f"the workers close no window\n{live.printed()}")
    tail.close()


def measured(jobs: Sequence[Job]) -> dict[str, Any]:
    """The figures of all jobs."""
    crashes, hangs = [job for job in jobs if not job.hangs], [job for job in jobs if job.hangs]
    notices = [job.noticed - job.appended["fatal"] for job in crashes if job.noticed is not None]
    found: dict[str, Any] = {"notice_s": figures(notices)}
    for kind, those in (("crash", crashes), ("hang", hangs)):
        named = [job for job in those if job.named is not None]
        took = [(job.named or 0) - job.appended["last"] for job in named]
        beyond = [seconds - job.bound_s() for seconds, job in zip(took, named, strict=True)]
        found[f"{kind}_named_s"] = figures(took)
        found[f"{kind}_beyond_window_s"] = figures(beyond)
    found["not_noticed"] = sum(job.noticed is None for job in crashes)
    found["not_named"] = sum(job.named is None for job in jobs)
    found["wrong_names"] = sum(len(job.wrong) for job in jobs)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=40)
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--quiet", action="store_true", help="print the last line only")
    arguments = parser.parse_args()
    jobs = [Job(number, arguments.ranks, hangs=bool(number % 2)) for number in range(arguments.jobs)]
    with tempfile.TemporaryDirectory(prefix="rankwatch-bench-") as name:
        root = Path(name)
        broker = kafka_support.Broker(root / "kafka")
        broker.start()
        try:
            with pipeline(broker.address, root, partitions=arguments.partitions, ticks="workers") as live:
                running(live)
                Bench(live, jobs).play()
                parts = where_it_goes(live)
                printed = live.printed()
        finally:
            broker.stop(kill=True)
    found = measured(jobs)
    if not arguments.quiet:
        for job in jobs:
            ends = {mark: job.named - at for mark, at in job.appended.items() if job.named is not None}
            print(f"{job.name}: noticed {_after(job.noticed, job.appended.get('fatal'))}, named after {ends}")
    if found["not_noticed"] or found["not_named"] or found["wrong_names"]:
        print(printed)
    bounds = {"window_s": CONFIG.window_s, "lateness_s": CONFIG.lateness_s, "tick_s": 1.0}
    print(json.dumps({"bench": "latency", "jobs": len(jobs), "ranks": arguments.ranks, **bounds, **found, **parts}))


def _after(seen: float | None, since: float | None) -> str:
    return "-" if seen is None or since is None else f"after {seen - since:.3f} s"


if __name__ == "__main__":
    main()
