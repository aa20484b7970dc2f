"""Jobs with two faults, of two ranks on two nodes, one after the other; and what follows from a hang alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from lifecycle_jobs import ABORTED, LOST, failed
from streams_support import LOADING, TRACEBACK, WAITING, Script, agent, at, node_of, pid_of, worker

from schemas.events import Heartbeat, Log, Metric, Stack
from schemas.identity import Identity

Kind = Literal["nan", "hang", "crash", "kill", "gpu", "rank's gpu"]
RANKS, FIRST, SECOND = 8, 5, 2
BEGIN, LATER, UNTIL = 60, 130, 190
"""When the first fault begins, when the second does, and how long the job is watched (s)."""


def pair(first: Kind, second: Kind) -> Script:
    """Rank ``FIRST`` has the one fault, rank ``SECOND`` the other; who has failed is lost by all that do not hang."""
    faults = {first: (FIRST, BEGIN), second: (SECOND, LATER)}
    stops = [(second, kind) for kind, (_, second) in faults.items() if kind in ("hang", "crash", "kill")]
    stopped, by = min(stops, default=(UNTIL, ""))
    script = Script("pair")
    script.start(RANKS)
    script.train(RANKS, 1, stopped - 1)
    ends = {rank: since + 0.5 for kind, (rank, since) in faults.items() if kind in ("crash", "kill")}
    if by in ("crash", "kill"):
        for rank in set(range(RANKS)) - ends.keys():
            script.log(worker("pair", rank), stopped + 2 + rank / 10, LOST.format(rank))
            ends[rank] = stopped + 5
    sampled(script, ends)
    for kind, (rank, since) in faults.items():
        _happens(script, kind, rank, since, stopped)
        if kind == "hang":
            waiting(script, rank, since, ends)
    return script


def _happens(script: Script, kind: Kind, rank: int, since: int, stopped: int) -> None:
    """What is written of a fault itself."""
    if kind == "nan":
        for step in range(since, stopped):
            line = f"iteration {step:8d}/ 500 | lm loss: nan | grad norm: nan |"
            script.log(worker("pair", 0), step + 0.53, line, step)
    if kind == "crash":
        script.log(worker("pair", rank), since, TRACEBACK)
    if kind in ("crash", "kill"):
        failed(script, since + 1, {rank: 1 if kind == "crash" else -9})
    of_node = {
        "kill": f"Out of memory: Killed process {pid_of(rank)} (python3) total-vm:1kB, anon-rss:1kB, file-rss:0kB",
        "gpu": "NVRM: Xid (PCI:0000:0f:00): 79, GPU has fallen off the bus.",
        "rank's gpu": f"NVRM: Xid (PCI:0000:0f:00): 79, pid={pid_of(rank)}, name=python3, GPU has fallen off the bus.",
    }
    if kind in of_node:
        kernel = Identity(job="pair", node=node_of(rank), rank_reason="log of a node", process_type="kernel")
        script.send(kernel, Log(time=at(since), stream="kernel", text=of_node[kind], process_type="kernel"))


def hung(words: Mapping[int, tuple[float, str]], codes: Mapping[int, int], ended: Iterable[int] = ()) -> Script:
    """Rank ``FIRST`` hangs; then ranks print ``words``, launchers report ``codes``; who has ``ended`` is gone."""
    script = Script("hung")
    script.start(RANKS)
    script.train(RANKS, 1, BEGIN - 1)
    ends = dict.fromkeys([*codes, *ended], LATER + 1.0)
    sampled(script, ends)
    waiting(script, FIRST, BEGIN, ends)
    for rank, (second, text) in words.items():
        script.log(worker("hung", rank), second, text)
    failed(script, LATER + 1, dict(codes))
    script.log(agent("hung", node_of(0)), UNTIL, "bye")
    return script


def aborted() -> dict[int, tuple[float, str]]:
    """The words of all watchdogs but that of who hangs."""
    return {rank: (LATER + rank / 10, ABORTED.format(rank)) for rank in range(RANKS) if rank != FIRST}


def sampled(script: Script, ends: Mapping[int, float]) -> None:
    """Processes are seen until they end."""
    for second in range(0, UNTIL, 4):
        living = [rank for rank in range(RANKS) if second + 0.3 < ends.get(rank, UNTIL)]
        for rank in living:
            metric = Metric(time=at(second + 0.3), name="cpu_percent", value=95.0 - rank % 3, pid=pid_of(rank))
            script.send(worker(script.job, rank), metric)
        for node in sorted({node_of(rank) for rank in range(RANKS)}):
            pids = [pid_of(rank) for rank in living if node_of(rank) == node]
            script.send(agent(script.job, node), Heartbeat(time=at(second + 0.4), pids=pids))


def waiting(script: Script, outside: int, since: int, ends: Mapping[int, float]) -> None:
    """Stacks of all that live show who loads for ever and that all others wait."""
    for second in range(since + 5, UNTIL, 5):
        for rank in range(RANKS):
            if second + 0.7 < ends.get(rank, UNTIL):
                frames = LOADING if rank == outside else WAITING
                thread = {"process_type": "trainer", "pid": pid_of(rank), "thread": "MainThread"}
                script.send(worker(script.job, rank), Stack(time=at(second + 0.7), frames=frames, **thread))
