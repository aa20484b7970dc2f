"""Dicts as Python prints them: Hugging Face's reports, and OpenRLHF's behind ``Global step 12:``.

``{'loss': 2.345, 'grad_norm': 0.83, 'epoch': 0.1}``, with the numbers in quotes since version 5, and the same as JSON.
They are read by a pattern and never evaluated.

Hugging Face prints no step. Where its progress bar was glued in front, the bar tells it; otherwise each report of a
loss counts as one more than the last iteration known, and what it says of an evaluation or of the whole run belongs to
the present one.
"""

from __future__ import annotations

import re

from streams.lines.iterations.reading import NUMBER, kept, named, number, timed
from streams.lines.iterations.report import Report

_HEAD = re.compile(
    r"""
      ^(?:\d{1,3}%\|[^|]{0,400}\|[ ]{0,8}(\d{1,12})/(\d{1,12})[ ]\[[^\]]{0,100}\][ \t]{0,400})?\{["']
    | \b(?:step|iteration|global_step)[ :=]{1,3}\d{1,12}(?:/\d{1,12})?[:,]?[ ]{1,4}\{["']
    """,
    re.VERBOSE | re.IGNORECASE,
)
_PAIR = re.compile(rf"""["']([A-Za-z][\w/.@ -]{{0,120}})["']:[ ]?["']?({NUMBER})["']?(?=[,}}\]]|$)""")


def printed_dict(line: str) -> Report | None:
    """The pairs of a dict that begins the line or stands behind its step."""
    head = _HEAD.search(line)
    if head is None:
        return None
    pairs = {named(name)[0]: raw for name, raw in _PAIR.findall(line, head.end() - 1)}
    readings = kept([number(timed(name)[0], raw, timed(name)[1]) for name, raw in pairs.items()])
    if "epoch" not in pairs:
        return Report(readings=readings)
    if "loss" not in pairs:
        return Report(readings=readings, place="present")
    if head.group(1) is None:
        return Report(readings=readings, place="next")
    return Report(readings=readings, iteration=int(head.group(1)), total=int(head.group(2)))
