"""Profiles of ranks and of moments held against each other: which functions of a rank's own take longer.

What is compared is how long a function holds the critical path of one step. Collectives are waiting, or moving data
that others wait for as well: who holds up the others has the shortest of them, so they are never compared, only shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import get_args

import msgspec
import numpy as np
import numpy.typing as npt

from schemas.events import OTHERS
from schemas.identity import shortened
from schemas.results import Area, FunctionKind, FunctionShare, Sketch
from streams.robust import Bounds, contrast
from streams.timers import is_of_data

Floats = npt.NDArray[np.float64]
Key = tuple[FunctionKind, str]

LAYERS: tuple[FunctionKind, ...] = ("gpu", "python", "os")
"""Kinds of own work in the order in which they explain slowness (SysOM-AI, arXiv 2603.29235)."""
KINDS: tuple[FunctionKind, ...] = get_args(FunctionKind)
_WORDS: dict[str, str] = {
    "gpu": "GPU kernel",
    "python": "function",
    "os": "system or driver call",
    "collective": "collective",
}
_LAYER_WORDS: dict[str, str] = {
    "gpu": "own work on the GPU",
    "python": "own work on the CPU",
    "os": "own time in system and driver calls",
}
_LEAST_S = 1e-6
"""What nobody does takes no time, and no ratio to nothing says anything."""
_SHOWN_NAME = 120
_MOST_COMPARED = 128
"""Functions of a peer group that are compared, those that hold most; ranks may call each their own."""


def called(kind: FunctionKind, name: str) -> str:
    """A function as sentences have it."""
    return f"{_WORDS[kind]} '{shortened(name, _SHOWN_NAME)}'"


def said_seconds(value: float) -> str:
    """A time as people read it."""
    return f"{value:.2f} s" if value >= 1 else f"{value * 1e3:.2f} ms"


def span_s(sketch: Sketch) -> float:
    """How long one step of the profile took, or all of it where it knows no steps (s); 0 where that is not known."""
    return sketch.step_s or sketch.duration / 1e9


def held_s(function: FunctionShare, sketch: Sketch) -> float:
    """How long a function holds the critical path of one step, or of the profile where it knows no steps."""
    return function.typical if sketch.steps else function.share * span_s(sketch)


def totals(sketch: Sketch) -> dict[FunctionKind, float]:
    """What all functions of each kind hold together, in the same measure."""
    found: dict[FunctionKind, float] = dict.fromkeys(KINDS, 0.0)
    for function in sketch.functions:
        found[function.kind] += held_s(function, sketch)
    return found


def own_s(sketch: Sketch) -> float:
    """What the rank's own work holds."""
    found = totals(sketch)
    return sum(found[kind] for kind in LAYERS)


def abridged(sketch: Sketch, most: int) -> Sketch:
    """The sketch with the largest functions only, and the rest of each kind together, so that totals and calls stay.

    Spreads are left out.
    """
    named = [one for one in sketch.functions if one.name != OTHERS]
    rest = [*(one for one in sketch.functions if one.name == OTHERS), *named[most:]]
    wholes = []
    for kind in KINDS:
        own = [one for one in rest if one.kind == kind]
        if own:
            told = {name: sum(getattr(one, name) for one in own) for name in ("share", "count", "typical", "unrest")}
            wholes.append(FunctionShare(name=OTHERS, kind=kind, **told))
    unlisted = max([sketch.unlisted, *(one.share for one in named[most:])])
    plain = [msgspec.structs.replace(one, spread=0.0) for one in named[:most]]
    return msgspec.structs.replace(sketch, functions=[*plain, *wholes], unlisted=unlisted)


