"""A step of a profile as segments between collectives: own work, and communication that nothing of one's own hides.

A collective to which everybody gives and from which everybody takes ends on all ranks at nearly the same time, whatever
their clocks say. So the ends of such collectives divide a step alike on all ranks, and a step counts from the end of
the last one before it. Of a segment all time is own but that in which only communication runs: own kernels, whether or
not communication runs beside them, and time in which the device does nothing, since then the CPU is late. What is left
is told as the collective at the segment's end: waiting for others and moving data.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise

import msgspec
import numpy as np

from producers.sketch import MOST_STEPS, Integers, Step

OWN = "compute"
Talk = Callable[[Integers], Integers]
MOST_SEGMENTS = 16
"""Of a step; of more collectives each n-th ends a segment, the same ones on all ranks."""
MOST_COLLECTIVES = 100_000
MOST_LAUNCHES = 4_000_000
_TOGETHER = (("reducescatter", "reduce-scatter"), ("allgather", "all-gather"), ("allreduce", "all-reduce"))
_ONE_SIDED = re.compile(r"broadcast|reduce")
_PAIRS = re.compile(r"send|recv|p2p|alltoall|gather|scatter")
_UNSAID = re.compile(r"[_\W]+")


class Collective(msgspec.Struct, frozen=True):
    """A collective on the device, times in ns; ``kind`` is null for one that not everybody waits in.

    ``launch`` is the number by which the CPU's launch of it is found, ``members`` how many its group has, null where
    they are not told.
    """

    start: int
    end: int
    kind: str | None
    launch: int | None
    members: int | None


class Segments(msgspec.Struct, frozen=True):
    """A step's operations as columns in order: own work and communication in turn, starts and durations in ns."""

    step: int
    names: list[str]
    starts: list[int]
    durations: list[int]


class Undivided(ValueError):  # noqa: N818 - nothing went wrong
    """Steps cannot be divided; the message says why."""


class Collectives:
    """What a trace tells of its collectives, and of when the CPU launched what."""

    def __init__(self) -> None:
        self.found: list[Collective] = []
        self.left_out = 0
        self.refused = ""
        self._launches = array("q"), array("q")

    def launched(self, number: object, start: int) -> None:
        """The CPU launched something."""
        known = _whole(number)
        if known is not None and len(self._launches[0]) < MOST_LAUNCHES:
            self._launches[0].append(known)
            self._launches[1].append(start)

    def ran(self, name: str, start: int, end: int, told: dict[str, object]) -> None:
        """The device ran a kernel of a collective; ``told`` are the profiler's words on it."""
        if len(self.found) >= MOST_COLLECTIVES:
            self.left_out += 1
            return
        said = told.get("Collective name")
        kind = _kind(said if isinstance(said, str) and said else name.partition("(")[0])
        if kind == "":
            self.refused = "ranks send to each other, or what a collective does is not told"
        self.found.append(Collective(start, end, kind, _whole(told.get("correlation")), _whole(told.get("Group size"))))

    def starts(self) -> dict[int, int]:
        """When the CPU launched each collective that is known, by the launch's number; the first of several counts."""
        wanted = {one.launch for one in self.found}
        found: dict[int, int] = {}
        for number, start in zip(*self._launches, strict=True):
            if number in wanted:
                found[number] = min(start, found.get(number, start))
        return found


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63 else None


def _kind(name: str) -> str | None:
    """What a collective does; null for a broadcast or reduction to one, empty for what is none or is not told."""
    said = _UNSAID.sub("", name.lower()[:200])
    for word, kind in _TOGETHER:
        if word in said:
            return kind
    if said.endswith("barrier"):
        return "all-reduce"
    if _PAIRS.search(said):
        return ""
    return None if _ONE_SIDED.search(said) else ""


def segments_of(
    found: Collectives,
    steps: Sequence[Step],
    on_device: Sequence[Step],
    communication: Callable[[], Talk],
    everybody: int | None,
    alike: bool,
) -> list[Segments]:
    """The steps' segments, but for the first: nothing tells when it began for all. Raises Undivided.

    ``steps`` are annotated on the CPU, ``on_device`` where the device ran them; ``communication`` gives what
    tells for how long only communication ran before each moment (ns). ``everybody`` is how many ranks the job has,
    ``alike`` whether the trace lists its groups and all have these. Where nothing tells whom collectives join, or in
    which step they were launched, there are none.
    """
    if found.refused or found.left_out:
        raise Undivided(found.refused or f"more than {MOST_COLLECTIVES} collectives")
    sizes = {one.members for one in found.found}
    if everybody is not None and sizes - {None, everybody}:
        raise Undivided("collectives join only some of the ranks")
    if everybody is None or everybody < 2 or not (alike or sizes == {everybody}):
        return []
    ends = _by_step(found, steps, on_device)
    place = {number: at for at, number in enumerate(sorted({one.number for one in steps}))}
    # Between steps that do not follow each other lies what was not profiled.
    following = [(before, step) for before, step in pairwise(ends) if place[step] - place[before] == step - before]
    if not following:
        return []
    talk = communication()
    return [_segments(step, ends[before][-1][0], ends[step], talk) for before, step in following]


def _by_step(found: Collectives, steps: Sequence[Step], on_device: Sequence[Step]) -> dict[int, list[tuple[int, str]]]:
    """End and kind of the collectives in which everybody waits, in their order, by step.

    The step is that in which the CPU launched it, from whichever thread; else the one which the device was in.
    """
    launches = found.starts()
    by_step: dict[int, list[tuple[int, str]]] = {}
    host, device = sorted(set(steps))[:MOST_STEPS], sorted(set(on_device))
    known = {one.number for one in host}
    for one in found.found:
        launched = launches.get(one.launch) if one.launch is not None else None
        step = _step_at(device, one.start) if launched is None else _step_at(host, launched)
        if one.kind and step in known:
            by_step.setdefault(step, []).append((one.end, one.kind))
    ordered = {step: sorted(by_step[step]) for step in sorted(by_step)}
    reach = -1
    for own in ordered.values():
        if own[0][0] <= reach:
            raise Undivided("collectives of one step end among those of another")
        reach = own[-1][0]
    return ordered


def _step_at(steps: list[Step], moment: int) -> int | None:
    """The number of the step that began last before a moment, null where that had ended."""
    at = bisect_right(steps, moment, key=lambda one: one.start) - 1
    return steps[at].number if at >= 0 and moment < steps[at].end else None


def _segments(step: int, begin: int, ends: list[tuple[int, str]], talk: Talk) -> Segments:
    count = min(len(ends), MOST_SEGMENTS)
    chosen = [ends[-(-(number + 1) * len(ends) // count) - 1] for number in range(count)]
    edges = np.array([begin, *(end for end, _ in chosen)], dtype=np.int64)
    shown = np.diff(talk(edges))
    # Each segment holds both, and be it for a nanosecond, or the order of starts would not be that of the schedule.
    edges = np.maximum.accumulate(edges + 2 * np.arange(len(edges))) - begin
    lengths = np.diff(edges)
    own = np.clip(lengths - shown, 1, lengths - 1)
    starts = np.stack([edges[:-1], edges[:-1] + own], axis=1)
    durations = np.stack([own, lengths - own], axis=1)
    names = [name for _, kind in chosen for name in (OWN, kind)]
    return Segments(step, names, starts.ravel().tolist(), durations.ravel().tolist())
