"""Synthetic jobs in phases in which no iteration comes: what is quiet there by design, and what hangs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from streams_support import WAITING, Script, agent, at, node_of, pid_of, worker

from schemas.events import Frame, Heartbeat, Metric, Stack

RANKS = 8
C10D = "/venv/site-packages/torch/distributed/distributed_c10d.py"


def stack(*frames: tuple[str, str, int]) -> list[Frame]:
    """Frames as (function, file, line), the outermost first; a file without a folder is one of the job."""
    return [Frame(name, file if "/" in file else f"/job/{file}", line) for name, file, line in frames]


TRAINING, STARTING = ("<module>", "train.py", 10), ("<module>", "train.py", 4)
BARRIER = stack(TRAINING, ("save", "checkpoint.py", 40), ("barrier", C10D, 4159))
WRITING = stack(TRAINING, ("save", "checkpoint.py", 31), ("_save", "/venv/site-packages/torch/serialization.py", 865))
FIRST = stack(STARTING, ("setup", "train.py", 20), ("all_reduce", C10D, 2799))
INDEXING = stack(STARTING, ("setup", "train.py", 18), ("build_index", "dataset.py", 77))
COMPILING = stack(
    TRAINING,
    ("train", "train.py", 92),
    ("compile_fx", "/venv/site-packages/torch/_inductor/compile_fx.py", 1200),
)
BUILDING = stack(
    STARTING,
    ("load", "/venv/site-packages/torch/utils/cpp_extension.py", 1380),
    ("communicate", "/usr/lib/python3.11/subprocess.py", 1196),
)
EVALUATING = stack(TRAINING, ("evaluate", "train.py", 120), ("forward", "model.py", 55))

BUSY, SPINS, WRITES, FROZEN = (90.0, 300.0), (100.0, 1.0), (12.0, 90.0), (0.1, 0.0)
"""CPU in percent, context switches within a sample's four seconds: at work, in a busy wait, at a file, not at all."""


class Life:
    """What the ranks' processes are seen to do, second after second."""

    def __init__(self, script: Script, ranks: int = RANKS) -> None:
        self.script, self.ranks = script, ranks
        self.switches = dict.fromkeys(range(ranks), 1000.0)

    def measured(
        self, first: int, last: int, load: tuple[float, float], apart: dict[int, tuple[float, float]] | None = None
    ) -> Life:
        """Metrics of all ranks and heartbeats of all nodes; ``apart`` are ranks with another load."""
        for second in range(first, last, 4):
            for rank in range(self.ranks):
                cpu, switches = (apart or {}).get(rank, load)
                self.switches[rank] += switches
                told = {"cpu_percent": cpu, "ctx_switches": self.switches[rank]}
                for name, value in told.items():
                    metric = Metric(time=at(second + 0.3), name=name, value=value, pid=pid_of(rank))
                    self.script.send(worker(self.script.job, rank), metric)
            for node in sorted({node_of(rank) for rank in range(self.ranks)}):
                pids = [pid_of(rank) for rank in range(self.ranks) if node_of(rank) == node]
                self.script.send(agent(self.script.job, node), Heartbeat(time=at(second + 0.4), pids=pids))
        return self

    def seen(self, seconds: Iterable[int], frames: Sequence[Frame], apart: dict[int, Sequence[Frame]]) -> Life:
        """Stacks of all ranks; ``apart`` are ranks that are elsewhere."""
        for second in seconds:
            for rank in range(self.ranks):
                one = Stack(
                    time=at(second + 0.7),
                    process_type="trainer",
                    pid=pid_of(rank),
                    thread="MainThread",
                    frames=list(apart.get(rank, frames)),
                )
                self.script.send(worker(self.script.job, rank), one)
        return self


def warming(firsts: Sequence[int] = (100, 160, 190, 200), last: int = 230) -> Script:
    """The first steps take minutes while kernels are compiled; then one a second."""
    script = Script("job")
    script.start(RANKS)
    for step, (before, second) in enumerate(pairwise((0, *firsts)), 1):
        took = 1000.0 * (second - before) - 700
        script.train(RANKS, step, step, zero=second - step, compute=lambda rank, at_step, took=took: took)
    steps = last - firsts[-1]
    script.train(RANKS, len(firsts) + 1, len(firsts) + steps, zero=firsts[-1] - len(firsts))
    Life(script).measured(0, last, BUSY).seen(range(20, firsts[-1], 20), COMPILING, {0: WAITING})
    return script


