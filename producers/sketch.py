"""A profile as a sketch: which functions hold its critical path, for how long, and how long their calls take.

Every moment of the profile is held by one function or by none, so shares add up to 1 at most:

1. by an own kernel, copy or fill of the GPU; of several that run, by the one that began first;
2. else by a collective on the GPU, in the same way: there the rank waits, or moves data;
3. else, while the GPU is idle, by the call of the CPU that began last of all that run, whatever its thread: within a
   thread that is the innermost one, and a main thread that waits for another is held by what that one does.

So a slow function of the CPU holds the time in which it leaves the GPU idle, and one that the GPU hides holds none.
Share, mean and spread are the three figures that EROICA (arXiv 2506.08528) keeps of a function.
Times are integer nanoseconds; equal calls are ordered by name, so the order of a file does not matter.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable
from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt

from schemas.events import OTHERS

Kind = Literal["python", "gpu", "collective", "os"]
Integers = npt.NDArray[np.int64]

MOST_CALLS = 4_000_000
MOST_NAMES = 50_000
MOST_STEPS = 64
MOST_FUNCTIONS = 28
"""Functions that are listed, besides the rest of each kind."""
LEAST_SHARE = 0.001
_BLOCK = 65_536
_GPU, _GPU_COLLECTIVE, _CPU = 0, 1, 2


class Step(msgspec.Struct, frozen=True, order=True):
    """A training step as the profile annotates it, ``[start, end)``."""

    start: int
    end: int
    number: int


class Function(msgspec.Struct, frozen=True):
    """One function of a sketch; ``share`` of the critical path, the rest in seconds.

    ``mean`` and ``spread`` (standard deviation) are of its ``count`` calls. ``typical`` is the median over steps of the
    time that it holds in a step, ``unrest`` the median deviation from that; 0 where no steps are annotated.
    """

    name: str
    kind: Kind
    share: float
    mean: float
    spread: float
    count: int
    typical: float
    unrest: float


class Sketch(msgspec.Struct, frozen=True):
    """The functions that hold most of a profile, the largest share first; none that is left out has over ``unlisted``.

    ``start`` and ``end`` are those of the annotated steps, of which there are ``steps`` from number ``first_step`` on,
    or of everything where there are none.
    """

    start: int
    end: int
    steps: int
    first_step: int | None
    functions: list[Function]
    unlisted: float


class Calls:
    """The calls of a profile as columns; ``left_out`` counts those beyond the bound."""

    def __init__(self) -> None:
        self.left_out = 0
        self._starts = array("q")
        self._ends = array("q")
        self._ids = array("i")
        self._known: dict[tuple[str, Kind, bool], int] = {}
        self._part_of_others: list[int] = []

    def __len__(self) -> int:
        return len(self._starts)

    def add(self, name: str, kind: Kind, start: int, end: int, *, device: bool) -> None:
        """A call of a function on the device, or on the CPU."""
        if len(self) >= MOST_CALLS:
            self.left_out += 1
            return
        key = name, kind, device
        if key not in self._known and len(self._known) >= MOST_NAMES:
            key = OTHERS, kind, device
        self._ids.append(self._known.setdefault(key, len(self._known)))
        self._starts.append(start)
        self._ends.append(end)

    def hold(self, at: int, by: int | None) -> None:
        """What a call holds is held by another one, of which it is a part; where that is null it holds nothing."""
        if at >= len(self):
            return
        self._part_of_others.append(at)
        if by is None:
            self._ends[at] = self._starts[at]
        else:
            self._ids[at] = self._ids[by]

    def names(self) -> list[tuple[str, Kind]]:
        """All functions that are called."""
        return sorted({(name, kind) for name, kind, _ in self._known})

    def communication(self) -> Callable[[Integers], Integers]:
        """What tells for how long before each moment only communication ran: on the device, or on the CPU while the
        device did nothing (ns)."""
        count = len(self._known)
        talks, device = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
        for (_, kind, on_device), at in self._known.items():
            talks[at], device[at] = kind == "collective", on_device
        ids = np.array(self._ids, dtype=np.int64)
        covers = []
        for chosen in (talks[ids] | device[ids], device[ids] & ~talks[ids]):
            starts, ends = np.array(self._starts, dtype=np.int64)[chosen], np.array(self._ends, dtype=np.int64)[chosen]
            order = np.argsort(starts, kind="stable")
            covers.append(_Cover(*_apart(starts[order], ends[order])))
        return lambda moments: covers[0].before(moments) - covers[1].before(moments)

    def sketch(self, steps: list[Step]) -> Sketch | None:
        """What the calls come to; null if there are none, or all are of no length."""
        keys = sorted(self._known)
        place = np.zeros(len(keys), dtype=np.int64)
        for at, key in enumerate(keys):
            place[self._known[key]] = at
        starts, ends = np.array(self._starts, dtype=np.int64), np.array(self._ends, dtype=np.int64)
        ids = place[np.array(self._ids, dtype=np.int64)] if len(starts) else np.zeros(0, dtype=np.int64)
        kept = sorted(set(steps))[:MOST_STEPS]
        start = min((one.start for one in kept), default=int(starts.min()) if len(starts) else 0)
        end = max((one.end for one in kept), default=int(ends.max()) if len(ends) else 0)
        if end <= start or not len(starts):
            return None
        order = np.lexsort((ids, -ends, starts))
        layers = np.array([_layer(kind, device) for _, kind, device in keys], dtype=np.int64)
        held = _Held(starts[order], ends[order], ids[order], layers)
        shares = held.between(start, end) / (end - start)
        by_step = np.array([held.between(one.start, one.end) for one in kept]) if kept else np.zeros((1, len(keys)))
        inside = (starts < end) & (ends > start)
        inside[np.array(self._part_of_others, dtype=np.int64)] = False
        durations = _Durations(ids[inside], (ends - starts)[inside], len(keys))
        ranked = sorted(range(len(keys)), key=lambda at: (-shares[at], keys[at]))
        listed = [at for at in ranked if shares[at] >= LEAST_SHARE and keys[at][0] != OTHERS][:MOST_FUNCTIONS]
        rest: dict[Kind, list[int]] = {}
        for at in ranked:
            if at not in listed and shares[at] > 0:
                rest.setdefault(keys[at][1], []).append(at)
        wholes = [(keys[at][0], keys[at][1], [at]) for at in listed]
        wholes += [(OTHERS, kind, found) for kind, found in sorted(rest.items())]
        functions = [
            _function(name, kind, float(shares[found].sum()), by_step[:, found].sum(axis=1), *durations.of(found))
            for name, kind, found in wholes
        ]
        functions.sort(key=lambda one: (-one.share, one.name, one.kind))
        first = kept[0].number if kept else None
        unlisted = max((float(shares[at]) for found in rest.values() for at in found), default=0.0)
        return Sketch(start, end, len(kept), first, functions, _rounded(unlisted))


def _layer(kind: Kind, device: bool) -> int:
    if not device:
        return _CPU
    return _GPU_COLLECTIVE if kind == "collective" else _GPU


def _function(
    name: str, kind: Kind, share: float, by_step: npt.NDArray[np.float64], count: int, mean: float, spread: float
) -> Function:
    typical = float(np.median(by_step))
    return Function(
        name=name,
        kind=kind,
        share=_rounded(min(share, 1.0)),
        mean=_rounded(mean / 1e9),
        spread=_rounded(spread / 1e9),
        count=count,
        typical=_rounded(typical / 1e9),
        unrest=_rounded(float(np.median(np.abs(by_step - typical))) / 1e9),
    )


def _rounded(value: float) -> float:
    """To six significant digits: more would only make the record longer."""
    return float(f"{value:.6g}")


class _Durations:
    """How long the calls of each function take (ns)."""

    def __init__(self, ids: Integers, durations: Integers, names: int) -> None:
        self._count = np.bincount(ids, minlength=names)
        self._mean = np.bincount(ids, weights=durations, minlength=names) / np.maximum(self._count, 1)
        self._squares = np.bincount(ids, weights=(durations - self._mean[ids]) ** 2, minlength=names)

    def of(self, functions: list[int]) -> tuple[int, float, float]:
        """Count, mean and standard deviation of all calls of these."""
        count, own = self._count[functions], self._mean[functions]
        calls = max(int(count.sum()), 1)
        mean = float((own * count).sum()) / calls
        squares = float((self._squares[functions] + count * (own - mean) ** 2).sum())
        return int(count.sum()), mean, math.sqrt(squares / calls)


class _Cover:
    """Disjoint intervals in order: how much of the time up to a moment they cover."""

    def __init__(self, starts: Integers, ends: Integers) -> None:
        some = ends > starts
        self._starts, self._ends = starts[some], ends[some]
        self._sums = np.concatenate([[0], np.cumsum(self._ends - self._starts)])

    def before(self, moments: Integers) -> Integers:
        """The covered time before each moment (ns)."""
        if not len(self._starts):
            return np.zeros_like(moments)
        at = np.searchsorted(self._starts, moments, side="right")
        last = np.maximum(at - 1, 0)
        inside = np.minimum(moments, self._ends[last]) - self._starts[last]
        found: Integers = np.where(at > 0, self._sums[last] + inside, 0)
        return found


class _Held:
    """Which function holds which time: pieces of calls, and what higher layers cover of these."""

    def __init__(self, starts: Integers, ends: Integers, ids: Integers, layers: Integers) -> None:
        """Calls in order; ``layers`` are those of the functions, by id."""
        self._names = len(layers)
        of = layers[ids]
        gpu, on_device = of == _GPU, of != _CPU
        nothing = np.zeros(0, dtype=np.int64)
        own = _Cover(*_apart(starts[gpu], ends[gpu]))
        device = _Cover(*_apart(starts[on_device], ends[on_device]))
        self._parts = []
        for chosen, cover in ((gpu, _Cover(nothing, nothing)), (of == _GPU_COLLECTIVE, own)):
            self._parts.append((ids[chosen], *_apart(starts[chosen], ends[chosen]), cover))
        # A call that the device hides as a whole holds nothing, and what is around it there holds nothing either.
        shown = (~on_device) & (ends - starts > device.before(ends) - device.before(starts))
        self._parts.append((*_innermost(starts[shown], ends[shown], ids[shown]), device))

    def between(self, start: int, end: int) -> npt.NDArray[np.float64]:
        """By function how long it holds the critical path there (ns)."""
        found = np.zeros(self._names)
        for ids, starts, ends, cover in self._parts:
            first, last = np.clip(starts, start, end), np.clip(ends, start, end)
            own = (last - first) - (cover.before(last) - cover.before(first))
            found += np.bincount(ids, weights=own, minlength=self._names)
        return found


def _apart(starts: Integers, ends: Integers) -> tuple[Integers, Integers]:
    """Calls in order of their beginning without what an earlier one holds already."""
    if not len(starts):
        return starts, ends
    before = np.concatenate([starts[:1], np.maximum.accumulate(ends)[:-1]])
    first = np.maximum(starts, before)
    return first, np.maximum(ends, first)


def _innermost(starts: Integers, ends: Integers, ids: Integers) -> tuple[Integers, Integers, Integers]:
    """Ids, starts and ends of the pieces in which each call is the one that began last."""
    # Numbers of Python's take five times as much room, so they are made of a block of calls at a time.
    pieces = array("q"), array("q"), array("q")
    under_way: list[tuple[int, int]] = []
    at = 0

    def hold(until: int) -> None:
        nonlocal at
        while under_way and at < until:
            end, own = under_way[-1]
            if end > at:
                stop = min(end, until)
                for column, value in zip(pieces, (own, at, stop), strict=True):
                    column.append(value)
                at = stop
            if end <= at:
                under_way.pop()

    for block in range(0, len(starts), _BLOCK):
        part = slice(block, block + _BLOCK)
        for start, end, own in zip(starts[part].tolist(), ends[part].tolist(), ids[part].tolist(), strict=True):
            hold(start)
            at = start
            under_way.append((end, own))
    hold(int(ends.max()) if len(ends) else 0)
    columns = [np.array(column, dtype=np.int64) for column in pieces]
    return columns[0], columns[1], columns[2]
