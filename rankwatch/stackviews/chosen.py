"""Which samples make a picture: one of each thread of an attempt, all of about one time.

By default those of the standstill that the pipeline found, as last seen before the first failure after it: later ones
show the ranks leaving. Stacks are taken whole, as they were recorded; windows keep only the innermost frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from producers.times import EARLIEST
from rankwatch.stackviews.attempts import Attempt
from schemas.events import MAIN_THREAD, Stack
from schemas.results import Anomaly, Exit, Incident, Window
from streams.incidents.situation import inexactness
from streams.iterations import ProgressClock
from streams.report import moment
from streams.stack_classes import TRAINER, Sample
from streams.stall import SECOND, StallRule

REACH_NS = 60 * SECOND
"""How far before a time a sample may lie that is to show it."""
CERTAIN_NS = 10 * SECOND
"""A sample whose time is inferred, and less exact than this, stands where nobody knows when it was taken."""
LEAVING = frozenset(
    {
        "own_error",
        "own_death",
        "vanished",
        "rank_fault",
        "cascade",
        "unplaced_error",
        "unplaced_besides",
        "told_to_end",
        "exit_code",
    }
)
"""Grounds of anomalies behind which stacks show ranks that leave, not whom they waited for."""

NO_FRAMES = "its sample shows no frames"
OTHER_TIMES = "only sampled at other times"


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """The samples of a picture; ``first`` and ``last`` are their times (ns), null where nothing tells them.

    ``since`` is when the standstill that was found began, ``until`` from when on stacks do not show it, for what
    ``bound`` says; ``why`` is how samples were chosen: *newest* with ``since`` where none shows the standstill.
    ``outdated`` maps ranks to why a newer sample of theirs failed.
    """

    why: Literal["standstill", "newest", "at"]
    samples: list[Sample]
    first: int | None
    last: int | None
    since: int | None = None
    until: int | None = None
    bound: str = ""
    outdated: dict[int, str] = {}


def at_time(attempt: Attempt, time: int) -> Chosen:
    """The attempt as it was at a time (ns)."""
    return _taken(attempt, time - REACH_NS, time, Chosen(why="at", samples=[], first=None, last=None))


def chosen(attempt: Attempt, incidents: Sequence[Incident], anomalies: Sequence[Anomaly]) -> Chosen:
    """The attempt in its last standstill, or as it was last seen; incidents and anomalies are its own."""
    last = max((stack.time for _, stack in attempt.stacks if not untimed(stack)), default=0)
    hangs = [one.onset for one in incidents if one.symptom == "hang" and not one.merged_into]
    # Who was slow before held the job up before it stood still: an incident of both began with that.
    stalls = [one.onset for one in anomalies if one.detector == "no_iteration" and one.severity != "info"]
    since = max([*hangs, *(one for one in stalls if hangs and one > min(hangs))], default=None)
    newest = Chosen(why="newest", samples=[], first=None, last=None, since=since)
    if since is not None:
        until, bound = _bound(attempt, anomalies, since) or (None, "")
        standing = msgspec.structs.replace(newest, why="standstill", until=until, bound=bound)
        found = _taken(attempt, settled(attempt.windows, since), last if until is None else until - 1, standing)
        if found.first is not None:
            return found
    return _taken(attempt, last - REACH_NS, last, newest)


def _bound(attempt: Attempt, anomalies: Sequence[Anomaly], since: int) -> tuple[int, str] | None:
    """The first thing after a standstill began behind which stacks do not show it, and what that is."""
    found = [(one.onset - inexactness(one), "the first failure") for one in anomalies if one.grounds in LEAVING]
    found += [(end.time, "the first end of a rank") for end in attempt.ends.values()]
    # An iteration came at some time in its window.
    found += [
        (window.start, "iterations went on") for window in attempt.windows if (window.iteration_time or 0) > since
    ]
    return min((one for one in found if one[0] > since), default=None)


def settled(windows: Sequence[Window], since: int) -> int:
    """From when on (ns) samples show a standstill that began at ``since``, and no more of the work before it."""
    clock, rule = ProgressClock(), StallRule()
    by_end: dict[int, list[Window]] = {}
    for window in windows:
        if window.start <= since:
            by_end.setdefault(window.end, []).append(window)
    for end in sorted(by_end):
        clock.advance(by_end[end])
    return since + int(max(rule.settle_steps * (clock.step_ns or 0), rule.settle_s * SECOND))


class _Process(msgspec.Struct, kw_only=True):
    """The samples of one process in the time looked at: the latest that shows frames, and what failed last."""

    rank: int
    process_type: str
    times: set[int] = set()
    shown_at: int = -1
    shown: list[Stack] = []
    failed: Stack | None = None

    def take(self, stack: Stack) -> None:
        """Take in a sample of one of its threads, in any order."""
        self.times.add(stack.time)
        if not stack.frames:
            if self.failed is None or (self.failed.time, self.failed.failure) < (stack.time, stack.failure):
                self.failed = stack
        elif stack.time > self.shown_at:
            self.shown_at, self.shown = stack.time, [stack]
        elif stack.time == self.shown_at:
            self.shown.append(stack)

    @property
    def outdated(self) -> str:
        """Why a sample failed that is newer than the one shown, else nothing."""
        return self.failed.failure if self.failed is not None and self.failed.time > self.shown_at else ""


def _taken(attempt: Attempt, begin: int, end: int, frame: Chosen) -> Chosen:
    """``frame`` with the latest sample of each process from ``begin`` to ``end``; who had ended by then has none."""
    roles = attempt.roles
    undated = frame.why == "newest" and all(untimed(stack) for _, stack in attempt.stacks)
    gone = {} if undated else {rank: _said(one) for rank, one in attempt.ends.items() if one.time <= end}
    absent = dict(gone)
    found: dict[tuple[int, str, int], _Process] = {}
    for rank, stack in attempt.stacks:
        if rank in gone:
            continue
        if untimed(stack) and not undated:
            absent[rank] = "nothing tells when it was sampled"
        elif undated or begin <= stack.time <= end:
            process = _Process(rank=rank, process_type=stack.process_type)
            found.setdefault((rank, stack.process_type, stack.pid), process).take(stack)
    living = _living([found[key] for key in sorted(found)])
    shown = {process.rank for process in living}
    absent |= {rank: OTHER_TIMES for rank, _ in attempt.stacks if rank not in shown and rank not in absent}
    samples = [sample for process in living for sample in _samples(process, roles.get(process.rank, ""))]
    samples += [_unseen(rank, roles.get(rank, ""), TRAINER, reason) for rank, reason in sorted(absent.items())]
    times = {process.shown_at for process in living if process.shown and not undated}
    return msgspec.structs.replace(
        frame,
        samples=samples,
        first=min(times, default=None),
        last=max(times, default=None),
        outdated={one.rank: one.outdated for one in living if one.shown and one.outdated},
    )


def _living(processes: list[_Process]) -> list[_Process]:
    """Without those that were passed over twice when their rank's trainer was sampled: they have ended."""
    looks: dict[int, set[int]] = {}
    for one in processes:
        if one.process_type == TRAINER:
            looks.setdefault(one.rank, set()).update(one.times)
    before = {rank: sorted(times)[-2] for rank, times in looks.items() if len(times) > 1}
    return [one for one in processes if max(one.times) >= before.get(one.rank, 0)]


def _samples(process: _Process, role: str) -> list[Sample]:
    if not process.shown:
        return [_unseen(process.rank, role, process.process_type, process.outdated or NO_FRAMES)]
    return [
        Sample(
            rank=process.rank, role=role, process_type=process.process_type, thread=stack.thread, frames=stack.frames
        )
        for stack in process.shown
    ]


def _unseen(rank: int, role: str, process_type: str, reason: str) -> Sample:
    return Sample(rank=rank, role=role, process_type=process_type, thread=MAIN_THREAD, frames=[], failure=reason)


def untimed(stack: Stack) -> bool:
    """Whether nobody knows when a sample was taken."""
    return stack.time_source == "inferred" and (stack.precision_ns > CERTAIN_NS or stack.time <= EARLIEST)


def _said(end: Exit) -> str:
    how = f"by {end.signal}" if end.signal else f"with code {end.code}"
    return f"ended {how} at {moment(end.time)}"
