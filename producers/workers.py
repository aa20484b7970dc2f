"""Who is who: jobs, attempts, nodes, ranks and processes of a recording."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from schemas.identity import Identity

NO_RUN = "recorded"
"""The job of a folder that names none."""


class Worker(msgspec.Struct, frozen=True, kw_only=True):
    """One start of one worker. ``start`` is in nanoseconds, null if unknown; ``pid`` likewise."""

    job: str
    attempt: str
    node: str
    local_rank: int | None
    rank: int | None
    pid: int | None = None
    role: str = ""
    start: int | None = None
    rank_reason: str = ""

    def identity(self) -> Identity:
        """The identity under which everything that this worker did is sent."""
        return Identity(
            job=self.job,
            attempt=self.attempt,
            node=self.node,
            rank=self.rank,
            rank_reason=self.rank_reason if self.rank is None else "",
            local_rank=self.local_rank,
            role=self.role or "trainer",
        )


class Workers:
    """Finds the worker that a row or a file speaks of."""

    def __init__(self, workers: Iterable[Worker], job_of_node: dict[str, str], job: str) -> None:
        self.all = sorted(workers, key=_order)
        self.job = job
        self._job_of_node = job_of_node
        self._pids: dict[int, list[Worker]] = defaultdict(list)
        self._ranks: dict[int, list[Worker]] = defaultdict(list)
        self._slots: dict[tuple[str, str, str, int], Worker] = {}
        for worker in self.all:
            if worker.pid is not None:
                self._pids[worker.pid].append(worker)
            if worker.rank is not None:
                self._ranks[worker.rank].append(worker)
            if worker.local_rank is not None:
                self._slots.setdefault((worker.job, worker.attempt, worker.node, worker.local_rank), worker)

    @property
    def nodes(self) -> list[str]:
        """The names of all nodes, sorted."""
        return sorted({worker.node for worker in self.all if worker.node})

    def job_of(self, node: str) -> str:
        """The job that runs on a node; the first job of the recording if that is not known."""
        return self._job_of_node.get(node, self.job)

    def slot(self, job: str, attempt: str, node: str, local_rank: int) -> Worker | None:
        """The worker of a torchrun log folder."""
        return self._slots.get((job, attempt, node, local_rank))

    def by_pid(self, pid: int, node: str = "") -> Worker | None:
        """The worker with a process id; where the node is not known, only if no other node has the same."""
        found = [worker for worker in self._pids.get(pid, []) if not node or not worker.node or worker.node == node]
        return found[0] if len({worker.node for worker in found}) == 1 else None

    def find(self, rank: int | None, node: str, pid: int | None, time: int) -> Worker | None:
        """The worker that a captured row speaks of; its children, which have pids of their own, count as itself."""
        if pid is not None and (worker := self.by_pid(pid, node)) and rank in (None, worker.rank):
            return worker
        if rank is None:
            return None
        found = [worker for worker in self._ranks.get(rank, []) if not node or not worker.node or worker.node == node]
        running = [worker for worker in found if worker.start is None or worker.start <= time]
        return running[-1] if running else found[0] if found else None

    def identity(self, rank: int | None, node: str, pid: int | None, time: int) -> Identity:
        """The identity for a captured row; a worker known from nowhere else is taken as the row describes it."""
        if worker := self.find(rank, node, pid, time):
            return worker.identity()
        job = self.job_of(node)
        if rank is None:
            return Identity(job=job, node=node, rank_reason="the row names no rank")
        return Identity(job=job, node=node, rank=rank, role="trainer")


def _order(worker: Worker) -> tuple[str, str, int, str, int, int, int]:
    def known(value: int | None) -> int:
        return -1 if value is None else value

    number = int(worker.attempt) if worker.attempt.isdecimal() else -1
    return (
        worker.job,
        worker.node,
        number,
        worker.attempt,
        known(worker.start),
        known(worker.rank if worker.rank is not None else worker.local_rank),
        known(worker.pid),
    )
