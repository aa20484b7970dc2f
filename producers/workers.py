"""Who is who: jobs, attempts, nodes, ranks and processes of a recording."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable

import msgspec

from producers.sole import sole
from producers.times import SECOND
from schemas.identity import Identity

LEAD = 60 * SECOND
"""How long before it announces itself a worker's process may be seen."""
NO_RANK = "the row names no rank"
"""Why something that no source contradicts has no rank."""
FIRST_PID = 1
"""The id of the first process of every container."""
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
    group: str = ""
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
            group=self.group,
        )


class Workers:
    """Finds the worker that a row or a file speaks of."""

    def __init__(self, workers: Iterable[Worker], job_of_node: dict[str, str], job: str) -> None:
        self.all = sorted(workers, key=_order)
        self.job = job
        self._job_of_node = job_of_node
        self._pids: dict[int, list[Worker]] = defaultdict(list)
        self._ranks: dict[int, list[Worker]] = defaultdict(list)
        self._ranks_on: dict[tuple[str, str], set[int | None]] = defaultdict(set)
        self._starts: dict[tuple[str, str, int | None], list[int]] = defaultdict(list)
        self._identities: dict[Worker, Identity] = {}
        for worker in self.all:
            self._ranks_on[worker.job, worker.node].add(worker.rank)
            if worker.pid is not None:
                self._pids[worker.pid].append(worker)
            if worker.rank is not None:
                self._ranks[worker.rank].append(worker)
            if worker.start is not None:
                self._starts[worker.job, worker.node, worker.local_rank].append(worker.start)
        for starts in self._starts.values():
            starts.sort()

    def nodes(self, job: str = "") -> list[str]:
        """The names of all nodes of a job, or of all jobs, sorted."""
        return sorted({worker.node for worker in self.all if worker.node and job in ("", worker.job)})

    def job_of(self, node: str) -> str:
        """The job that runs on a node; the first job of the recording if that is not known."""
        return self._job_of_node.get(node, self.job)

    def by_pid(self, pid: int, node: str = "", time: int | None = None, job: str = "") -> Worker | None:
        """The worker with a process id, of those that had it one after the other the one at ``time``.

        Where the node is not known, only if no other node has the same. Null if several had it at once (containers).
        """
        found = _on(self._pids.get(pid, []), node, job)
        if len({worker.node for worker in found}) != 1:
            return None
        worker = _running(found, time)
        return None if worker is None or self._shares(worker, found, node) else worker

    def _shares(self, worker: Worker, found: list[Worker], node: str) -> bool:
        """Whether others of an attempt had the process id too, or may have had it as the first of their containers."""
        if worker.pid == FIRST_PID and (not node or len(self._ranks_on[worker.job, worker.node]) > 1):
            return True
        own = worker.rank, worker.local_rank
        return any(one.attempt == worker.attempt and (one.rank, one.local_rank) != own for one in found)

    def node_of(self, rank: int, job: str) -> str:
        """The node of a rank; empty if none is known, or several are."""
        nodes = {worker.node for worker in self.of_rank(rank, "", job)}
        return sole(nodes) or ""

    def living(self, pid: int, node: str, time: int, job: str, attempt: str) -> Worker | None:
        """The worker whose process had an id at a time, not one that had it before or after.

        ``attempt`` is what a row states, empty if it states none.
        """
        found = _on(self._pids.get(pid, []), node, job)
        stated = [worker for worker in found if worker.attempt == attempt]
        if len(stated) == 1:
            return stated[0]
        if len({worker.node for worker in found}) != 1:
            return None
        worker = _running(found, time)
        if worker is None or self._shares(worker, found, node):
            return None
        if worker.start is None:
            return worker
        starts = self._starts[worker.job, worker.node, worker.local_rank]
        after = bisect_right(starts, worker.start)
        ended = after < len(starts) and starts[after] <= time
        return None if ended or time < worker.start - LEAD else worker

    def has_pid(self, rank: int, job: str) -> bool:
        """Whether process ids of a rank are known, on a node without a name."""
        own = self.of_rank(rank, "", job)
        return any(worker.pid is not None for worker in own) and not any(worker.node for worker in own)

    def attempt_at(self, node: str, time: int, job: str) -> str:
        """The attempt that runs on a node at a time."""
        started = [worker for worker in _on(self.all, node, job) if worker.start is not None and worker.start <= time]
        return max(started, key=lambda worker: worker.start or 0).attempt if started else "0"

    def find(self, rank: int | None, node: str, pid: int | None, time: int, job: str = "") -> Worker | None:
        """The worker that a captured row speaks of; its children, which have pids of their own, count as itself.

        ``job`` is the only one looked at, unless it is empty.
        """
        if pid is not None and (worker := self.by_pid(pid, node, time, job)) and rank in (None, worker.rank):
            return worker
        return None if rank is None else _running(_on(self._ranks.get(rank, []), node, job), time)

    def of_rank(self, rank: int, node: str, job: str = "") -> list[Worker]:
        """All workers that had a rank, on a node and of a job as far as these are known."""
        return _on(self._ranks.get(rank, []), node, job)

    def identity(self, rank: int | None, node: str, pid: int | None, time: int, job: str = "") -> Identity:
        """The identity for a captured row; a worker known from nowhere else is taken as the row describes it."""
        if worker := self.find(rank, node, pid, time, job):
            if worker not in self._identities:
                self._identities[worker] = worker.identity()
            return self._identities[worker]
        job = job or self.job_of(node)
        if rank is None:
            return Identity(job=job, node=node, rank_reason=NO_RANK)
        return Identity(job=job, node=node, rank=rank, role="trainer")


def _on(workers: list[Worker], node: str, job: str) -> list[Worker]:
    """Those of a node and job, as far as they are known."""
    return [w for w in workers if (not node or not w.node or w.node == node) and job in ("", w.job)]


def _running(workers: list[Worker], time: int | None) -> Worker | None:
    """The last that had started at a time, else the first."""
    started = [w for w in workers if time is not None and (w.start is None or w.start <= time)]
    if not started:
        return workers[0] if workers else None
    # Of those that are not known to have started the last in order; ranks may move to other nodes.
    return max(enumerate(started), key=lambda one: (-1 if one[1].start is None else one[1].start, one[0]))[1]


def _order(worker: Worker) -> tuple[str, str, int, str, int, int, int]:
    def known(value: int | None) -> int:
        return -1 if value is None else value

    number = int(worker.attempt) if worker.attempt.isdecimal() and len(worker.attempt) < 10 else -1
    return (
        worker.job,
        worker.node,
        number,
        worker.attempt,
        known(worker.start),
        known(worker.rank if worker.rank is not None else worker.local_rank),
        known(worker.pid),
    )