def saving(pause: int = 120, load: tuple[float, float] = WRITES, *, stacks: bool = True, one: bool = True) -> Script:
    """All save a checkpoint for two minutes after iteration 40: rank 0 writes, or all do; then training goes on."""
    script = Script("job")
    script.start(RANKS)
    script.train(RANKS, 1, 40)
    life = Life(script).measured(0, 41, BUSY)
    script.log(worker("job", 0), 41.0, "saving checkpoint at iteration      40 to /ckpt")
    life.measured(44, 44 + pause, SPINS if one else load, {0: load} if one else {})
    if stacks:
        life.seen(range(50, 40 + pause, 20), BARRIER if one else WRITING, {0: WRITING} if one else {})
    script.log(worker("job", 0), 42.0 + pause, "successfully saved checkpoint from iteration      40 to /ckpt")
    script.train(RANKS, 41, 70, zero=pause + 3)
    life.measured(44 + pause, 75 + pause, BUSY)
    return script


def stuck_saving(
    rank: int = 3, until: int = 170, load: tuple[float, float] = FROZEN, done: tuple[int, ...] = ()
) -> Script:
    """Everybody writes its own part of a checkpoint; one never comes back, the others wait for it.

    Those who are ``done`` say after a minute that theirs is.
    """
    script = Script("job")
    script.start(RANKS)
    script.train(RANKS, 1, 40)
    life = Life(script).measured(0, 41, BUSY)
    for every in range(RANKS):
        script.log(worker("job", every), 41.0 + every / 100, "saving checkpoint at iteration      40 to /ckpt")
    for every in done:
        script.log(worker("job", every), 101.0 + every / 100, "successfully saved checkpoint from iteration      40")
    life.measured(44, until, SPINS, {rank: load}).seen(range(60, until, 10), BARRIER, {rank: WRITING})
    return script


def evaluating(pause: int = 90, said: str = "Running Evaluation", done: str = "") -> Script:
    """An evaluation of a minute and a half after iteration 40; the first step behind what says ``done`` is long."""
    script = Script("job")
    script.start(RANKS)
    script.train(RANKS, 1, 40)
    for rank in range(RANKS):
        script.log(worker("job", rank), 41.0, said)
    life = Life(script).measured(0, 41, BUSY).measured(44, 44 + pause, BUSY)
    life.seen(range(50, 40 + pause, 10), EVALUATING, {1: WAITING})
    for rank in range(RANKS) if done else ():
        script.log(worker("job", rank), 37.5 + pause, done)
    script.train(RANKS, 41, 70, zero=pause + 3)
    life.measured(44 + pause, 75 + pause, BUSY)
    return script


def ending(said: str = "training finished", total: int | None = None) -> Script:
    """Training comes to its end; ranks go one after another, within a minute, and lose each other meanwhile."""
    script = Script("job")
    script.start(RANKS)
    script.train(RANKS, 1, 40)
    for rank in range(RANKS) if said else ():
        script.log(worker("job", rank), 40.8 + rank / 10, said)
    if total is not None:
        script.log(worker("job", 0), 40.7, f"iteration {total:8d}/ {total} | lm loss: 1.0E+00 |", total)
    life = Life(script).measured(0, 41, BUSY)
    for second in range(44, 100, 4):
        left = [rank for rank in range(RANKS) if 44 + 7 * rank > second]
        for rank in left:
            script.send(worker("job", rank), Metric(time=at(second), name="cpu_percent", value=1.0, pid=pid_of(rank)))
        for node in sorted({node_of(rank) for rank in range(RANKS)}):
            pids = [pid_of(rank) for rank in left if node_of(rank) == node]
            script.send(agent("job", node), Heartbeat(time=at(second + 0.1), pids=pids))
    for rank in range(4, RANKS):
        script.log(
            worker("job", rank), 46.0 + rank, f"[rank{rank}]: RuntimeError: Connection closed by peer [10.0.0.1]:7"
        )
    assert life.ranks == RANKS
    return script


def downloading(seconds: int = 200, others: tuple[float, float] = FROZEN) -> Script:
    """Rank 0 downloads the data set for minutes, the others wait for it; then training begins."""
    script = Script("job")
    script.start(RANKS)
    for part in range(0, seconds, 25):
        script.log(worker("job", 0), 2.0 + part, f"Downloading shard {part:05d}.tar")
    life = Life(script).measured(0, seconds, others, {0: WRITES})
    life.seen(range(20, seconds, 20), FIRST, {0: INDEXING})
    script.train(RANKS, 1, 30, zero=seconds)
    life.measured(seconds, seconds + 34, BUSY)
    return script


