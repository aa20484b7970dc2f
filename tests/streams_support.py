"""Synthetic jobs, logs built from them, and what to compare: shared by the suites over all stages."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from traced_job import TracedJob, slow_worker

import streams.detectors  # noqa: F401  (registers all detectors)
from producers.batches import batch
from producers.inputs import Inputs
from producers.observations import Observation
from producers.publish import publish
from producers.recording import Recording
from schemas.codec import decode, encode, headers, kind_of
from schemas.events import (
    Alert,
    Batch,
    Collective,
    Event,
    Frame,
    Heartbeat,
    Job,
    Log,
    Metric,
    Profile,
    Stack,
    Tick,
    Topology,
)
from schemas.identity import Identity
from schemas.library import Library
from schemas.ports import Entry
from schemas.topics import RAW_KINDS, RAW_TOPICS
from streams.config import StreamConfig
from streams.driver import Driver, furthest_behind
from streams.library.known import Known
from streams.library.learning import learned
from streams.library.record import merged_library
from streams.log.memory import MemoryLog
from streams.runner import Stage

SECOND = 1_000_000_000
BASE = 1_795_975_830 * SECOND
"""The start of a window of ten seconds."""
CONFIG = StreamConfig()
SHARED = Path(__file__).resolve().parents[2] / "shared/data/recorded"
RESULTS = (
    "windows",
    "anomalies",
    "merged.stacks",
    "incidents",
    "comparisons",
    "templates",
    "late",
    "fleet",
    "node.history",
)
JUDGED = ("anomalies", "merged.stacks", "incidents", "comparisons", "templates", "fleet", "node.history")
RANKS_PER_NODE = 2
TOPIC_OF = {kind: topic for topic, kind in RAW_KINDS.items()}

WAITING = [
    Frame("<module>", "/job/train.py", 10),
    Frame("train", "/job/train.py", 94),
    Frame("all_reduce", "/venv/site-packages/torch/distributed/distributed_c10d.py", 2799),
]
LOADING = [
    Frame("<module>", "/job/train.py", 10),
    Frame("train", "/job/train.py", 90),
    Frame("_next_data", "/venv/site-packages/torch/utils/data/dataloader.py", 1400),
]


def at(second: float) -> int:
    """Nanoseconds of a second of the synthetic time."""
    return BASE + round(second * SECOND)


def node_of(rank: int) -> str:
    return f"node{rank // RANKS_PER_NODE:02d}"


def worker(job: str, rank: int, attempt: str = "0", **more: Any) -> Identity:
    local = rank % RANKS_PER_NODE
    return Identity(job=job, attempt=attempt, node=node_of(rank), rank=rank, local_rank=local, **more)


def agent(job: str, node: str) -> Identity:
    return Identity(job=job, node=node, rank_reason="launcher of a node", process_type="launcher")


def pid_of(rank: int, attempt: str = "0") -> int:
    return 1000 + 100 * int(attempt) + rank


class Script:
    """Collects what the workers of a job send; a batch arrives up to ``flush_s`` after its events."""

    def __init__(self, job: str = "job", flush_s: int = 1) -> None:
        self.job = job
        self.flush_s = flush_s
        self.observations: list[Observation] = []

    def send(self, identity: Identity, event: Event) -> None:
        step = self.flush_s * SECOND
        arrival = -(-(event.time - BASE) // step) * step + BASE
        self.observations.append(Observation(identity, arrival, event, "", len(self.observations)))

    def log(self, identity: Identity, second: float, text: str, iteration: int | None = None) -> None:
        self.send(identity, Log(time=at(second), stream="stdout", text=text, iteration=iteration))

    def start(self, ranks: int, second: float = 0.2, attempt: str = "0") -> None:
        for rank in range(ranks):
            who = worker(self.job, rank, attempt)
            self.send(who, Topology(time=at(second), pid=pid_of(rank, attempt), world_size=ranks))
            self.log(who, second + 0.1, f"[rank {rank}] starting, world size: {ranks}")

    def train(
        self,
        ranks: int,
        first: int,
        last: int,
        *,
        attempt: str = "0",
        zero: float = 0.0,
        compute: Callable[[int, int], float] = lambda rank, step: 300.0,
    ) -> None:
        """One step a second: rank 0 prints iteration lines, every rank its step timers."""
        for step in range(first, last + 1):
            second = zero + step
            for rank in range(ranks):
                who = worker(self.job, rank, attempt)
                took = compute(rank, step) + 3 * ((rank * 7 + step * 3) % 5)
                text = (
                    f"step {step} timers (ms): forward_compute {took:.1f} data_load {20 + rank % 3} allreduce_wait 90.5"
                )
                self.log(who, second + 0.5 + rank / 1000, text, step)
            longer = max(compute(rank, step) for rank in range(ranks)) - 300
            elapsed = f"elapsed time per iteration (ms): {1000 + longer:.0f}.{step % 10}"
            loss = f"iteration {step:8d}/ 500 | {elapsed} | lm loss: {9 / step:.4E} |"
            self.log(worker(self.job, 0, attempt), second + 0.52, loss, step)

    def alive(self, ranks: int, first: int, last: int, *, attempt: str = "0", every: int = 4) -> None:
        """Metrics of every rank, and heartbeats of every node with the pids that it sees."""
        for second in range(first, last, every):
            for rank in range(ranks):
                who = worker(self.job, rank, attempt)
                value = 95.0 - rank % 3
                metric = Metric(time=at(second + 0.3), name="cpu_percent", value=value, pid=pid_of(rank, attempt))
                self.send(who, metric)
            for node in sorted({node_of(rank) for rank in range(ranks)}):
                pids = [pid_of(rank, attempt) for rank in range(ranks) if node_of(rank) == node]
                self.send(agent(self.job, node), Heartbeat(time=at(second + 0.4), pids=pids))

    def stacks(self, ranks: int, seconds: Iterable[int], outside: int, attempt: str = "0") -> None:
        for second in seconds:
            for rank in range(ranks):
                frames = LOADING if rank == outside else WAITING
                sample = Stack(
                    time=at(second + 0.7),
                    process_type="trainer",
                    pid=pid_of(rank, attempt),
                    thread="MainThread",
                    frames=frames,
                )
                self.send(worker(self.job, rank, attempt), sample)

    def timed(self, ranks: int, first: int, last: int, late: Callable[[int, int], float]) -> None:
        """One all-reduce a step as an inspector writes it down; ``late`` are the ms by which a rank joins later."""
        for step in range(first, last + 1):
            latest = max(late(rank, step) for rank in range(ranks))
            for rank in range(ranks):
                one = Collective(
                    time=at(step + 0.7),
                    group="communicator 0xa1",
                    sequence=step,
                    operation="AllReduce",
                    state="completed",
                    tool="inspector",
                    size=1 << 20,
                    duration=round((20 + (rank * 7 + step) % 5 / 10 + latest - late(rank, step)) * 1_000_000),
                )
                self.send(worker(self.job, rank), one)

    def dumps(self, ranks: int, second: int, outside: int) -> None:
        for rank in range(ranks):
            for sequence in (40, 41):
                if rank == outside and sequence == 41:
                    continue
                state = "completed" if sequence == 40 else "started"
                one = Collective(
                    time=at(second + 0.8),
                    group="default",
                    ranks=list(range(ranks)),
                    sequence=sequence,
                    operation="all_reduce",
                    state=state,  # type: ignore[arg-type]
                    created=at(second - 20),
                )
                self.send(worker(self.job, rank), one)

    @property
    def recording(self) -> Recording:
        return recording_of(self)


def recording_of(*scripts: Script) -> Recording:
    arrivals = batch([one for script in scripts for one in script.observations])
    return Recording(job=scripts[0].job, arrivals=arrivals, inputs=Inputs(files=1, records=len(arrivals), unused=[]))


def hanging(job: str = "hang", ranks: int = 8, flush_s: int = 1) -> Script:
    """Rank 5 (or the last) stays in its data loader after iteration 30, the others wait; a signal stops it at 60."""
    script = Script(job, flush_s)
    stuck = min(5, ranks - 1)
    script.start(ranks)
    script.train(ranks, 1, 30)
    script.alive(ranks, 0, 70)
    script.stacks(ranks, range(35, 70, 5), stuck)
    script.dumps(ranks, 55, stuck)
    for second in range(60, 69, 2):
        for rank in range(ranks):
            states = {"process_running": 0.0, "process_stopped": 1.0} if rank == stuck else {"process_running": 0.0}
            for name, value in states.items():
                script.send(worker(job, rank), Metric(time=at(second + 0.3), name=name, value=value, pid=pid_of(rank)))
    return script


def slowing(job: str = "slow", ranks: int = 8, steps: int = 70, flush_s: int = 1) -> Script:
    """Rank 3 computes 1.8 times as long from step 30 on; from step 10 on it joins collectives later than the others.

    Whenever stacks are taken the others wait for it.
    """
    script = Script(job, flush_s)
    script.start(ranks)
    script.train(ranks, 1, steps, compute=lambda rank, step: 540.0 if rank == 3 and step >= 30 else 300.0)
    script.alive(ranks, 0, steps)
    script.stacks(ranks, range(2, steps, 4), 3)
    script.timed(ranks, 1, steps, lambda rank, step: 240.0 if rank == 3 and step >= 10 else 0.0)
    return script


TRACEBACK = (
    "Traceback (most recent call last):\n"
    '  File "/job/train.py", line 90, in train\n'
    "    loss = model(batch)\n"
    "ValueError: negative length in shard"
)


def restarting(job: str = "again", ranks: int = 4) -> Script:
    """Rank 2 fails by an error of its own, its peers by its loss; the launchers begin a second attempt."""
    script = Script(job)
    script.start(ranks)
    script.train(ranks, 1, 24)
    script.alive(ranks, 0, 26)
    script.log(worker(job, 2), 25.1, TRACEBACK)
    for rank in (0, 1, 3):
        script.log(worker(job, rank), 26.0 + rank / 10, f"[rank{rank}]: RuntimeError: Connection closed by peer")
    for rank in range(ranks):
        failed = f"failed (exitcode: 1) local_rank: {rank % RANKS_PER_NODE} (pid: {pid_of(rank)}) of binary: python"
        script.log(agent(job, node_of(rank)), 28.0 + rank / 10, failed)
    script.start(ranks, 33.2, "1")
    script.train(ranks, 1, 20, attempt="1", zero=34)
    script.alive(ranks, 34, 56, attempt="1")
    return script


def dying(job: str = "dead", ranks: int = 4) -> Script:
    """Rank 1 is killed by a signal; the launchers end the others."""
    script = Script(job)
    script.start(ranks)
    script.train(ranks, 1, 24)
    script.alive(ranks, 0, 25)
    for rank in range(ranks):
        code = -9 if rank == 1 else -15
        failed = (
            f"failed (exitcode: {code}) local_rank: {rank % RANKS_PER_NODE} (pid: {pid_of(rank)}) of binary: python"
        )
        script.log(agent(job, node_of(rank)), 26.0 + rank, failed)
    script.log(worker(job, 0), 26.4, "[rank0]: RuntimeError: Connection reset by peer")
    return script


def steady(job: str = "steady", ranks: int = 2, seconds: int = 40) -> Script:
    script = Script(job)
    script.start(ranks)
    script.train(ranks, 1, seconds)
    script.alive(ranks, 0, seconds)
    script.timed(ranks, 1, seconds, lambda _rank, _step: 0.0)
    return script


def ailing(job: str = "ailing", ranks: int = 8) -> Script:
    """Its loss is no number from step 20 on, rank 2 uses little CPU, rank 4 dies silently, rank 6 falls silent.

    Somebody on the node of rank 2 prints an error, the kernel there reports a GPU, another one gets too hot, and the
    platform raises an alarm.
    """
    script = Script(job)
    script.start(ranks)
    script.train(ranks, 1, 69)
    for second in range(1, 70, 2):
        for rank in range(ranks):
            if (rank == 4 and second > 34) or (rank == 6 and second > 30):
                continue
            who = worker(job, rank)
            pid = pid_of(rank)
            load = 10.0 if rank == 2 else 90.0 + rank % 3
            script.send(who, Metric(time=at(second), name="cpu_percent", value=load, pid=pid))
            dead = 1.0 if rank == 4 and second > 30 else 0.0
            script.send(who, Metric(time=at(second), name="process_zombie", value=dead, pid=pid))
        for node in sorted({node_of(rank) for rank in range(ranks)}):
            pids = [pid_of(rank) for rank in range(ranks) if node_of(rank) == node and rank not in (4, 6)]
            script.send(agent(job, node), Heartbeat(time=at(second + 0.1), pids=pids))
    script.observations = [
        one
        for one in script.observations
        if not (one.identity.rank in (4, 6) and isinstance(one.event, Log) and one.event.time > at(30))
    ]
    for step in range(20, 60):
        line = f"iteration {step:8d}/ 500 | lm loss: nan | grad norm: nan |"
        script.log(worker(job, 0), step + 0.53, line, step)
    somebody = Identity(job=job, node=node_of(2), rank_reason="no label tells")
    error = 'Traceback (most recent call last):\n  File "x.py", line 1, in f\n    f()\nKeyError: 1'
    script.send(somebody, Log(time=at(45), stream="stderr", text=error, process_type="trainer"))
    kernel = Identity(job=job, node=node_of(2), rank_reason="log of a node", process_type="kernel")
    xid = "NVRM: Xid (PCI:0000:0f:00): 94, pid=7, name=python3, Ch 00000008"
    script.send(kernel, Log(time=at(46), stream="kernel", text=xid, process_type="kernel"))
    platform = Identity(job=job, node=node_of(2), rank_reason="alarm", process_type="platform")
    script.send(platform, Alert(time=at(28), name="HostTooWarm", text="inlet at 41 C", severity="warning"))
    sampler = Identity(job=job, node=node_of(2), rank_reason="node", process_type="sampler")
    for gpu in range(4):
        heat = Metric(time=at(50), name="DCGM_FI_DEV_GPU_TEMP", value=60 + 10 * gpu, unit="C", device=f"nvidia{gpu}")
        script.send(sampler, heat)
    for second in range(35, 60, 5):
        bits = 0x44 if second > 44 else 0x4
        name = "DCGM_FI_DEV_CLOCKS_EVENT_REASONS"
        script.send(sampler, Metric(time=at(second), name=name, value=bits, unit="bits", device="00000000:9B:00.0"))
    return script


def diverging(job: str = "diverge", ranks: int = 2) -> Script:
    """Its loss is far too high from step 31 on, and the loss scale on its floor."""
    script = Script(job)
    script.start(ranks)
    script.train(ranks, 1, 30)
    script.alive(ranks, 0, 60)
    for step in range(31, 60):
        scale = 65536.0 if step < 33 else 1.0
        line = f"iteration {step:8d}/ 500 | lm loss: {12 + step % 3:.4E} | loss scale: {scale} |"
        script.log(worker(job, 0), step + 0.53, line, step)
    return script


def describe(script: Script, ranks: int, **settings: Any) -> Script:
    """The job says what it is: what all such jobs are, with these facets in place of theirs."""
    known: dict[str, Any] = {
        "framework": "megatron",
        "model": "gpt-7b",
        "layout": {"tp": 2, "dp": ranks // 2},
        "versions": {"torch": "2.8.0"},
        "flags": {"fp8": "false", "bf16": "true"},
        "hyperparameters": {"lr": "0.0003", "seq_length": "4096"},
        "scale": {"nodes": str(ranks // 2)},
    }
    script.send(worker(script.job, 0), Job(time=at(0.5), world_size=ranks, **{**known, **settings}))
    return script


def described(
    job: str = "described", ranks: int = 4, steps: int = 60, *, step_s: int = 1, lines: int = 1, **settings: Any
) -> Script:
    """A healthy job that tells what it is, one step every ``step_s`` seconds; its ranks print so many lines a step.

    ``settings`` are facets of its description, beside those that all such jobs have.
    """
    script = Script(job)
    script.start(ranks)
    describe(script, ranks, **settings)
    script.alive(ranks, 0, steps * step_s)
    for step in range(1, steps + 1):
        second = step * step_s
        for rank in range(ranks):
            for number in range(lines):
                script.log(
                    worker(job, rank), second + 0.5 + rank / 100 + number / 1000, f"packed {step} sequences", step
                )
        elapsed = f"elapsed time per iteration (ms): {1000 * step_s}.{step % 10}"
        script.log(worker(job, 0), second + 0.6, f"iteration {step:8d}/ 500 | {elapsed} | lm loss: 2.0E+00 |", step)
    return script


def starting(job: str = "starting", ranks: int = 4, seconds: int = 140) -> Script:
    """A described job that does not come to its first iteration."""
    script = described(job, ranks, 3)
    script.observations = [one for one in script.observations if one.event.iteration is None]
    for second in range(1, seconds, 3):
        for rank in range(ranks):
            script.log(worker(job, rank), second, "waiting for a shard")
    return script


def going_wrong(script: Script, first: int, last: int) -> Script:
    """The loss of a described job becomes no number, second by second."""
    for step in range(first, last + 1):
        line = f"iteration {step:8d}/ 500 | elapsed time per iteration (ms): 1000.{step % 10} | lm loss: nan |"
        script.log(worker(script.job, 0), step + 0.6, line, step)
    return script


def traced(job: str = "traced", ranks: int = 8, steps: int = 24) -> Script:
    """Four replicas of two stages, all operations timed: one worker of the last stage computes twice as long."""
    script = Script(job)
    timed = TracedJob(work=slow_worker(1, 1), dp=ranks // 2, pp=2, steps=steps, microbatches=4)
    places = timed.places()
    script.start(ranks)
    for number, found in enumerate(timed.timelines().values()):
        for rank, timeline in found.items():
            at_ = {"dp": places[rank][0], "pp": places[rank][1]}
            who = worker(job, rank, coordinates=at_)
            if number == 0:
                script.send(who, Job(time=at(0.5), layout={"dp": timed.dp, "pp": timed.pp}))
            script.send(who, msgspec.structs.replace(timeline, time=at(number + 1 + rank / 10)))
    script.alive(ranks, 0, steps)
    return script


def talking(job: str = "talk", ranks: int = 8) -> Script:
    """Rank 3 reads its shard again and again from second 40 on; after iteration 50 rank 5 gets no batch.

    The others wait for it, till their watchdogs give up; those of rank 4 had one operation less to wait for.
    """
    script = Script(job)
    script.start(ranks)
    script.train(ranks, 1, 50)
    script.alive(ranks, 0, 90)
    for step in range(1, 51):
        for rank in range(ranks):
            if (rank, step) != (5, 50):
                script.log(worker(job, rank), step + 0.8 + rank / 1000, f"batch {step + 1} is ready")
    for second in range(40, 60):
        for part in range(5):
            script.log(worker(job, 3), second + part / 5, f"shard 00412: read retry {part} after 30 s")
    for rank in range(ranks):
        works = f"work: 808, last enqueued NCCL work: {810 if rank == 4 else 811}, last completed NCCL work: 807"
        line = f"[PG 0 Rank {rank}] Exception (either an error or timeout) detected by watchdog at {works}"
        script.log(worker(job, rank), 85.0 if rank == 1 else 88.0, line)
    return script


def leaking(job: str = "leak", ranks: int = 4, windows: int = 29) -> Script:
    """One step a window; memory of rank 1 grows all the time, from window 20 on rank 2 has little to do."""
    script = Script(job)
    script.start(ranks)
    for window in range(windows):
        step = f"iteration {window + 1:8d}/ 500 | elapsed time per iteration (ms): 10000.0 | lm loss: 2.0E+00 |"
        script.log(worker(job, 0), window * 10 + 1, step, window + 1)
        for rank in range(ranks):
            busy = 0.1 if rank == 2 and window >= 20 else 1.0
            sampled = {
                "cpu_percent": ("percent", busy * (90 + rank + window % 3)),
                "power_watts": ("W", 100 + busy * (400 + window % 5)),
                "rss_bytes": ("bytes", 2.0**30 * (4 + (0.05 * window if rank == 1 else 0.01 * (window % 2)))),
            }
            for name, (unit, value) in sampled.items():
                metric = Metric(time=at(window * 10 + 5), name=name, value=value, unit=unit, pid=pid_of(rank))
                script.send(worker(job, rank), metric)
    return script


def profiled(job: str = "profiled", ranks: int = 8, slow: float = 0.4) -> Script:
    """Everybody is profiled twice, a minute apart; by then rank 5 augments its data for longer by ``slow`` seconds."""
    script = Script(job)
    script.start(ranks)
    script.train(ranks, 1, 78)
    script.alive(ranks, 0, 78)
    for second, more in ((15, 0.0), (75, slow)):
        for rank in range(ranks):
            own = more if rank == 5 else 0.0
            held = {"augment": 0.1 + own, "gemm": 0.6, "ncclDevKernel_AllReduce": 0.1 + more - own}
            step = sum(held.values())
            for (name, typical), kind in zip(held.items(), ("python", "gpu", "collective"), strict=True):
                event = Profile(
                    time=at(second + rank / 100),
                    name=name,
                    kind=kind,
                    share=typical / step,
                    mean=typical / 4,
                    spread=0.001,
                    count=24,
                    typical=typical,
                    unrest=0.002,
                    duration=int(6 * step * SECOND),
                    steps=6,
                    first_step=second,
                    world_size=ranks,
                )
                script.send(worker(job, rank), event)
    return script


JOBS: dict[str, Callable[[], Recording]] = {
    "hang": lambda: hanging().recording,
    "slow": lambda: slowing().recording,
    "restart": lambda: restarting().recording,
    "killed": lambda: dying().recording,
    "ailing": lambda: ailing().recording,
    "profiled": lambda: profiled().recording,
    "spanning": lambda: hanging("span", 4, flush_s=3).recording,
    "two at once": lambda: recording_of(hanging("one", 4), restarting("two"), slowing("three", 4, 50)),
    "one node": lambda: recording_of(*(dying(f"dead-{number}") for number in range(3))),
}
"""Recordings of synthetic jobs by what is wrong with them; each gives at least one incident."""


def written_log(recording: Recording, partitions: int = 2, config: StreamConfig = CONFIG) -> MemoryLog:
    """A log that holds the recording and its ticks, and nothing derived yet."""
    log = MemoryLog(partitions)
    publish(recording, log, until=None, closing_ns=config.closing_ns)
    return log


Raw = dict[tuple[str, int], list[Entry]]


def raw_of(log: MemoryLog) -> Raw:
    """The raw topics' entries by topic and partition."""
    parts = [(topic, number) for topic in RAW_TOPICS for number in range(log.partitions(topic))]
    return {(topic, number): list(log.read(topic, number, 0, log.end(topic, number))) for topic, number in parts}


