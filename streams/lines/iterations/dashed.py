"""Pairs between dashes: verl's line, ``step:34 - actor/pg_loss:-0.003 - timing_s/step:96.551``."""

from __future__ import annotations

import re

from streams.lines.iterations.reading import NUMBER, kept, named, number
from streams.lines.iterations.report import Report

_PAIR = re.compile(rf"(?:^|[ \t]-[ \t])([A-Za-z][\w/.@-]{{0,120}}):(?:np\.float\d{{1,3}}\()?({NUMBER})(?![\w.])")


def dashed(line: str) -> Report | None:
    """The pairs of the line."""
    return Report(readings=kept([number(named(name)[0], raw) for name, raw in _PAIR.findall(line)]))