class Peers:
    """The profiles of ranks that can be compared, and what the others of each hold."""

    def __init__(self, sketches: Mapping[int, Sketch]) -> None:
        self.ranks = sorted(sketches)
        self.sketches = sketches
        held = [totals(sketches[rank]) for rank in self.ranks]
        self._kinds = np.array([[one[kind] for kind in KINDS] for one in held]).reshape(-1, len(KINDS))
        self._own = np.array([own_s(sketches[rank]) for rank in self.ranks])
        self._spans = np.array([span_s(sketches[rank]) for rank in self.ranks])

    def others(self, rank: int) -> tuple[dict[FunctionKind, float], float, float]:
        """Medians over the others: what each kind holds, what own work holds, and how long a step takes (s)."""
        at = self.ranks.index(rank)
        kinds, own, span = (
            np.median(np.delete(one, at, axis=0), axis=0) for one in (self._kinds, self._own, self._spans)
        )
        return dict(zip(KINDS, kinds.tolist(), strict=True)), float(own), float(span)

    def ratios(self, bounds: Bounds) -> dict[int, float]:
        """How many times the others' median own work takes, by rank; nothing where there are no others."""
        if len(self.ranks) < 2:
            return {}
        _, ratios, _ = contrast(self._own, bounds)
        return dict(zip(self.ranks, ratios.tolist(), strict=True))

    def slower(self, bounds: Bounds, share: float) -> dict[int, list[Excess]]:
        """By rank what stands out of what the others hold: functions, and layers as a whole."""
        found = slower_than_peers(self.sketches, bounds, share)
        if len(self.ranks) < 2:
            return found
        layers = [KINDS.index(kind) for kind in LAYERS]
        values = np.maximum(self._kinds[:, layers].T, _LEAST_S)
        unrest, lean = (
            np.array([[_sum_of(of, self.sketches[rank], kind) for rank in self.ranks] for kind in LAYERS])
            for of in (_unrest, _lean)
        )
        flags, centers = _standing_out(values, unrest, lean, bounds)
        for row, column in zip(*np.nonzero(flags), strict=True):
            excess = Excess(LAYERS[row], float(values[row, column]), float(centers[row, column]))
            found.setdefault(self.ranks[column], []).append(excess)
        return found


def _unrest(one: FunctionShare, sketch: Sketch) -> float:
    return one.unrest


def _lean(one: FunctionShare, sketch: Sketch) -> float:
    """How far the mean step of a function lies from its median one: at least so much a mean of so few steps may err.

    Where most steps are of one length and some of another, as with inputs in buckets, the median deviation is 0. A
    share q of n such steps moves the mean by q, and its standard error is no more than that.
    """
    return abs(one.share * span_s(sketch) - one.typical) if sketch.steps else 0.0


def _sum_of(what: Callable[[FunctionShare, Sketch], float], sketch: Sketch, kind: FunctionKind) -> float:
    """By how much a layer may vary from step to step: by no more than its functions together."""
    return sum(what(one, sketch) for one in sketch.functions if one.kind == kind)


def _standing_out(values: Floats, unrest: Floats, lean: Floats, bounds: Bounds) -> tuple[npt.NDArray[np.bool_], Floats]:
    """Flags and peers' medians of [function, rank]: out of the ranks, and of what varies from step to step.

    Steps of one rank may all be of one kind by chance, so it is held to the lean of all.
    """
    flags, _, centers = contrast(values, bounds)
    usual = np.maximum(np.median(unrest, axis=1, keepdims=True), unrest)
    usual = np.maximum(usual, np.maximum(lean.mean(axis=1, keepdims=True), lean))
    return flags & (values - centers > bounds.mads * usual), centers


def alike(sketches: Mapping[int, Sketch]) -> dict[int, Sketch]:
    """Those that can be compared, of which most are: of jobs of one size, with steps or without, recorded alike.

    Where nobody told when one was taken, only its numbers of steps can say that it shows what the others show.
    """
    groups: dict[tuple[str, ...], dict[int, Sketch]] = {}
    for rank, sketch in sorted(sketches.items()):
        key = (str(sketch.world_size), str(bool(sketch.steps)), sketch.recorded, str(sketch.inferred))
        steps = (str(sketch.first_step), str(sketch.steps)) if sketch.inferred else ()
        groups.setdefault((*key, *steps), {})[rank] = sketch
    return max(groups.values(), key=lambda one: (len(one), -min(one)), default={})


class Excess(msgspec.Struct, frozen=True):
    """A function that holds more of a rank's step than of others': ``own`` and ``others`` in seconds.

    ``others`` is the median of the peers, or what it was earlier, or, where ``at_most``, no more than a bound to that:
    their sketches do not list it. ``function`` is the rank's own.
    """

    kind: FunctionKind
    own: float
    others: float
    function: FunctionShare | None = None
    at_most: bool = False

    @property
    def excess(self) -> float:
        """How much more, in seconds."""
        return self.own - self.others

    @property
    def ratio(self) -> float:
        """How many times as much."""
        return self.own / max(self.others, _LEAST_S)

    def times(self, whose: str) -> str:
        """How many times as much as ``whose``: ``2.10 times its peers' median of 3.00 ms``."""
        ratio = f"{self.ratio:.2f} times" if self.ratio < 100 else "over 100 times"
        if self.at_most:
            return f"at least {ratio} {whose}, which is {said_seconds(self.others)} at most"
        return f"{ratio} {whose} of {said_seconds(self.others)}"

    @property
    def name(self) -> str:
        """What it is called in a sentence."""
        return _LAYER_WORDS[self.kind] if self.function is None else called(self.kind, self.function.name)

    @property
    def area(self) -> Area:
        """The likely side of the fault."""
        name = self.function.name if self.function and self.kind == "python" else ""
        return "data" if is_of_data(name) else "compute"


