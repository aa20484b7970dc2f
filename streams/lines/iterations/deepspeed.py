"""DeepSpeed's two lines of a step.

``epoch=0/micro_step=8/global_step=1, RunningAvgSamplesPerSec=3.1, …, MemAllocated=1.2GB, …`` of its timer, and
``[Rank 0] step=10, skipped=0, lr=[6e-05], mom=[(0.9, 0.95)]`` of its engine; of several rates the first counts.
"""

from __future__ import annotations

import re

from streams.lines.iterations.reading import NUMBER, kept, number, parted
from streams.lines.iterations.report import Report

_HEAD = re.compile(r"micro_step=\d{1,12}/global_step=\d{1,12},|(?<![A-Za-z0-9_])step=\d{1,12}, (?=skipped=)")
_PAIR = re.compile(rf"(?<!\w)([A-Za-z]\w{{0,60}})=\[?({NUMBER})([A-Za-z%]{{0,4}})(?![\w.])")


def deepspeed(line: str) -> Report | None:
    """The pairs behind the step."""
    head = _HEAD.search(line)
    if head is None:
        return None
    # A number takes the comma that ends its pair with it.
    pairs = _PAIR.findall(line, head.end())
    return Report(readings=kept([number(parted(name), raw, unit) for name, raw, unit in pairs]))