def building(seconds: int = 150) -> Script:
    """Rank 0 waits for a compiler that it has begun, the others for rank 0; then training begins."""
    script = Script("job")
    script.start(RANKS)
    life = Life(script).measured(0, 8, BUSY).measured(8, seconds, FROZEN)
    life.seen(range(20, seconds, 10), FIRST, {0: BUILDING})
    script.train(RANKS, 1, 30, zero=seconds)
    life.measured(seconds, seconds + 34, BUSY)
    return script


def stuck_at_start(
    rank: int = 5, others: tuple[float, float] = SPINS, until: int = 200, *, stacks: bool = True
) -> Script:
    """One rank never leaves its start-up, the others wait for it in their first collective."""
    script = Script("job")
    script.start(RANKS)
    for every in range(RANKS):
        script.log(worker("job", every), 3.0 + every / 100, "building the index of the data set")
    life = Life(script).measured(0, 12, BUSY).measured(12, until, others, {rank: FROZEN})
    if stacks:
        life.seen(range(20, until, 10), FIRST, {rank: INDEXING})
    return script


def restarted(load_s: int = 90) -> Script:
    """A failure at iteration 24, a second attempt that loads a checkpoint for a minute and a half, then trains."""
    script = Script("job")
    script.start(RANKS)
    script.train(RANKS, 1, 24)
    script.alive(RANKS, 0, 25)
    for rank in range(RANKS):
        text = f"failed (exitcode: 1) local_rank: {rank % 2} (pid: {pid_of(rank)}) of binary: python"
        script.log(agent("job", node_of(rank)), 26.0, text)
    script.start(RANKS, 33.2, "1")
    for rank in range(RANKS):
        script.log(worker("job", rank, "1"), 34.0, "loading checkpoint from /ckpt at iteration 20")
    script.alive(RANKS, 34, 34 + load_s, attempt="1")
    script.train(RANKS, 21, 50, attempt="1", zero=34 + load_s - 20)
    script.alive(RANKS, 34 + load_s, 66 + load_s, attempt="1")
    return script


QUIET: dict[str, Callable[[], Script]] = {
    "first steps of minutes": warming,
    "one first step of four minutes": lambda: warming((240, 245, 250), 280),
    "a first step, then a second one of two minutes": lambda: warming((20, 140, 141), 170),
    "rank 0 saves for two minutes": saving,
    "rank 0 saves and hardly does a thing": lambda: saving(load=(1.0, 12.0)),
    "rank 0 saves, unseen": lambda: saving(stacks=False),
    "all save for two minutes": lambda: saving(one=False),
    "all save and hardly do a thing": lambda: saving(one=False, load=(1.0, 12.0)),
    "evaluation": evaluating,
    "evaluation, by a bar": lambda: evaluating(said="Evaluating:   0%|          | 0/500 [00:00<?, ?it/s]"),
    "evaluation that is said to be done": lambda: evaluating(done="evaluation done: val_loss 2.31"),
    "shutdown": ending,
    "shutdown by the last iteration": lambda: ending("", 500),
    "shutdown of Megatron": lambda: ending("[exiting program at iteration 40] datetime: 2026-11-29 18:11:20 "),
    "shutdown after its time": lambda: ending("[exiting program after 690.01 minutes] datetime: 2026-11-29 18:11:20 "),
    "download": downloading,
    "download, others spin": lambda: downloading(others=SPINS),
    "a compiler, others sleep": building,
    "a restart that loads": restarted,
}


def stuck_in_step(step: int, until: int = 290) -> Script:
    """One rank never comes back from an early step."""
    script = Script("job")
    script.start(RANKS)
    script.train(RANKS, 1, step)
    life = Life(script).measured(0, step + 1, BUSY).measured(step + 1, until, SPINS)
    life.seen(range(10, until, 10), WAITING, {5: INDEXING})
    return script


HANGS: dict[str, tuple[Callable[[], Script], list[int]]] = {
    "one stuck in its checkpoint": (stuck_saving, [3]),
    "one stuck in its checkpoint, the others say that theirs is done": (
        lambda: stuck_saving(done=(0, 1, 2, 4, 5, 6, 7)),
        [3],
    ),
    "rank 0 stuck in its checkpoint": (lambda: stuck_saving(rank=0), [0]),
    "one stuck in its start-up, others spin": (stuck_at_start, [5]),
    "one stuck in its start-up, others sleep": (lambda: stuck_at_start(others=FROZEN), [5]),
    "one stuck after the first step": (lambda: stuck_in_step(1), [5]),
    "one stuck after the third step": (lambda: stuck_in_step(3), [5]),
    "one stuck in its start-up, unseen": (lambda: stuck_at_start(others=FROZEN, stacks=False), []),
}
"""What hangs in such a phase, and who is named."""
