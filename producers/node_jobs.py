"""Which job a node's own lines are of, where a folder holds several: the one that a line names, else the node's."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

from producers.homes import Homes
from producers.sole import sole
from producers.workers import Workers

OF_SEVERAL = "log of a node, and nothing tells which of several jobs runs there"

_CGROUP = re.compile(r"/job_(\d{1,12})(?=[/,\s]|$)")
"""The group of processes of a job of Slurm, as the kernel names it."""
_PID = re.compile(r"\bpid=(\d{1,9})\b|\bKill(?:ed)? process (\d{1,9})\b")


class NodeJobs:
    """The jobs of a folder, the nodes on which they run, and where their logs lie."""

    def __init__(self, logs: Iterable[tuple[str, str]], workers: Workers) -> None:
        """``logs`` are pairs of a job and a file that it has written."""
        written = sorted({(job, file.rpartition("/")[0]) for job, file in logs})
        self.jobs = {job for job, _ in written} | {worker.job for worker in workers.all}
        self._homes = Homes(written)
        self._on: dict[str, set[str]] = defaultdict(set)
        for worker in workers.all:
            self._on[worker.node].add(worker.job)
        self._first = workers.job

    def of(self, file: str, node: str) -> str:
        """The only job of the node, else the one whose logs lie nearest to the file; empty if nothing tells."""
        runs = sole(self._on.get(node, ()) if node else ())
        if runs is not None:
            return runs
        return self._homes.job_of(file) or ("" if len(self.jobs) > 1 else next(iter(self.jobs), self._first))


def named_in(texts: Sequence[str], jobs: Collection[str]) -> list[str]:
    """The job of ``jobs`` that each line names by its processes' group, or of the process that such a line names."""
    own = [sole({job for job in _CGROUP.findall(text) if job in jobs}) or "" for text in texts]
    processes: dict[str, set[str]] = defaultdict(set)
    for text, job in zip(texts, own, strict=True):
        for pid in _pids(text) if job else ():
            processes[pid].add(job)
    return [
        job or sole({one for pid in _pids(text) for one in processes.get(pid, ())}) or "" if processes else job
        for text, job in zip(texts, own, strict=True)
    ]


def _pids(text: str) -> list[str]:
    return [pid or killed for pid, killed in _PID.findall(text)]
