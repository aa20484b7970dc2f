"""Which early notice becomes which incident: a notice is one alert with what follows it, and none stays unexplained."""

from __future__ import annotations

from enum import Enum
from typing import TypeVar

import msgspec

from schemas.results import Incident, Notice

SECOND = 1_000_000_000
FOLLOWS_NS = 180 * SECOND
"""How long after a notice an incident of its attempt may still be what it told of."""
NEAR_NS = 60 * SECOND
"""How far from an incident a notice of its job may lie whose attempt is not known for certain."""
REMEMBERED = 10_000
"""Attempts of which it is known what was said last."""


V = TypeVar("V")


class Word(Enum):
    """What to do with a notice."""

    NEW = "an alert of its own until an incident adopts it"
    KNOWN = "the attempt has a notice that waits, or an incident that is open"


class Waiting(msgspec.Struct, frozen=True):
    """The notice that an attempt's alert began with, and the last one that came since."""

    notice: Notice
    last: int


class Adoption:
    """Follows notices and incidents in the order of reading; time is event time throughout."""

    def __init__(self) -> None:
        self._waiting: dict[str, Waiting] = {}
        self._open: dict[str, dict[str, Incident]] = {}
        self._adopted: dict[str, Notice] = {}

    def heard(self, notice: Notice) -> Word:
        """A notice came: the first of an attempt waits for its incident, further ones add nothing to it."""
        key = notice.notification_key
        waiting = self._waiting.get(key)
        if waiting is not None:
            self._waiting[key] = Waiting(waiting.notice, max(waiting.last, notice.time))
            return Word.KNOWN
        if self.incident_of(notice) is not None:
            return Word.KNOWN
        remember(self._waiting, key, Waiting(notice, notice.time))
        return Word.NEW

    def incident_of(self, notice: Notice) -> Incident | None:
        """The incident that is open and has the notice's alert, or null."""
        known = self._open.get(notice.notification_key) or self._open.get(_attempt(notice.job, notice.attempt)) or {}
        return next(iter(known.values()), None)

    def followed(self, incident: Incident) -> Notice | None:
        """An incident came: returns the notice that it adopts, now or with an earlier revision."""
        names = (incident.notification_key, _attempt(incident.job, incident.attempt.rpartition("/")[2]))
        keys = [name for name in names if name]
        for key in keys:
            known = self._open.pop(key, {})
            known.pop(incident.id, None)
            if incident.status == "open":
                known[incident.id] = incident
            if known:
                remember(self._open, key, known)
        if incident.id in self._adopted:
            return self._adopted[incident.id]
        found = [key for key, one in self._waiting.items() if key in keys or _told_of(one.notice, incident, keys)]
        notices = [self._waiting.pop(key).notice for key in found]
        adopted = min(notices, key=lambda one: one.time, default=None)
        if adopted is not None:
            remember(self._adopted, incident.id, adopted)
        return adopted

    def passed(self, time: int) -> list[Notice]:
        """Windows are closed up to ``time`` (ns): returns the notices that nothing followed; they are forgotten."""
        over = [key for key, one in self._waiting.items() if one.last + FOLLOWS_NS <= time]
        return [self._waiting.pop(key).notice for key in over]


def _told_of(notice: Notice, incident: Incident, keys: list[str]) -> bool:
    """Whether a notice under another key told of this incident.

    An attempt that fails as the one before it did keeps that one's key, and what a node says may not know the attempt.
    """
    if _attempt(notice.job, notice.attempt) in keys:
        return True
    near = incident.onset - NEAR_NS <= notice.time <= incident.published + NEAR_NS
    return notice.job == incident.job and near


def _attempt(job: str, attempt: str) -> str:
    return f"{len(job)}:{job}|{attempt}"


def remember(known: dict[str, V], name: str, value: V) -> None:
    """Put it last; what was put longest ago is forgotten where there is too much."""
    known.pop(name, None)
    known[name] = value
    if len(known) > REMEMBERED:
        del known[next(iter(known))]
