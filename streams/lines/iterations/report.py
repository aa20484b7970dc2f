"""What an iteration line says: where the run stands, and the numbers measured there."""

from __future__ import annotations

from typing import Literal

import msgspec

from streams.lines.iterations.reading import Reading

Place = Literal["printed", "next", "present"]
"""Which iteration the readings belong to: the one that the line prints; that behind the worker's latest, for reports
that number nothing; or the worker's latest itself."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """An iteration line. ``iteration`` and ``total`` (of the run) are null where the line tells neither."""

    readings: list[Reading] = []
    iteration: int | None = None
    total: int | None = None
    place: Place = "printed"
