"""Whose the rows of tables, the dumps and the launchers' logs are."""

from __future__ import annotations

from producers.disputes import Disputes
from producers.homes import Homes
from producers.rows import Row
from producers.workers import Worker, Workers
from schemas.identity import Identity


class Owners:
    """Finds the worker or node that something in a file speaks of, within the job that the file belongs to."""

    def __init__(self, workers: Workers, homes: Homes, disputes: Disputes) -> None:
        self.workers = workers
        self.homes = homes
        self._disputes = disputes

    def home(self, file: str) -> str:
        """The job whose logs lie nearest to a file; empty if that is not one alone."""
        return self.homes.job_of(file)

    def job(self, file: str, node: str) -> str:
        """The job of a file that speaks of a node."""
        return self.home(file) or self.workers.job_of(node)

    def beside(self, one: str, other: str) -> bool:
        """Whether two files may belong to one job."""
        homes = self.home(one), self.home(other)
        return homes[0] == homes[1] or "" in homes

    def find(self, file: str, row: Row) -> Worker | None:
        """The worker that a row speaks of; where sources disagree about its rank, by the process id alone."""
        rank = None if (file, row.line) in self._disputes.rows else row.integer("rank")
        return self.workers.find(rank, row.text("node"), self._pid(file, row), row.time, self.home(file))

    def _pid(self, file: str, row: Row) -> int | None:
        """The process id of a row, if that tells whose it is."""
        return None if (file, row.line) in self._disputes.shared else row.integer("pid")

    def identity(self, file: str, row: Row) -> Identity:
        """The identity for a captured row."""
        node = row.text("node")
        if reason := self._disputes.rows.get((file, row.line)):
            worker = self.find(file, row)
            attempt = worker.attempt if worker else self.workers.attempt_at(node, row.time, self.home(file))
            return Identity(job=self.job(file, node), attempt=attempt, node=node, rank_reason=reason)
        return self.workers.identity(row.integer("rank"), node, self._pid(file, row), row.time, self.home(file))

    def of_process(self, file: str, node: str, pid: int, time: int) -> Worker | None:
        """The worker whose process runs on a node, null where sources disagree about its rank or nobody knows it."""
        worker = self.workers.by_pid(pid, node, time, self.home(file))
        return None if worker is None or worker in self._disputes.workers else worker

    def pids(self, home: str) -> dict[int, int]:
        """Process ids of a job by rank, of ranks that were no more than one process."""
        found: dict[int, set[int]] = {}
        for one in self.workers.all:
            if one.rank is not None and one.pid is not None and home in ("", one.job):
                found.setdefault(one.rank, set()).add(one.pid)
        return {rank: next(iter(own)) for rank, own in found.items() if len(own) == 1}

    def world(self, home: str) -> int:
        """How many ranks a job is known to have; 0 where some between them are not known."""
        ranks = {one.rank for one in self.workers.all if one.rank is not None and home in ("", one.job)}
        return len(ranks) if ranks == set(range(len(ranks))) else 0

    def of_attempts(self, file: str, rank: int, node: str) -> list[Worker]:
        """All workers that were a rank one after the other."""
        return self.workers.of_rank(rank, node, self.home(file))

    def of_rank(self, file: str, rank: int | None, time: int) -> Identity:
        """The identity for a file that names only a rank; where it ran is left out if sources disagree about that."""
        worker = self.workers.find(rank, "", None, time, self.home(file))
        if worker is not None and worker in self._disputes.workers:
            return Identity(job=worker.job, attempt=worker.attempt, rank=rank, role=worker.role or "trainer")
        return self.workers.identity(rank, "", None, time, self.home(file))
