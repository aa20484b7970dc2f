"""What is said of a step whose gradients overflowed in half precision: which loss scale training goes on with.

DeepSpeed: ``OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768``; apex: ``Gradient
overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0``; fairseq: ``gradient overflow detected,
ignoring gradient, setting loss scale to: 64.0``. They number no step, so it is the worker's present one.
"""

from __future__ import annotations

import re

from streams.lines.iterations.reading import kept, number
from streams.lines.iterations.report import Report

_SCALE = re.compile(
    r"""
      Attempted[ ]loss[ ]scale:[ ]?[\d.e+]{1,30},[ ]reducing[ ]to[ ]([\d.e+-]{1,30})
    | (?:reducing|setting)[ ]loss[ ]scale[ ]to:?[ ]([\d.e+-]{1,30})
    """,
    re.VERBOSE | re.IGNORECASE,
)


def overflow(line: str) -> Report | None:
    """The new loss scale, at the worker's present iteration."""
    found = _SCALE.search(line)
    if found is None:
        return None
    return Report(readings=kept([number("loss_scale", found.group(1) or found.group(2))]), place="present")
