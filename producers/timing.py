"""Gives every log record a time: printed, by its iteration, by its neighbours, or by its process's end."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median_low

import msgspec

from producers.clocks import by_iteration, by_neighbour, by_words, ending
from producers.logfile import LogFile
from producers.times import Moment, cancelled
from producers.workers import Worker

_FATAL = re.compile(r"(?:Fatal Python error|terminate called|Segmentation fault|Aborted|Killed)")


class Sightings(msgspec.Struct, frozen=True):
    """When a worker's process was last seen alive and first seen dead (ns), and its id as the samples have it."""

    alive: int | None = None
    dead: int | None = None
    pid: int | None = None


class Life(msgspec.Struct, frozen=True):
    """What is known of the end of a worker's process, and the bounds of the recording."""

    seen: Sightings
    exited: int | None
    start: int
    end: int


class Iterations:
    """When the ranks of jobs spoke of iterations, out of printed times only."""

    def __init__(self) -> None:
        self._ranks: dict[tuple[str, str, int | None], dict[int, int]] = defaultdict(dict)
        self._jobs: dict[tuple[str, str], dict[int, int]] = {}

    def learn(self, worker: Worker, log: LogFile) -> None:
        """Takes the time of each iteration that a worker's log reaches."""
        own = self._ranks[worker.job, worker.attempt, worker.rank]
        for iteration, time in printed_iterations(log):
            own[iteration] = min(own.get(iteration, time), time)

    def of(self, worker: Worker) -> Mapping[int, int]:
        """Times by iteration: the worker's own, else the median of all ranks of its job and attempt."""
        key = (worker.job, worker.attempt)
        if key not in self._jobs:
            times: dict[int, list[int]] = defaultdict(list)
            for (job, attempt, _), own in self._ranks.items():
                if (job, attempt) == key:
                    for iteration, time in own.items():
                        times[iteration].append(time)
            self._jobs[key] = {iteration: median_low(found) for iteration, found in times.items()}
        return {**self._jobs[key], **self._ranks[worker.job, worker.attempt, worker.rank]}


def printed_iterations(log: LogFile) -> list[tuple[int, int]]:
    """The iterations that a log reaches, each with the first time (ns) that it printed of it."""
    return ascending(
        [
            (iteration, moment.time)
            for moment, iteration in zip(log.moments, log.iterations, strict=True)
            if moment is not None and iteration is not None and moment.source == "printed"
        ]
    )


def ascending(spoken: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest chain of iterations that rise with their lines, each with its first time.

    A line may speak of an iteration that is yet to come (``train to step 500``) or long past; it is not in the chain.
    """
    tails: list[int] = []
    ends: list[int] = []
    before: list[int | None] = []
    for at, (iteration, _) in enumerate(spoken):
        length = bisect_left(tails, iteration)
        before.append(ends[length - 1] if length else None)
        if length == len(tails):
            tails.append(iteration)
            ends.append(at)
        elif tails[length] != iteration:
            tails[length], ends[length] = iteration, at
    chain: list[tuple[int, int]] = []
    last = ends[-1] if ends else None
    while last is not None:
        chain.append(spoken[last])
        last = before[last]
    return chain[::-1]


def fill_worker(logs: Sequence[LogFile], known: Mapping[int, int], life: Life) -> list[list[Moment]]:
    """The moments of all records of one worker's logs (its streams), one list a log."""
    partial = [by_iteration(fill_words(log, life.end), log.iterations, known) for log in logs]
    last = max((moment.time for moments in partial for moment in moments if moment is not None), default=None)
    return [_fill(log, moments, last, life) for log, moments in zip(logs, partial, strict=True)]


def fill_alone(log: LogFile, life: Life) -> list[Moment]:
    """The moments of all records of a log that no worker wrote."""
    return by_neighbour(fill_words(log, life.end), life.start, life.end)


def fill_words(log: LogFile, end: int) -> list[Moment | None]:
    """The moments of a log with those that stand within Slurm's words, in a recording until ``end``."""
    return by_words(log.moments, [cancelled(record.text) for record in log.records], end)


def at_its_end(log: LogFile, exited: int | None) -> list[Moment | None]:
    """The moments of the log of one worker; what it printed at its end came when its launcher says that it ended."""
    at = _end_of_process(log, log.moments)
    if at is None or exited is None:
        return log.moments
    moment = ending(log.last(), None, None, exited)
    return log.moments[:at] + [moment] * (len(log.moments) - at)


def _fill(log: LogFile, moments: list[Moment | None], last: int | None, life: Life) -> list[Moment]:
    at = _end_of_process(log, moments)
    if at is not None:
        moment = ending(last, life.seen.alive, life.seen.dead, life.exited)
        if moment is not None:
            moments = moments[:at] + [moment] * (len(moments) - at)
    return by_neighbour(moments, life.start, life.end)


def _end_of_process(log: LogFile, moments: Sequence[Moment | None]) -> int | None:
    """The index from which a log's untimed tail was printed at its process's end: its first traceback."""
    at = len(moments)
    while at and moments[at - 1] is None and log.iterations[at - 1] is None:
        at -= 1
    tail = enumerate(log.records[at:], at)
    return next(
        (index for index, record in tail if record.shape in ("traceback", "failure") or _FATAL.match(record.text)), None
    )
