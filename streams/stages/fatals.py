"""The fatal lines of a worker in one window, so many that its summary stays one record however a flood is printed."""

from __future__ import annotations

from collections import Counter

from schemas.results import Fatal

MOST_FATALS = 1_024
MOST_ALIKE = 32
"""Of one signature, device and process: a GPU that is gone can fill the ring buffer with one and the same line."""


class Fatals:
    """Those ``kept``, in order of their lines; ``left_out`` are like others that are, or come behind very many."""

    def __init__(self) -> None:
        self.kept: list[Fatal] = []
        self.left_out = 0
        self._alike: Counter[tuple[str, ...]] = Counter()

    def add(self, fatal: Fatal) -> None:
        """Keep it, or count it where there is no room."""
        kind = (fatal.signature, fatal.process_type, fatal.values.get("pci", ""), fatal.values.get("pid", ""))
        if len(self.kept) >= MOST_FATALS or self._alike[kind] >= MOST_ALIKE:
            self.left_out += 1
            return
        self._alike[kind] += 1
        self.kept.append(fatal)