def log_of(raw: Mapping[tuple[str, int], Sequence[Entry]], log: Any = None) -> Any:
    """A log with these entries, numbered anew; in memory unless one is given."""
    log = log if log is not None else MemoryLog(1 + max(number for _, number in raw))
    for (topic, number), entries in raw.items():
        for entry in entries:
            log.append(topic, entry.key, entry.value, entry.headers, entry.time, number)
    return log


def is_tick(entry: Entry) -> bool:
    return entry.headers["schema"] == "tick"


def between_ticks(entries: Sequence[Entry], change: Callable[[list[Entry]], list[Entry]]) -> list[Entry]:
    """The entries with every run between two ticks changed; the ticks stay where they are."""
    changed: list[Entry] = []
    run: list[Entry] = []
    for entry in entries:
        if is_tick(entry):
            changed += [*change(run), entry]
            run = []
        else:
            run.append(entry)
    return [*changed, *change(run)]


def run(
    log: Any,
    config: StreamConfig = CONFIG,
    *,
    store: Any = None,
    choose: Callable[[Sequence[tuple[Stage, str, int]]], tuple[int, int]] = furthest_behind,
    known: Known | None = None,
) -> Driver:
    driver = Driver(log, config, store=store, choose=choose, known=known)
    driver.run()
    return driver


