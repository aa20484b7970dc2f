"""Checks that configurations share; each raises where a value is set, not where it is used."""

from __future__ import annotations

import msgspec


def require(config: msgspec.Struct, *, above_0: tuple[str, ...] = (), shares: tuple[str, ...] = ()) -> None:
    """Check a config's fields. Raises ValueError naming the first that is not above 0, or no share (0 to 1)."""
    for name in above_0:
        if not getattr(config, name) > 0:
            raise ValueError(f"{name} must be above 0, not {getattr(config, name)}")
    for name in shares:
        if not 0 <= getattr(config, name) <= 1:
            raise ValueError(f"{name} must lie between 0 and 1, not {getattr(config, name)}")
