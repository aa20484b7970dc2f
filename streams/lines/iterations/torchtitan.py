"""torchtitan's line of a step: ``step: 14  loss:  3.24405  memory:  9.46GiB(64.99%)  tps: 7,282  mfu: N/A``."""

from __future__ import annotations

import re

import msgspec

from streams.lines.iterations.reading import NUMBER, kept, number
from streams.lines.iterations.report import Report

_HEAD = re.compile(r"(?<![A-Za-z0-9_])(validate )?step:[ ]{1,12}\d{1,12}[ ]{2}")
_PAIR = re.compile(
    rf"([A-Za-z][\w/]{{0,60}}):[ ]{{1,16}}({NUMBER})([A-Za-z%]{{0,4}})(?:\(([\d.]{{1,12}})%\))?(?=[ ]|$)"
)


def torchtitan(line: str) -> Report | None:
    """The pairs behind the step; those of a validation are named so, as they are another loss."""
    head = _HEAD.search(line)
    if head is None:
        return None
    found = []
    for name, raw, unit, share in _PAIR.findall(line, head.end()):
        found.append(number(name.lower(), raw, unit))
        if share:
            found.append(number(name.lower(), share, "%"))
    readings = kept(found)
    if head.group(1):
        readings = [msgspec.structs.replace(one, name=f"validate_{one.name}") for one in readings]
    return Report(readings=readings)
