"""What goes on is told once, and again after a while: when each thing was last told, bounded."""

from __future__ import annotations

MOST_TOLD = 4_096
"""The oldest are forgotten beyond it: then they may be told once more."""


def is_due(told: dict[str, int], key: str, time: int, again_s: float) -> bool:
    """Whether it is to be told at ``time`` (ns), which is noted then; ``told`` is when each was last told."""
    before = told.get(key)
    if before is not None and time - before < again_s * 1e9:
        return False
    told[key] = time
    return True


def forget_oldest(told: dict[str, int]) -> None:
    """Leave no more than there is room for."""
    for key in sorted(told, key=lambda one: (told[one], one))[: max(len(told) - MOST_TOLD, 0)]:
        del told[key]
