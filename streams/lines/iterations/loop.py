"""The line that a training loop of one's own prints: ``step 50: loss 1.2``, ``Iteration 50, loss = 1.2, lr = 1e-4``.

nanoGPT's is ``iter 100: loss 3.4567, time 123.45ms, mfu 12.34%``, and ``step 2000: train loss 1.76, val loss 1.89``
where it evaluates. A step that is counted within an epoch numbers no training, and what is said of a validation, of the
best step or of a checkpoint is no loss of this step, so those lines are left alone.
"""

from __future__ import annotations

import re

from streams.lines.iterations.reading import NUMBER, kept, named, number
from streams.lines.iterations.report import Report

_HEAD = re.compile(
    r"""
    (?:^ | [\]:][ \t]{0,16} | [)>|,\d-][ \t]{1,16} | \b(?:DEBUG|INFO|WARNING|WARN|ERROR)[ \t]{1,16})
    (?:[Ss]tep|STEP|[Ii]ter(?:ation)?)[ \t]{0,4}[:=#]?[ \t]{0,8}
    \[?(\d{1,12})(?:[ \t]{0,4}/[ \t]{0,4}(\d{1,12}))?(?![\w.])
    """,
    re.VERBOSE,
)
_ELSEWHERE = re.compile(r"epoch|valid|eval|\bval\b|test|best|checkpoint|sav(?:e|ing)|resum|load", re.IGNORECASE)
_PAIR = re.compile(
    rf"""
    [ \t\],;|:-]{{1,16}}([A-Za-z][\w/.-]{{0,60}}(?:[ ][A-Za-z][\w/]{{0,60}})?)
    (?:[ \t]{{0,4}}[:=][ \t]{{0,8}} | [ \t]{{1,8}})
    ({NUMBER})(?:[ \t]?(ms|s|%))?(?!\w)
    """,
    re.VERBOSE,
)


def loop(line: str) -> Report | None:
    """The numbers that follow the step one after another, if a loss is among them."""
    head = _head(line)
    if head is None:
        return None
    found = []
    at = head.end()
    while pair := _PAIR.match(line, at):
        name, raw, unit = pair.groups()
        found.append(number(named(name)[0], raw, unit or ""))
        at = pair.end()
    readings = kept(found)
    if not any(one.name.endswith("loss") for one in readings):
        return None
    return Report(readings=readings, iteration=int(head.group(1)), total=int(head.group(2)) if head.group(2) else None)


def step_of(line: str) -> int | None:
    """The step that such a line begins with, or null: of lines whose numbers are known to be measured at a step."""
    head = _head(line)
    return int(head.group(1)) if head else None


def _head(line: str) -> re.Match[str] | None:
    head = _HEAD.search(line)
    return None if head is None or _ELSEWHERE.search(line, 0, head.start()) else head
