"""Whether profiled ranks execute the same: where nothing else tells their parts, only longer same work accuses anybody.

What runs on the device, or the operators of the CPU where no device was profiled, is the model. Who runs other kernels
than most, or runs them another number of times a step, has another part of the model by design, as the last stage of a
pipeline has the head. What the host does besides is no part of the model, and a call that others make quickly is not
listed at all, so functions of Python, loaders and calls of the driver never show other work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np

from schemas.events import OTHERS
from schemas.results import FunctionShare, Sketch
from streams.profiles import held_s, own_s, span_s

LEAST = 0.01
"""Of a step; what holds less may be on one rank and not on another by chance."""
MORE = 0.03
"""Of the calls a step, from which on they may be why a rank takes longer."""
OTHER = 0.1
"""Of the calls a step; by so much, and by one step's calls, the ends of profiles cut ranks of one work apart."""
_OPERATOR = "::"


class Work:
    """What the ranks of a group execute of the model."""

    def __init__(self, sketches: Mapping[int, Sketch]) -> None:
        self._sketches = sketches
        self._device = any(one.kind == "gpu" for sketch in sketches.values() for one in sketch.functions)
        # How many ranks list a function, how many of these at some length, and how many list all that have any.
        self._listed = Counter(one.name for sketch in sketches.values() for one in self._model(sketch))
        self._large = Counter(name for sketch in sketches.values() for name in self._large_of(sketch))
        self._whole = sum(sketch.unlisted < LEAST for sketch in sketches.values())
        self._calls = float(np.median([self._calls_of(sketch) for sketch in sketches.values()] or [0.0]))
        self._own = float(np.median([own_s(sketch) for sketch in sketches.values()] or [0.0]))

    def is_other(self, rank: int) -> bool:
        """Whether a rank executes other things than most of the others, or other numbers of them."""
        sketch = self._sketches[rank]
        large, listed = self._large_of(sketch), {one.name for one in self._model(sketch)}
        return (
            any(self._most_lack(name) for name in large)
            or (sketch.unlisted < LEAST and any(self._most_have(name) for name in self._large.keys() - listed))
            or self._calls_differ(sketch)
        )

    def _model(self, sketch: Sketch) -> Iterable[FunctionShare]:
        for one in sketch.functions:
            if one.name != OTHERS and (one.kind == "gpu" if self._device else _is_operator(one)):
                yield one

    def _large_of(self, sketch: Sketch) -> list[str]:
        return [one.name for one in self._model(sketch) if held_s(one, sketch) >= LEAST * span_s(sketch)]

    def _most_lack(self, name: str) -> bool:
        """Of those that list all, whether most do not list this; the rank itself does."""
        return 2 * (self._listed[name] - 1) < self._whole - 1

    def _most_have(self, name: str) -> bool:
        return 2 * self._large[name] > len(self._sketches) - 1

    def _calls_differ(self, sketch: Sketch) -> bool:
        """Whether a step has fewer or more calls on the device, or as much more as the rank takes longer."""
        own = self._calls_of(sketch)
        if not self._device or own <= 0 or self._calls <= 0:
            return False
        more = own / self._calls - 1
        longer = own_s(sketch) / max(self._own, 1e-9) - 1
        return abs(more) > max(OTHER, 1 / max(sketch.steps, 1)) or (more > MORE and 2 * more >= longer)

    def _calls_of(self, sketch: Sketch) -> float:
        """Calls on the device a step, those of functions that are not listed among them."""
        return sum(one.count for one in sketch.functions if one.kind == "gpu") / max(sketch.steps, 1)


def _is_operator(one: FunctionShare) -> bool:
    return one.kind == "python" and _OPERATOR in one.name
