"""Simulated jobs in which one rank fails: what it, its peers, its node and its launcher write of that, and when."""

from __future__ import annotations

import random
from typing import Literal

import msgspec
from disturbed import CASCADES, OWN_LOOKING
from streams_support import RANKS_PER_NODE, SECOND, Script, agent, at, node_of, pid_of, worker

from producers.recording import Recording
from schemas.events import Heartbeat, Log, Metric
from schemas.identity import Identity

Kind = Literal["raises", "is killed", "runs out of memory", "loses its GPU", "ends silently"]
KINDS: tuple[Kind, ...] = Kind.__args__  # type: ignore[attr-defined]
JOB = "crash"
HEAD = 'Traceback (most recent call last):\n  File "/job/train.py", line 90, in step\n    loss = model(batch)\n'
ERRORS = (
    HEAD + "ValueError: negative length in shard 17",
    HEAD + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
    HEAD + "RuntimeError: CUDA error: an illegal memory access was encountered",
    HEAD + "AssertionError: tokens out of range",
)


class Crash(msgspec.Struct, frozen=True, kw_only=True):
    """A job whose rank ``rank`` fails at ``second``; ``soon`` is whether its peers notice at once, or by a timeout.

    ``printed`` is whether what ranks print has a time, which else is known to some seconds only; ``tears_down`` are
    those whose clean-up fails as well.
    """

    seed: int
    kind: Kind
    ranks: int
    rank: int
    second: float
    soon: bool
    printed: bool
    tears_down: frozenset[int]

    @property
    def guilty(self) -> set[int]:
        """Who may be named."""
        return {self.rank}

    @property
    def onset(self) -> int:
        """When the rank fails (ns)."""
        return at(self.second)

    @property
    def recording(self) -> Recording:
        """All that is written of it."""
        dice = random.Random(self.seed + 1)
        script = Script(JOB)
        script.start(self.ranks)
        script.train(self.ranks, 1, int(self.second) - 1)
        ends = self._ends(dice)
        self._sampled(script, ends)
        self._fails(script)
        lost = {rank: self._loss(dice) for rank in range(self.ranks) if rank != self.rank}
        for rank, second in sorted(lost.items()):
            if second < ends[rank]:
                self._word(script, dice, rank, second, dice.choice(CASCADES))
            if rank in self.tears_down and second + 2 < ends[rank]:
                self._word(script, dice, rank, second + 2, dice.choice(OWN_LOOKING))
        self._launchers(script, dice, ends)
        return script.recording

    def _loss(self, dice: random.Random) -> float:
        """When a peer notices."""
        return self.second + (dice.uniform(0.2, 3) if self.soon else dice.uniform(24, 27))

    def _ends(self, dice: random.Random) -> dict[int, float]:
        """When each process ends."""
        spread = {rank: self.second + (6 if self.soon else 30) + dice.uniform(0, 8) for rank in range(self.ranks)}
        at_once = self.kind in ("is killed", "runs out of memory", "ends silently")
        return spread | {self.rank: self.second + (0.0 if at_once else dice.uniform(0.3, 4))}

    def _word(self, script: Script, dice: random.Random, rank: int, second: float, text: str) -> None:
        """A rank prints; without a time of its own the line lies somewhere before the end of the process."""
        off = 0.0 if self.printed else dice.uniform(0.5, 4)
        line = Log(
            time=at(second + off),
            stream="stderr",
            text=text.format(rank=rank),
            time_source="printed" if self.printed else "inferred",
            precision_ns=round(off * SECOND),
        )
        script.send(worker(JOB, rank), line)

    def _fails(self, script: Script) -> None:
        dice = random.Random(self.seed + 2)
        if self.kind == "raises":
            self._word(script, dice, self.rank, self.second, dice.choice(ERRORS))
        if self.kind in ("runs out of memory", "loses its GPU"):
            kernel = Identity(job=JOB, node=node_of(self.rank), rank_reason="log of a node", process_type="kernel")
            pid = pid_of(self.rank)
            text = (
                f"Out of memory: Killed process {pid} (python3) total-vm:1kB, anon-rss:1kB, file-rss:0kB"
                if self.kind == "runs out of memory"
                else f"NVRM: Xid (PCI:0000:0f:00): 79, pid={pid}, name=python3, GPU has fallen off the bus."
            )
            script.send(kernel, Log(time=self.onset, stream="kernel", text=text, process_type="kernel"))
        if self.kind == "loses its GPU":
            error = HEAD + "RuntimeError: CUDA error: unspecified launch failure"
            self._word(script, dice, self.rank, self.second + 0.5, error)

    def _sampled(self, script: Script, ends: dict[int, float]) -> None:
        """Heartbeats and metrics of processes while they live."""
        for second in range(0, int(max(ends.values())) + 12, 4):
            living = [rank for rank in range(self.ranks) if second + 0.3 < ends[rank]]
            for rank in living:
                metric = Metric(time=at(second + 0.3), name="cpu_percent", value=95.0 - rank % 3, pid=pid_of(rank))
                script.send(worker(JOB, rank), metric)
            for node in sorted({node_of(rank) for rank in range(self.ranks)}):
                pids = [pid_of(rank) for rank in living if node_of(rank) == node]
                script.send(agent(JOB, node), Heartbeat(time=at(second + 0.4), pids=pids))

    def _launchers(self, script: Script, dice: random.Random, ends: dict[int, float]) -> None:
        """The launcher of a node reports the first end there, and stops the node's other processes."""
        for node in sorted({node_of(rank) for rank in range(self.ranks)}):
            mine = [rank for rank in range(self.ranks) if node_of(rank) == node]
            first = min(mine, key=lambda rank: ends[rank])
            told = ends[first] + dice.uniform(0.1, 2)
            if first == self.rank and self.kind == "ends silently":
                continue
            for rank in mine:
                if ends[rank] > told:
                    text = f"Sending process {pid_of(rank)} closing signal SIGTERM"
                    script.log(agent(JOB, node), told, text)
            killed = first == self.rank and self.kind in ("is killed", "runs out of memory")
            code = -9 if killed else 1
            local = first % RANKS_PER_NODE
            text = f"failed (exitcode: {code}) local_rank: {local} (pid: {pid_of(first)}) of binary: python"
            script.log(agent(JOB, node), told + 0.2, text)


def drawn(seed: int, kind: Kind | None = None) -> Crash:
    """A job of any size that fails in any way."""
    dice = random.Random(seed)
    ranks = dice.choice([4, 8, 12])
    return Crash(
        seed=seed,
        kind=kind or dice.choice(KINDS),
        ranks=ranks,
        rank=dice.randrange(ranks),
        second=dice.choice([24.0, 28.7, 31.3]) + dice.random(),
        soon=dice.random() < 0.6,
        printed=dice.random() < 0.5,
        tears_down=frozenset(dice.sample(range(ranks), dice.choice([0, 0, 1, 2, ranks // 2]))),
    )
