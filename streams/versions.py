"""The versions that results depend on: ours, and those of the libraries whose decisions may move between releases."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version

LIBRARIES = ("rankwatch", "river", "drain3", "numpy")


@cache
def versions() -> dict[str, str]:
    """Versions by distribution; one that is not installed as a distribution is ``unknown``."""
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found
