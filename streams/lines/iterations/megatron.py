"""Megatron's timers over ranks, one record of many lines or one line of it.

``(min, max) time across ranks (ms):`` is followed by ``    forward-backward ......: (1061.24, 1063.80)`` a timer,
``times across ranks (ms):`` by ``  name:`` and ``     rank  0: 12.3`` for each rank. One rank prints them, and they
say nothing about that rank itself: what is kept is the least and the most over all ranks, under names that no detector
takes for the printing rank's own.
"""

from __future__ import annotations

import re

from streams.lines.iterations.reading import Reading, kept, named, number
from streams.lines.iterations.report import Report

_LEAST_AND_MOST = re.compile(r"([A-Za-z][\w/-]{0,60}) \.{1,60}: \(([\d.]{1,30}), ([\d.]{1,30})\)")
_MOST = re.compile(r"([A-Za-z][\w/-]{0,60}) \.{1,60}: ([\d.]{1,30})[ \t]*$")
_NAME = re.compile(r"^([A-Za-z][\w/-]{0,60}):[ \t]*$")
_RANK = re.compile(r"^rank[ \t]{1,8}\d{1,7}:[ \t]{0,8}([\d.]{1,30})[ \t]*$")

ACROSS = "across_ranks/"
"""What the names of these readings begin with."""


def across_ranks(lines: list[str]) -> Report | None:
    """The least and the most of each timer in a record's lines, in ms, at the worker's present iteration."""
    found: list[Reading | None] = []
    name, own = "", []
    for line in lines:
        if (both := _LEAST_AND_MOST.search(line)) is not None:
            found += _pair(both.group(1), both.group(2), both.group(3))
        elif (most := _MOST.search(line)) is not None:
            found.append(number(f"{ACROSS}{named(most.group(1))[0]}_max", most.group(2), "ms"))
        elif (rank := _RANK.search(line)) is not None:
            own.append(rank.group(1))
        else:
            found += _extremes(name, own)
            title = _NAME.search(line)
            name, own = title.group(1) if title else "", []
    found += _extremes(name, own)
    readings = kept(found)
    return Report(readings=readings, place="present") if readings else None


def _extremes(name: str, values: list[str]) -> list[Reading | None]:
    read = [one.value for raw in values if (one := number(name, raw)) is not None and one.value is not None]
    return _pair(name, str(min(read)), str(max(read))) if name and read else []


def _pair(name: str, least: str, most: str) -> list[Reading | None]:
    plain = f"{ACROSS}{named(name)[0]}"
    return [number(f"{plain}_min", least, "ms"), number(f"{plain}_max", most, "ms")]
