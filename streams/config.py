"""Settings of the stages: frozen, validated once, units in the names."""

from __future__ import annotations

from typing import Any

import msgspec

from schemas.ids import stable_id
from streams.checks import require
from streams.lines.signature import MASKS_ID

SECOND = 1_000_000_000


class StreamConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How time is cut and what is kept.

    ``lateness_s``: how long after a window's end its events may still stand in their partition.
    ``skew_s``: how far an event may lie ahead of its partition's ticks before it is re-timed.
    ``remembered_windows``: for how many closed windows batches are known again when sent twice.
    ``detectors``: parameters by detector name, as in its config.
    ``idle_windows``: after how many windows without a sign of life an attempt is forgotten. Where there are but logs, a
    hang is silent until the watchdogs speak, after ten minutes by default.
    """

    window_s: float = 10.0
    lateness_s: float = 2.0
    skew_s: float = 60.0
    remembered_windows: int = 30
    idle_windows: int = 75
    signatures_per_window: int = 2000
    templates_per_job: int = 1000
    detectors: dict[str, dict[str, Any]] = {}

    def __post_init__(self) -> None:
        counts = ("remembered_windows", "idle_windows", "signatures_per_window", "templates_per_job")
        require(self, above_0=("skew_s", *counts))
        if not 0.001 <= self.window_s <= 86_400:
            raise ValueError(f"window_s must lie between 0.001 and 86400, not {self.window_s}")
        if not 0 <= self.lateness_s <= 86_400:
            raise ValueError(f"lateness_s must lie between 0 and 86400, not {self.lateness_s}")

    @property
    def window_ns(self) -> int:
        """Length of a window in nanoseconds."""
        return int(self.window_s * SECOND)

    @property
    def lateness_ns(self) -> int:
        """Allowed lateness in nanoseconds."""
        return int(self.lateness_s * SECOND)

    @property
    def skew_ns(self) -> int:
        """Skew bound in nanoseconds."""
        return int(self.skew_s * SECOND)

    @property
    def closing_ns(self) -> int:
        """How far ticks must go past the last event to close its window."""
        return self.window_ns + self.lateness_ns

    @property
    def settling_ns(self) -> int:
        """How far ticks must go past the last event of a recording: what its last window leaves open is decided in the
        next, as what others printed at about that time may lie there.
        """
        return self.closing_ns + self.window_ns

    @property
    def forgetting_ns(self) -> int:
        """How long after the last arrival every job is forgotten and all is said.

        Events may lie ahead by the skew bound; then come the windows without a sign of life, and one that is begun.
        """
        return self.skew_ns + (self.idle_windows + 2) * self.window_ns + self.closing_ns

    @property
    def state_hash(self) -> str:
        """Names this configuration and the masks in what the stages write down of themselves."""
        return stable_id(self.hash, MASKS_ID)

    @property
    def hash(self) -> str:
        """Names this configuration in the ids of results."""
        return stable_id(msgspec.json.encode(self, order="deterministic").decode())
