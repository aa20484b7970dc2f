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
    r"wait|all_?reduce|reduce|gather|scatter|broadcast|all_?to_?all|barrier|p2p|send|recv|comm(?!and|it)|(?<!a)sync"
    r"|nccl|grad_norm|bubble|idle"
)
_DATA = re.compile(
    r"(?<![a-z])(?:data[a-z]*|(?:pre)?(?:load|fetch)(?:ing|er|ed)?"
    r"|token(?:ize|ise|iza|isa)[a-z]*|collat[a-z]*|augment[a-z]*)(?![a-z])"
)
_COMPUTED = re.compile(
    r"forward|backward|fwd|bwd|generat|rollout|compute|attention|attn|mlp|matmul|off_?load|data_?parallel|balanc"
)
"""Beside these words, data are what is computed with, or the loading is of something else."""
_SUM = re.compile(r"^bwd_microstep_m?s$")
"""DeepSpeed prints the parts of this too, ``bwd_inner`` and ``bwd_allreduce``; it must not count twice."""
_RATE = re.compile(r"_per_s(?:ec)?$|/s$")
_BOTH = re.compile(r"(?:forward|fwd).{0,3}(?:backward|bwd)")
_TOTAL = re.compile(r"total|step|iteration|elapsed|batch_time")
ROUTED = r"moe|experts?|router?|dispatch|combine"
"""Words, as a pattern, of work in which tokens are sent to experts."""
_ROUTED = re.compile(rf"(?:^|[_/.-])(?:{ROUTED})(?:$|[_/.-])")
"""Work that goes where a batch sends it: who has more of it is not slow."""
_MIXED = re.compile(r"backward|bwd|optimizer|update|microstep")
_OWN = re.compile(
    r"compute|forward|fwd|data|load|fetch|tokeniz|generat|rollout|reward|matmul|attention|mlp|preprocess|collate"
)
_KINDS: tuple[tuple[re.Pattern[str], Kind], ...] = (
    (_WAIT, "wait"),
    (_BOTH, "mixed"),
    (_ROUTED, "mixed"),
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
        or _SUM.search(lowered)
        or not (lowered.endswith(("_ms", "_s")) or lowered.startswith("timing_s/"))
    ):
        return "none"
    for pattern, kind in _KINDS:
        if pattern.search(lowered):
            return kind
    return "mixed"


@lru_cache(maxsize=4096)
def plain_timer(name: str) -> str:
    """The timer's name without its unit: ranks may print one timer in different units."""
    lowered = name.lower()
    unit = next((one for one in ("_ms", "_s") if lowered.endswith(one)), "")
    return name[: len(name) - len(unit)]


@lru_cache(maxsize=4096)
def scale_ns(name: str) -> int:
    """Nanoseconds in one unit of the timer."""
    return 1_000_000 if name.lower().endswith("_ms") else 1_000_000_000


def is_of_data(name: str) -> bool:
    """Whether a timer or a function is named after the loading of data, within which nobody waits for other ranks."""
    lowered = name.lower()
    return _DATA.search(lowered) is not None and _COMPUTED.search(lowered) is None
