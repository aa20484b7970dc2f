"""Numbers between bars: Megatron's and NeMo's iteration lines, Megatron's losses of validation, timers of many.

``iteration 1/ 4 | lm loss: 1.25E+01 | grad norm: 0.2 |``, ``time (ms) | forward: 35650.91 | backward: 3.1``,
``step 2 | compute: 132.4 ms | wait: 3 ms``, ``step 2 | fwd 287.4 ms | bwd 583.5 ms``, and ``lm loss=11.1 |`` of a fork.
"""

from __future__ import annotations

import re

from streams.lines.iterations.reading import NUMBER, kept, named, number
from streams.lines.iterations.report import Report

_FIELD = re.compile(
    rf"([A-Za-z][A-Za-z0-9 _/()-]{{0,60}}?)[ \t]{{0,8}}[:=][ \t]{{0,16}}({NUMBER})(?:[ \t]?(ms|s|%))?[ \t]*(?:\||$)"
)
_PLAIN = re.compile(
    rf"(?:^|\|)[ \t]{{0,8}}([A-Za-z][\w/-]{{0,60}})[ \t]{{1,8}}({NUMBER})[ \t]?(ms|s)(?=[ \t]{{0,8}}(?:\||$))"
)
"""Without a separator only what has a unit is a timer."""
_TOTAL = re.compile(r"iteration[ \t=:]{1,16}\d{1,12}/[ \t]*(\d{1,12})[ \t]*\|")
_OF_EPOCH = re.compile(r"epoch \d{1,9}, iteration")
_TIMERS = re.compile(r"(?:^|[\]:-][ \t]{0,8})time \((ms|s)\)[ \t]*\|")


def barred(line: str) -> Report | None:
    """The numbers behind the first bar; those of a line of timers belong to the worker's present iteration.

    NeMo numbers iterations within an epoch, so its second number is not the run's length.
    """
    timers = _TIMERS.search(line)
    base = timers.group(1) if timers else ""
    found = []
    fields = line.split("|", 1)[1]
    for name, raw, unit in (*_FIELD.findall(fields), *_PLAIN.findall(fields)):
        plain, inner = named(name)
        found.append(number(plain, raw, unit or inner or base))
    total = None if _OF_EPOCH.search(line) else _TOTAL.search(line)
    return Report(
        readings=kept(found), total=int(total.group(1)) if total else None, place="present" if timers else "printed"
    )