def slower_than_peers(sketches: Mapping[int, Sketch], bounds: Bounds, share: float) -> dict[int, list[Excess]]:
    """By rank its functions that stand out of what peers hold, each with over ``share`` of the rank's own step.

    Besides the bounds over ranks, the excess must be so many deviations of what the function varies by from one step
    to the next, and of how far means lie from medians: where inputs differ in length, each step is another rank's.
    """
    ranks = sorted(sketches)
    tables = {rank: _table(sketches[rank]) for rank in ranks}
    largest: dict[Key, float] = {}
    for rank in ranks:
        for one in sketches[rank].functions:
            held = held_s(one, sketches[rank])
            if one.kind in LAYERS and one.name != OTHERS and held > share * span_s(sketches[rank]):
                largest[one.kind, one.name] = max(held, largest.get((one.kind, one.name), 0.0))
    keys = sorted(sorted(largest, key=lambda key: (-largest[key], key))[:_MOST_COMPARED])
    if len(ranks) < 2 or not keys:
        return {}
    values = np.array([[_value(tables[rank], sketches[rank], key) for rank in ranks] for key in keys])
    listing = [[tables[rank].get(key) for rank in ranks] for key in keys]
    unrest, lean = (
        np.array(
            [
                [0.0 if one is None else of(one, sketches[rank]) for rank, one in zip(ranks, row, strict=True)]
                for row in listing
            ]
        )
        for of in (_unrest, _lean)
    )
    flags, centers = _standing_out(values, unrest, lean, bounds)
    listed = [sum(one is not None for one in row) for row in listing]
    found: dict[int, list[Excess]] = {}
    for row, column in zip(*np.nonzero(flags), strict=True):
        rank, key = ranks[column], keys[row]
        function = listing[row][column]
        own = float(values[row, column])
        if function is not None and own > share * span_s(sketches[rank]):
            rare = 2 * (listed[row] - 1) <= len(ranks) - 1
            excess = Excess(key[0], own, float(centers[row, column]), function, rare)
            found.setdefault(rank, []).append(excess)
    return found


def slower_than_before(sketch: Sketch, before: Sketch, bounds: Bounds, share: float) -> list[Excess]:
    """The functions of its own that hold more of a rank's step than in an earlier profile of it."""
    then = _table(before)
    found = []
    for one in sketch.functions:
        own, was = held_s(one, sketch), _value(then, before, (one.kind, one.name))
        unrest = max(one.unrest, _lean(one, sketch))
        if (earlier := then.get((one.kind, one.name))) is not None:
            unrest = max(unrest, earlier.unrest, _lean(earlier, before))
        stands_out = own > bounds.ratio * was and own - was > bounds.mads * unrest
        if one.kind in LAYERS and one.name != OTHERS and own > share * span_s(sketch) and stands_out:
            found.append(Excess(one.kind, own, was, one, (one.kind, one.name) not in then))
    return found


def explained(sketch: Sketch, others: Mapping[FunctionKind, float], found: Sequence[Excess], part: float) -> Excess:
    """What explains an excess: the first layer that holds ``part`` of it, by its largest function that stands out.

    ``others`` is what peers hold by kind, or what the rank held earlier. Where no layer holds so much, the one with the
    most; where no function of it stands out, the layer as a whole.
    """
    own = totals(sketch)
    layers = [Excess(kind, own[kind], others[kind]) for kind in LAYERS]
    whole = sum(max(one.excess, 0.0) for one in layers)
    layer = next((one for one in layers if one.excess >= part * whole > 0), max(layers, key=lambda one: one.excess))
    inside = [one for one in found if one.kind == layer.kind and one.function is not None]
    return max(inside, key=lambda one: (one.excess, one.name), default=layer)


def _table(sketch: Sketch) -> dict[Key, FunctionShare]:
    return {(one.kind, one.name): one for one in sketch.functions}


def _value(table: Mapping[Key, FunctionShare], sketch: Sketch, key: Key) -> float:
    """What a function holds; one that is not listed may hold as much as the largest that was left out."""
    function = table.get(key)
    return max(sketch.unlisted * span_s(sketch) if function is None else held_s(function, sketch), _LEAST_S)
