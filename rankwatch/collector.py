"""How often Python looks for garbage that refers to itself: seldom, since records hold none and are very many."""

from __future__ import annotations

import gc

NEW, YOUNG, OLD = 50_000, 100, 100
"""So many new containers before the newest are looked at, so many such looks before the younger ones are, and so many
of those before all are. By default all are looked at several times in each window of a large job."""


def collect_seldom() -> None:
    """For the whole process."""
    gc.set_threshold(NEW, YOUNG, OLD)
