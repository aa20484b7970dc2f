"""What both ends agree that a line says."""

from __future__ import annotations

import re

LONGEST = 400
"""Characters of a line that are looked at; no pattern has a nested quantifier."""

_ITERATION = re.compile(
    r"(?<![A-Za-z0-9_])(?:iteration|global_step|step)(?:[ \t]+|[\"']?[ \t]{0,8}[:=][ \t]{0,8})(\d{1,12})(?![\d.])"
)
_WITHIN_EPOCH = re.compile(r"epoch \d{1,9}, iteration \d{1,12}/\d{1,12} \|.{0,300}?\| global_step: (\d{1,12})(?![\d.])")
_BAR = re.compile(r"Epoch[ ]\d{1,9}(?:/\d{1,9})?:[ ]{1,4}\d{1,3}%\|[^|]{0,300}\|[ ]{0,8}(\d{1,12})/\d{1,12} \[")
_VALIDATION = re.compile(r"Validation: iteration \d{1,12}/\d{1,12}")
_COLOUR = re.compile(r"\x1b\[[0-9;]{0,16}m")


def iteration_of(text: str) -> int | None:
    """The iteration that a line speaks of (``iteration  12/ 100``, ``step 12``, ``global_step=12``), or null.

    NeMo's count of a validation's batches is none; where it counts within an epoch, its global step is the one. The
    progress bar of an epoch (Lightning) counts batches; another bar counts anything.
    """
    head = text[:LONGEST]
    if "\x1b" in head:
        head = _COLOUR.sub("", head)
    if "poch " in head:
        found = _WITHIN_EPOCH.search(head) or _BAR.search(head)
        if found:
            return int(found.group(1))
    if "Validation: " in head and _VALIDATION.search(head):
        return None
    found = _ITERATION.search(head)
    return int(found.group(1)) if found else None
