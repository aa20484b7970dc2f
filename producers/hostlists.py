"""Lists of nodes as Slurm writes them: ``node[01-03,7],gpu5``."""

from __future__ import annotations

import re
from collections.abc import Iterator

MOST_NODES = 16_384
"""Of one list; a typing error must not name millions."""
_PART = re.compile(r"([^\[\],]{1,253})(?:\[([\d,-]{1,4096})\]([^\[\],]{0,253}))?(?:,|$)")


def nodes_of(text: str, most: int = MOST_NODES) -> list[str]:
    """The nodes of a list, in its order, no more than ``most``; those before what cannot be read."""
    found: list[str] = []
    at = 0
    while at < len(text) and (part := _PART.match(text, at)) is not None:
        at = part.end()
        name, numbers, behind = part.groups()
        if numbers is None:
            found.append(name)
            continue
        for number in _numbers(numbers, most - len(found)):
            found.append(f"{name}{number}{behind}")
    return found[:most]


def _numbers(text: str, most: int) -> Iterator[str]:
    """The numbers of a bracket as they are written: ``01-03,7`` are 01, 02, 03 and 7."""
    left = most
    for part in text.split(","):
        first, _, last = part.partition("-")
        end = last or first
        if not (first.isdecimal() and end.isdecimal() and len(first) <= 9 and len(end) <= 9):
            return
        for number in range(int(first), min(int(end), int(first) + left - 1) + 1):
            yield str(number).zfill(len(first))
            left -= 1