def library_of(*scripts: Script, name: str = "healthy", partitions: int = 2) -> Library:
    """What is learned of these jobs, each from a run of its own."""
    libraries = []
    for script in scripts:
        log = written_log(script.recording, partitions)
        run(log)
        libraries.append(learned(log, name))
    return merged_library(libraries, name)


def any_of(seed: int, most: int = 8) -> Callable[[Sequence[tuple[Stage, str, int]]], tuple[int, int]]:
    """A chooser that picks anything that is ready, and any number of entries up to ``most``."""
    chance = random.Random(seed)
    return lambda ready: (chance.randrange(len(ready)), chance.randint(1, most))


def said(log: Any, topics: Sequence[str] = RESULTS) -> dict[str, list[bytes]]:
    """Encoded values by topic, sorted, duplicates kept; progress is left out."""
    return {topic: sorted(values_of(log, topic)) for topic in topics}


def values_of(log: Any, topic: str) -> list[bytes]:
    found = []
    for number in range(log.partitions(topic)):
        for entry in log.read(topic, number, 0, log.end(topic, number)):
            if entry.headers["schema"] != "progress":
                found.append(bytes(entry.value))
    return found


def folded(log: Any, topics: Sequence[str] = RESULTS) -> dict[str, list[bytes]]:
    """As ``said``, each value once: what a reader sees who drops what it has seen."""
    return {topic: sorted(set(values_of(log, topic))) for topic in topics}


