"""What both ends agree that a line says."""

from __future__ import annotations

import re

_ITERATION = re.compile(
    r"(?<![A-Za-z0-9_])(?:iteration|global_step|step)(?:[ \t]+|[ \t]{0,8}[:=][ \t]{0,8})(\d{1,12})(?![\d.])"
)


def iteration_of(text: str) -> int | None:
    """The iteration that a line speaks of (``iteration  12/ 100``, ``step 12``, ``global_step=12``), or null.

    Only the first 400 characters are looked at; the pattern has no nested quantifier.
    """
    found = _ITERATION.search(text, 0, 400)
    return int(found.group(1)) if found else None
