"""Counters: what one gained from one sample to the next, over resets and wraps."""

from __future__ import annotations

import msgspec

from schemas.events import Metric
from schemas.measures import Measure

_NEAR = 0.75
"""A counter wraps from the last quarter of its width into the first; any other fall is a reset."""
_SECOND = 1e9


class Counted(msgspec.Struct, frozen=True):
    """What a counter showed last: when (ns), how much and in which unit."""

    time: int
    value: float
    unit: str


def counted(sample: Metric) -> Counted:
    """What a sample shows; it has a value."""
    return Counted(sample.time, sample.value or 0.0, sample.unit)


def gained(before: Counted, now: Counted, measure: Measure) -> float | None:
    """By how much it has grown, never less than 0; null where nobody knows.

    That is after a reset (what it had gained before it fell is lost), where the unit is another one, and where time
    does not go on.
    """
    if now.unit != before.unit or now.time <= before.time:
        return None
    if now.value >= before.value:
        return now.value - before.value
    for modulus in measure.moduli:
        if _NEAR * modulus <= before.value <= modulus and now.value <= (1 - _NEAR) * modulus:
            return now.value + (modulus - before.value)
    return None


def rate(before: Counted, now: Counted, measure: Measure) -> float | None:
    """What it gained in a second, null as ``gained``."""
    more = gained(before, now, measure)
    return None if more is None else more * _SECOND / (now.time - before.time)