def records(log: Any, topic: str) -> list[Any]:
    """Decoded records of a topic, partition by partition, progress left out."""
    kinds = {"windows": "window", "anomalies": "anomaly", "incidents": "incident", "templates": "template"}
    kinds |= {"dead-letters": "dead_letter", "late": "late", "notices": "notice", "merged.stacks": "merged_stacks"}
    kinds |= {"fleet": "fleet_report", "node.history": "node_history"}
    kinds |= {"comparisons": "comparison"}
    kinds |= {"meta": "meta"}
    return [decode(kinds[topic], value) for value in values_of(log, topic)]


def put(log: Any, one: Batch[Any], partition: int | None = None) -> tuple[int, int]:
    """Append one batch to the raw topic of its kind."""
    kind = kind_of(one)
    time = max(event.time for event in one.events)
    place: tuple[int, int] = log.append(
        TOPIC_OF[kind], one.identity.key.encode(), encode(one), headers(kind), time, partition
    )
    return place


def tick(log: Any, second: float, topics: Sequence[str] = RAW_TOPICS, partitions: Iterable[int] | None = None) -> None:
    """Append a tick to all raw topics, or to those named."""
    for topic in topics:
        for number in partitions if partitions is not None else range(log.partitions(topic)):
            log.append(topic, b"", encode(Tick(time=at(second))), headers("tick"), at(second), number)


def lines(
    seconds: Iterable[float], *, job: str = "job", rank: int = 0, seq: int = 0, text: str = "hello", producer: str = "p"
) -> Batch[Any]:
    """A batch of log lines at these seconds."""
    found = [Log(time=at(second), stream="stdout", text=text) for second in seconds]
    return Batch(producer=producer, boot="b", seq=seq, identity=worker(job, rank), events=found)


def plain(record: msgspec.Struct) -> Any:
    return msgspec.to_builtins(record)
