"""What the operator is told of an outage: once when it begins, now and then while it lasts, once when it is over."""

from __future__ import annotations

from datetime import UTC, datetime

FIRST_REMINDER_S = 60.0
MOST_REMINDER_S = 1_800.0
"""Reminders come after pauses that double, up to this."""


class Outage:
    """Told again and again whether the cluster at ``address`` answers; returns the line to print, mostly none ("").

    Times are Unix seconds of any clock, which may be set back.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._since: float | None = None
        self._reason = ""
        self._reminded = 0.0
        self._pause_s = FIRST_REMINDER_S

    @property
    def is_on(self) -> bool:
        """Whether the cluster is away; from any thread."""
        return self._since is not None

    def away(self, now: float, reason: str = "") -> str:
        """The cluster does not answer; ``reason`` is why, where that is more than that nobody is there."""
        what = reason or f"Kafka at {self._address} is away"
        if self._since is None or bool(reason) != bool(self._reason):
            self._since = now if self._since is None else self._since
            self._reason, self._reminded, self._pause_s = reason, now, FIRST_REMINDER_S
            return f"{what}{';' if reason else ''} since {_clock(self._since)}: waiting"
        self._since, self._reminded = min(self._since, now), min(self._reminded, now)
        if now - self._reminded < self._pause_s:
            return ""
        self._reminded, self._pause_s = now, min(self._pause_s * 2, MOST_REMINDER_S)
        return f"{what}, for {_lasting(now - self._since)} now: waiting"

    def back(self, now: float) -> str:
        """The cluster answers."""
        if self._since is None:
            return ""
        lasted, self._since, self._reason = max(now - self._since, 0.0), None, ""
        return f"Kafka is back after {_lasting(lasted)}"


def _clock(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).strftime("%H:%M:%SZ")


def _lasting(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
