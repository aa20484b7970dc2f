"""A step's timers in one line, as many scripts print them: ``step 37 timers (ms): data 11.5 forward 127.0``."""

from __future__ import annotations

import re

from streams.lines.iterations.reading import NUMBER, kept, named, number
from streams.lines.iterations.report import Report

_TIMERS = re.compile(r"\bstep[ \t]+\d{1,12}[ \t]+timers[ \t]+\((ms|s)\):[ \t]*(.{1,2000})$")
_PAIR = re.compile(rf"([A-Za-z][\w/-]{{0,60}})[ \t]+({NUMBER})(?=[ \t]|$)")


def timers(line: str) -> Report | None:
    """The timers of the line's step."""
    found = _TIMERS.search(line)
    if found is None:
        return None
    pairs = _PAIR.findall(found.group(2))
    return Report(readings=kept([number(named(name)[0], raw, found.group(1)) for name, raw in pairs]))
