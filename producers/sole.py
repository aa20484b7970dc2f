"""The only one of what several sources tell, which is how most of them prove anything here."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar

T = TypeVar("T")


def sole(found: Collection[T]) -> T | None:
    """The only one, null where there is none or where there are several."""
    return next(iter(found)) if len(found) == 1 else None
