"""Whether a worker still gets on: asked from outside its event loop, which may be what stands still."""

from __future__ import annotations

from enum import Enum

from streams.runner import Place


class Health(Enum):
    """What a look at the vitals says."""

    OK = "ok"
    NO_PROGRESS = "there is something to read and nothing was taken in"
    LOOP_STANDS = "the event loop stands still"
    REBALANCE_STANDS = "the group does not come to rest"


class Vitals:
    """Written by the event loop: ``beats`` count its signs of life, ``taken`` the entries that went through.

    ``lags`` are entries not yet taken in, ``busy`` says that the group is being rearranged, ``excused`` that something
    outside is waited for.
    """

    def __init__(self) -> None:
        self.beats = 0
        self.taken = 0
        self.lags: dict[Place, int] = {}
        self.busy = False
        self.excused = False


class Watchdog:
    """Compares one look with the next; ``now`` is any clock in seconds that only goes forward.

    ``patience_s``: how long something may stand still before the worker is given up. ``doubt_s`` before it is called
    unhealthy.
    """

    def __init__(self, vitals: Vitals, *, patience_s: float = 300.0, now: float) -> None:
        self._vitals = vitals
        self.patience_s = patience_s
        self.doubt_s = patience_s / 2
        self._beats, self._taken = vitals.beats, vitals.taken
        self._beat_at = self._moved_at = now

    def look(self, now: float) -> tuple[Health, float]:
        """What stands still, and for how many seconds; OK and 0 if nothing does."""
        vitals = self._vitals
        if vitals.beats != self._beats:
            self._beats, self._beat_at = vitals.beats, now
        waiting = not vitals.excused and (vitals.busy or any(vitals.lags.values()))
        if vitals.taken != self._taken or not waiting:
            self._taken, self._moved_at = vitals.taken, now
        if now - self._beat_at > self.doubt_s:
            return Health.LOOP_STANDS, now - self._beat_at
        if now - self._moved_at > self.doubt_s:
            return Health.REBALANCE_STANDS if vitals.busy else Health.NO_PROGRESS, now - self._moved_at
        return Health.OK, 0.0

    def lost(self, now: float) -> Health | None:
        """What stands still for longer than patience lasts, or null."""
        health, seconds = self.look(now)
        return health if seconds > self.patience_s else None
