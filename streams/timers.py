"""What a step timer measures, by its name: a rank's own work, waiting for others, both, or the whole step.

Own work finds the rank that is late; waiting finds its victims. A name that says neither counts as both.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

from streams.lines.iterations.megatron import ACROSS

Kind = Literal["own", "wait", "mixed", "total", "none"]

_WAIT = re.compile(
    r"wait|all_?reduce|reduce|gather|scatter|broadcast|barrier|p2p|send|recv|comm(?!and|it)|(?<!a)sync|nccl|grad_norm"
    r"|bubble|idle"
)
_RATE = re.compile(r"_per_s(?:ec)?$|/s$")
_BOTH = re.compile(r"forward.{0,3}backward")
_TOTAL = re.compile(r"total|step|iteration|elapsed|batch_time")
_MIXED = re.compile(r"backward|optimizer|update")
_OWN = re.compile(
    r"compute|forward|data|load|fetch|tokeniz|generat|rollout|reward|matmul|attention|mlp|preprocess|collate"
)
_KINDS: tuple[tuple[re.Pattern[str], Kind], ...] = (
    (_WAIT, "wait"),
    (_BOTH, "mixed"),
    (_OWN, "own"),
    (_MIXED, "mixed"),
    (_TOTAL, "total"),
)


@lru_cache(maxsize=4096)
def kind_of_timer(name: str) -> Kind:
    """The kind of a series by its name; ``none`` for what is no timer (names end in ``_ms`` or ``_s``).

    A timer over all ranks is none of the rank's that prints it.
    """
    lowered = name.lower()
    if (
        lowered.startswith(ACROSS)
        or _RATE.search(lowered)
        or not (lowered.endswith(("_ms", "_s")) or lowered.startswith("timing_s/"))
    ):
        return "none"
    for pattern, kind in _KINDS:
        if pattern.search(lowered):
            return kind
    return "mixed"


def scale_ns(name: str) -> int:
    """Nanoseconds in one unit of the timer."""
    return 1_000_000 if name.lower().endswith("_ms") else 1_000_000_000
