"""Timers that a rank prints without an iteration are of the one that another rank of the job says at that moment.

DeepSpeed prints ``[Rank 8] time (ms) | fwd_microstep: 282.55 | …`` on all ranks, but which step it was on rank 0 alone.
Ranks end a step together, so a line belongs to the iteration at which that rank prints its own line of timers, where
the two lie within a quarter of a step of each other. Any other stays without an iteration.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

import msgspec

from producers.logfile import LogFile
from producers.voices import Spoken

_TIMERS = re.compile(r"[^\n|]{0,200}?\btime \((?:ms|s)\)[ \t]{0,8}\|")
_LABEL = re.compile(r"\[Rank (\d{1,7})\]")
_CLOSE = 4
"""Two lines are of one step if they lie within this part of a step."""

Told = list[tuple[int, int]]
"""Times (ns) of lines of timers, rising, and the iterations that their rank had come to."""


def numbered(spoken: Sequence[Spoken]) -> list[Spoken]:
    """The same logs, lines of timers with the iteration that the first rank of their folder tells."""
    folders: dict[tuple[str, str], list[Spoken]] = defaultdict(list)
    for one in spoken:
        if one.rank is not None:
            folders[one.job, one.log.file.rpartition("/")[0]].append(one)
    told = {key: _told(found) for key, found in folders.items()}
    return [_numbered(one, told.get((one.job, one.log.file.rpartition("/")[0]), [])) for one in spoken]


def _told(spoken: Sequence[Spoken]) -> Told:
    """What the lowest rank tells that numbers its timers."""
    for one in sorted(spoken, key=lambda one: (one.rank or 0, one.log.file)):
        iteration: int | None = None
        found: Told = []
        for at, said in _own_lines(one):
            iteration = said if said is not None else iteration
            moment = one.log.moments[at]
            # Of several lines of one step (microsteps, then the whole) the first: how far steps lie apart must be seen.
            new = not found or found[-1][1] != iteration
            if said is None and iteration is not None and moment is not None and new:
                found.append((moment.time, iteration))
        if found:
            return found if all(one <= other for one, other in pairwise(found)) else []
    return []


def _own_lines(one: Spoken) -> list[tuple[int, int | None]]:
    """Places of the lines of timers that are a rank's own (null), and of those that tell an iteration."""
    found: list[tuple[int, int | None]] = []
    for at, (record, said) in enumerate(zip(one.log.records, one.log.iterations, strict=True)):
        if said is not None:
            found.append((at, said))
        elif "time (" in record.text and (head := _TIMERS.match(record.text)):
            label = _LABEL.search(head.group())
            if label is None or int(label.group(1)) == one.rank:
                found.append((at, None))
    return found


def _numbered(one: Spoken, told: Told) -> Spoken:
    if one.rank is None or not told or any(said is not None for said in one.log.iterations):
        return one
    return msgspec.structs.replace(one, log=_placed(one.log, [at for at, _ in _own_lines(one)], told))


def _placed(log: LogFile, lines: Sequence[int], told: Told) -> LogFile:
    times = [time for time, _ in told]
    iterations = list(log.iterations)
    for at in lines:
        moment = log.moments[at]
        nearest = None if moment is None else _nearest(times, moment.time)
        if nearest is not None:
            iterations[at] = told[nearest][1]
    return msgspec.structs.replace(log, iterations=iterations)


def _nearest(times: Sequence[int], time: int) -> int | None:
    """The place of the time that is closest, null where it is not close beside those around it."""
    after = bisect_left(times, time)
    found = min((at for at in (after - 1, after) if 0 <= at < len(times)), key=lambda at: abs(times[at] - time))
    gaps = [times[at + 1] - times[at] for at in (found - 1, found) if 0 <= at < len(times) - 1]
    return found if gaps and abs(times[found] - time) * _CLOSE <= min(gaps) else None
