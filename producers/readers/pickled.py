"""Reads pickles that came from somebody else's process: plain values only, nothing of them is ever called.

Python's own unpickler in Python is used, not the one in C: that reserves memory for whatever place a pickle names.
"""

from __future__ import annotations

import io
import pickle  # noqa: TID251 - every class is refused
from pathlib import Path
from typing import Any

HEADS = tuple(bytes((0x80, protocol)) for protocol in range(2, 6))
"""How pickles of the protocols 2 to 5 begin."""


class _PlainUnpickler(pickle._Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"it names {module[:40]}.{name[:40]}, and only plain values are read")


def is_pickle(path: Path) -> bool:
    """Whether a file begins like a pickle. Raises OSError."""
    with path.open("rb") as file:
        return file.read(2) in HEADS


def load(raw: bytes) -> Any:
    """The value of a pickle of dicts, lists, tuples, texts and numbers. Raises ValueError with the reason."""
    try:
        return _PlainUnpickler(io.BytesIO(raw)).load()
    except pickle.UnpicklingError as error:
        raise ValueError(f"invalid pickle: {str(error)[:200]}") from None
    except Exception as error:  # Truncated or damaged ones raise nearly anything.
        raise ValueError(f"invalid pickle: {type(error).__name__}") from None
