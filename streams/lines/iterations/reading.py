"""Numbers of a line: what they are called, their unit, and what is no number but was printed as one."""

from __future__ import annotations

import math
import re
from functools import lru_cache

import msgspec

NUMBER = r"[+-]?(?:[\d.,]{1,40}(?:[eE][+-]?\d{1,4})?|(?i:nan|inf(?:inity)?))"
"""A printed number, thousands commas allowed; it also matches what is none, which ``number`` leaves out.

A digit run of a folded line is one digit, so nothing here asks for more than one.
"""

_UNIT = re.compile(r"[ ]?\((ms|s)\)$")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_LAST = re.compile(r"_(time|secs?|seconds)$")
_UNITS = {"%": "percent"}

IDENTITY = frozenset(
    {
        *("iteration", "step", "global_step", "training/global_step", "consumed_samples", "epoch", "v_num"),
        *("rank", "global_rank", "local_rank", "world_size", "pid"),
    }
)
"""Numbers that say where a line stands, not what was measured there."""


class Reading(msgspec.Struct, frozen=True):
    """One number of a line; ``value`` is null where it is not finite, which ``nonfinite`` then names."""

    name: str
    value: float | None
    nonfinite: str = ""
    unit: str = ""


def number(name: str, raw: str, unit: str = "") -> Reading | None:
    """The reading of a printed number under its whole name, or null where it is none.

    The name ends in the unit, if there is one; a percent sign is ``percent``.
    """
    try:
        value = float(raw.replace(",", "") if "," in raw else raw)
    except ValueError:
        return None
    unit = _UNITS.get(unit, unit.lower())
    full = f"{name}_{unit}" if unit else name
    if math.isnan(value):
        return Reading(full, None, "nan", unit)
    if math.isinf(value):
        return Reading(full, None, "inf" if value > 0 else "-inf", unit)
    return Reading(full, value, "", unit)


@lru_cache(maxsize=4096)
def named(raw: str) -> tuple[str, str]:
    """A printed name in lower case with underscores, and the unit that stands in brackets behind it."""
    unit = _UNIT.search(raw)
    name = raw[: unit.start()] if unit else raw
    return name.strip().lower().replace(" ", "_").replace("-", "_"), unit.group(1) if unit else ""


def timed(name: str) -> tuple[str, str]:
    """A name and the unit that it tells by its last word, empty for none.

    ``data_time`` is in seconds by custom; one in another unit is longer than its step and counts for nothing.
    """
    found = _LAST.search(name)
    if found is None or "_per_" in name:
        return name, ""
    return (name, "s") if found.group(1) == "time" else (name[: found.start()], "s")


def parted(raw: str) -> str:
    """A name of joined words (``CurrSamplesPerSec``) as named words are written: ``curr_samples_per_sec``."""
    return _HUMP.sub("_", raw).lower()


SAMPLES, BATCH = "consumed_samples", "global_batch_size"


def kept(found: list[Reading | None]) -> list[Reading]:
    """The readings among what was found, without those that only say where the line stands.

    The samples so far are kept where nothing else tells the size of a batch.
    """
    readings = [one for one in found if one is not None]
    sized = any(one.name == BATCH for one in readings)
    return [one for one in readings if one.name not in IDENTITY or (one.name == SAMPLES and not sized)]
