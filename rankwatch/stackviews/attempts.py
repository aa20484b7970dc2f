"""What a run tells of each attempt of a job, as far as its stacks need it: ranks, roles, processes and their ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from producers.recording import Recording
from schemas.codec import decode
from schemas.events import Stack
from schemas.identity import MOST_RANKS, Identity
from schemas.ports import Log
from schemas.results import Anomaly, Exit, Window
from streams.stack_classes import TRAINER
from streams.stages.split import number_of


class Attempt(msgspec.Struct, kw_only=True):
    """One attempt; ``first`` is when it was first heard of (ns).

    ``processes`` maps node and process id of trainers to ranks, ``placed`` are the ranks of these; ``ends`` maps ranks
    to the first end of their trainer that a launcher reports. ``windows`` are those of its ranks in order of time, with
    nothing in them but iterations.
    """

    name: str
    first: int
    ranks: dict[int, Identity] = {}
    stacks: list[tuple[int, Stack]] = []
    processes: dict[tuple[str, int], int] = {}
    placed: set[int] = set()
    ends: dict[int, Exit] = {}
    windows: list[Window] = []
    world_size: int = 0

    @property
    def roles(self) -> dict[int, str]:
        """Each rank that should be there with its role, empty where all have the same.

        Ranks that nothing was heard of are left out where roles differ: nobody knows theirs.
        """
        found = {rank: identity.role for rank, identity in self.ranks.items()}
        if len(set(found.values())) < 2:
            found = dict.fromkeys([*found, *range(self.world_size)], "")
        return dict(sorted(found.items()))

    @property
    def of_unknown_role(self) -> list[int]:
        """The ranks that should be there and are not in ``roles``."""
        return sorted(set(range(self.world_size)) - set(self.roles))

    def learn(self, window: Window) -> None:
        """Take in what a window of one of its ranks says."""
        identity = window.identity
        self.windows.append(_with_iterations(window))
        if identity.rank is None:
            return
        self.ranks.setdefault(identity.rank, identity)
        for pid, process_type in window.announced:
            if process_type == TRAINER:
                self._place(identity.node, pid, identity.rank)
        for size in (window.world_size, window.layout.get("world")):
            if size is not None and 0 < size <= MOST_RANKS:
                self.world_size = size

    def sample(self, identity: Identity, stack: Stack) -> None:
        """Take in a stack of one of its ranks."""
        if identity.rank is None:
            return
        self.ranks.setdefault(identity.rank, identity)
        self.stacks.append((identity.rank, stack))
        if stack.process_type == TRAINER and stack.pid:
            self._place(identity.node, stack.pid, identity.rank)

    def _place(self, node: str, pid: int, rank: int) -> None:
        self.processes.setdefault((node, pid), rank)
        self.placed.add(rank)

    def owner(self, node: str, end: Exit) -> int | None:
        """The rank that ended: by its process; by the rank that is named only where no process of it is known."""
        rank = self.processes.get((node, end.pid))
        if rank is None and end.rank in self.ranks and end.rank not in self.placed:
            return end.rank
        return rank


def jobs_of(recording: Recording) -> list[str]:
    """The jobs of which stacks were recorded, the recording's own first."""
    jobs = {identity.job for identity, _ in _stacks(recording)}
    return sorted(jobs, key=lambda job: (job != recording.job, job))


def strangers(recording: Recording, job: str) -> dict[str, int]:
    """How many stacks of a job are of nobody known, by the reason."""
    found: dict[str, int] = {}
    for identity, _ in _stacks(recording):
        if identity.job == job and identity.rank is None:
            reason = identity.rank_reason or "no rank is known"
            found[reason] = found.get(reason, 0) + 1
    return dict(sorted(found.items()))


def attempts_of(recording: Recording, log: Log, job: str) -> list[Attempt]:
    """The attempts of a job that have stacks, in order; worker groups that number ranks anew have attempts each."""
    found: dict[str, Attempt] = {}

    def of(identity: Identity, time: int) -> Attempt:
        name = f"{identity.group}/{identity.attempt}" if identity.group else identity.attempt
        return found.setdefault(name, Attempt(name=name, first=time))

    nodes = []
    for window in _windows(log, job):
        if window.identity.rank is not None:
            of(window.identity, window.start).learn(window)
        elif window.exits:
            nodes.append(window)
    for identity, stack in _stacks(recording):
        if identity.job == job and identity.rank is not None:
            of(identity, stack.time).sample(identity, stack)
    attempts = sorted(found.values(), key=lambda one: (number_of(one.name), one.first, one.name))
    for window in nodes:
        _end(attempts, window)
    return [one for one in attempts if one.stacks]


def newest(attempts: Iterable[Attempt]) -> list[Attempt]:
    """The last attempt; of several worker groups the last of each."""
    last = {one.name.rpartition("/")[0]: one for one in attempts}
    return [last[group] for group in sorted(last)]


def anomalies_of(log: Log, job: str, attempt: str) -> list[Anomaly]:
    """What detectors found in an attempt, in order of time."""
    found: list[Anomaly] = [decode("anomaly", value) for value in _values(log, "anomalies", "anomaly")]
    return sorted(
        (one for one in found if (one.job, one.attempt) == (job, attempt)), key=lambda one: (one.onset, one.id)
    )


def _end(attempts: list[Attempt], node: Window) -> None:
    """The ends that a launcher reports; a process id may have been another attempt's before."""
    for end in node.exits:
        if end.code is None:
            continue
        for attempt in reversed(attempts):
            rank = attempt.owner(node.identity.node, end) if attempt.first <= end.time else None
            if rank is not None:
                attempt.ends.setdefault(rank, end)
                break


def _stacks(recording: Recording) -> Iterator[tuple[Identity, Stack]]:
    for arrival in recording.arrivals:
        for event in arrival.batch.events:
            if isinstance(event, Stack):
                yield arrival.batch.identity, event


def _with_iterations(window: Window) -> Window:
    return Window(
        id=window.id,
        identity=window.identity,
        start=window.start,
        end=window.end,
        iteration=window.iteration,
        iteration_time=window.iteration_time,
        total_iterations=window.total_iterations,
        series=window.reported,
    )


def _windows(log: Log, job: str) -> Iterator[Window]:
    """The windows of a job in order of time; they are many, so none is kept."""
    order: list[tuple[int, str, bytes]] = []
    for value in _values(log, "windows", "window"):
        window: Window = decode("window", value)
        if window.identity.job == job:
            order.append((window.start, window.id, value))
    for _, _, value in sorted(order):
        yield decode("window", value)


def _values(log: Log, topic: str, schema: str) -> Iterator[bytes]:
    """The records of one kind in a topic; windows share theirs with progress."""
    for partition in range(log.partitions(topic)):
        for entry in log.read(topic, partition, 0, log.end(topic, partition)):
            if entry.headers.get("schema") == schema:
                yield entry.value
