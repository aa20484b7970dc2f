"""Numbers that lines carry: iteration lines and step timers become metrics by iteration.

Names are as printed, in lower case with underscores, and end in their unit where the line gives one: ``compute_ms``.
"""

from __future__ import annotations

import math
import re

import msgspec

from streams.lines.signature import peel

_TOTAL = re.compile(r"iteration[ \t]+(\d{1,12})/[ \t]*(\d{1,12})[ \t]*\|")
_FIELD = re.compile(
    r"([A-Za-z][A-Za-z0-9 _/()-]{0,60}?)[ \t]{0,8}:[ \t]{0,16}([+-]?[\w.+-]{1,40})(?:[ \t](ms|s))?[ \t]*(?:\||$)"
)
_TIMERS = re.compile(r"\bstep[ \t]+\d{1,12}[ \t]+timers[ \t]+\((ms|s)\):[ \t]*(.{1,2000})$")
_PAIR = re.compile(r"([A-Za-z][\w/-]{0,60})[ \t]+([+-]?[\d.]{1,30}(?:[eE][+-]?\d{1,4})?|(?i:nan|[+-]?inf))(?=[ \t]|$)")
_DASHED = re.compile(r"(?:^|[ \t]-[ \t])([A-Za-z][\w/.]{0,80}):([+-]?[\w.+-]{1,40})")
_UNIT = re.compile(r"[ ]?\((ms|s)\)$")

_IDENTITY = frozenset({"iteration", "step", "training/global_step", "consumed_samples", "number_of_nan_iterations"})


class Reading(msgspec.Struct, frozen=True):
    """One number of a line; ``value`` is null where it is not finite, which ``nonfinite`` then names."""

    name: str
    value: float | None
    nonfinite: str = ""
    unit: str = ""


def total_iterations(text: str) -> int | None:
    """How many iterations the run will have, where an iteration line says so."""
    found = _TOTAL.search(text, 0, 400)
    return int(found.group(2)) if found else None


def _number(name: str, raw: str, unit: str) -> Reading | None:
    try:
        value = float(raw)
    except ValueError:
        return None
    full = f"{name}_{unit}" if unit else name
    if math.isnan(value):
        return Reading(full, None, "nan", unit)
    if math.isinf(value):
        return Reading(full, None, "inf" if value > 0 else "-inf", unit)
    return Reading(full, value, "", unit)


def _named(raw: str) -> tuple[str, str]:
    unit = _UNIT.search(raw)
    name = _UNIT.sub("", raw).strip().lower().replace(" ", "_").replace("-", "_")
    return name, unit.group(1) if unit else ""


def readings_of(text: str) -> list[Reading]:
    """The numbers of a timer or iteration line, in order; empty for any other line."""
    line = peel(text.split("\n", 1)[0][:2000])
    timers = _TIMERS.search(line)
    found: list[Reading | None]
    if timers:
        found = [_number(_named(name)[0], raw, timers.group(1)) for name, raw in _PAIR.findall(timers.group(2))]
    elif "|" in line:
        found = []
        for name, raw, unit in _FIELD.findall(line.split("|", 1)[1]):
            plain, inner = _named(name)
            found.append(_number(plain, raw, unit or inner))
    else:
        found = [_number(_named(name)[0], raw, "") for name, raw in _DASHED.findall(line)]
    return [reading for reading in found if reading is not None and reading.name not in _IDENTITY]
