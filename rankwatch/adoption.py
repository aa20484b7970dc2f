"""Which early notice becomes which incident: a notice is one alert with what follows it, and none stays unexplained.

What a notice tells of has stopped or failed. So only an incident that stands still or fails, is open and began near the
notice adopts it, never one that pages nobody; what proved to be part of another hands its notice on to that one.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeVar

import msgspec

from schemas.ids import attempt_name
from schemas.results import Incident, Notice
from streams.incidents.decision import Reason

SECOND = 1_000_000_000
FOLLOWS_NS = 180 * SECOND
"""How long after a notice an incident of its attempt may still be what it told of."""
NEAR_NS = 60 * SECOND
"""How far before or after a notice what it told of may have begun, or may have become what it is."""
REMEMBERED = 10_000
"""Attempts of which it is known what was said last, and incidents that are open."""

_STOPS = ("hang", "crash", "memory")
_GROWS = frozenset({Reason.MEMORY_GROWS.value, Reason.MEMORY_OF_ALL_GROWS.value, Reason.DEVICE_MEMORY_GROWS.value})

V = TypeVar("V")


class Word(Enum):
    """What to do with a notice."""

    NEW = "an alert of its own until an incident adopts it"
    WAITS = "the attempt has a notice already that waits for its incident"
    OPEN = "an incident is open that tells of it"


class Waiting(msgspec.Struct, frozen=True):
    """The notice that an attempt's alert began with, and the last one that came since."""

    notice: Notice
    last: int


class Standing(msgspec.Struct, frozen=True):
    """An open incident that stands still or fails, under which names it is found, and since when it is so severe."""

    incident: Incident
    names: tuple[str, ...]
    since: int


class Adoption:
    """Follows notices and incidents in the order of reading; time is event time throughout."""

    def __init__(self) -> None:
        self._waiting: dict[str, Waiting] = {}
        self._standing: dict[str, Standing] = {}
        self._named: dict[str, dict[str, None]] = {}
        self._adopted: dict[str, Notice] = {}

    def heard(self, notice: Notice) -> Word:
        """A notice came: the first of an attempt waits for its incident, further ones add nothing to it."""
        key = notice.notification_key
        waiting = self._waiting.get(key)
        if waiting is not None:
            self._waiting[key] = Waiting(waiting.notice, max(waiting.last, notice.time))
            return Word.WAITS
        if self.incident_of(notice) is not None:
            return Word.OPEN
        remember(self._waiting, key, Waiting(notice, notice.time))
        return Word.NEW

    def incident_of(self, notice: Notice) -> Incident | None:
        """The open incident that tells of what the notice does, or null."""
        names = (notice.notification_key, attempt_name(notice.job, notice.attempt))
        known = [self._standing[one] for name in names for one in self._named.get(name, ())]
        return next((one.incident for one in known if tells_of(one, notice)), None)

    def followed(self, incident: Incident) -> Notice | None:
        """An incident came: returns the notice that it adopts, now or with an earlier revision."""
        standing = self._stand(incident)
        adopted = self._adopted.get(incident.id)
        if adopted is None and _of_a_stop(incident) and (stops(incident) or incident.merged_into):
            found = [key for key, one in self._waiting.items() if adopts(standing, one.notice, incident)]
            notices = [self._waiting.pop(key).notice for key in found]
            adopted = min(notices, key=lambda one: (one.time, one.id), default=None)
        if adopted is not None and incident.merged_into:
            self._adopted.pop(incident.id, None)
            if incident.merged_into not in self._adopted:
                remember(self._adopted, incident.merged_into, adopted)
            return None
        if adopted is not None:
            remember(self._adopted, incident.id, adopted)
        return adopted

    def passed(self, time: int) -> list[Notice]:
        """Windows are closed up to ``time`` (ns): returns the notices that nothing followed; they are forgotten."""
        over = [key for key, one in self._waiting.items() if one.last + FOLLOWS_NS <= time]
        return [self._waiting.pop(key).notice for key in over]

    def _stand(self, incident: Incident) -> Standing:
        """Take a revision in; returns how the incident stands with it, also where it does not."""
        before = self._forget(incident.id)
        same = before is not None and before.incident.severity == incident.severity
        since = before.since if before is not None and same else incident.published
        standing = Standing(incident, names_of(incident), since)
        if incident.status == "open" and stops(incident):
            self._standing[incident.id] = standing
            for name in standing.names:
                self._named.setdefault(name, {})[incident.id] = None
            if len(self._standing) > REMEMBERED:
                self._forget(next(iter(self._standing)))
        return standing

    def _forget(self, incident: str) -> Standing | None:
        standing = self._standing.pop(incident, None)
        for name in standing.names if standing is not None else ():
            self._named[name].pop(incident, None)
            if not self._named[name]:
                del self._named[name]
        return standing


def stops(incident: Incident) -> bool:
    """Whether it is of a standstill or a failure and pages somebody."""
    return _of_a_stop(incident) and incident.severity != "info" and not incident.merged_into


def _of_a_stop(incident: Incident) -> bool:
    """Memory that only grows has stopped nothing yet."""
    return incident.symptom in _STOPS and incident.reason not in _GROWS


def tells_of(standing: Standing, notice: Notice) -> bool:
    """Whether an open incident already tells of what a notice does.

    While a job stands still or has failed, what its ranks print is of that, however late: watchdogs wait for long. What
    the job may live through, a warning, tells only of what is near it.
    """
    begun = min(standing.incident.onset, standing.since)
    if notice.time < begun - FOLLOWS_NS:
        return False
    near = notice.time <= max(standing.incident.onset, standing.since) + FOLLOWS_NS
    return standing.incident.severity == "critical" or near


def adopts(standing: Standing, notice: Notice, incident: Incident) -> bool:
    """Whether a revision is what a waiting notice told of.

    An attempt that fails as the one before it did keeps that one's key, and what a node says may not know the attempt:
    then the job and the time decide, for what is still open.
    """
    onset = abs(incident.onset - notice.time) <= NEAR_NS
    if not onset and not notice.time - NEAR_NS <= standing.since <= notice.time + FOLLOWS_NS + NEAR_NS:
        return False
    names = (notice.notification_key, attempt_name(notice.job, notice.attempt))
    if any(name in standing.names for name in names):
        return True
    return notice.job == incident.job and incident.status == "open" and incident.onset <= notice.time + NEAR_NS


def names_of(incident: Incident) -> tuple[str, ...]:
    """Under what notices know it: the key of its alert, where it has one, and its attempt, whatever the group."""
    names = (incident.notification_key, attempt_name(incident.job, incident.attempt.rpartition("/")[2]))
    return tuple(name for name in names if name)


def remember(known: dict[str, V], name: str, value: V) -> None:
    """Put it last; what was put longest ago is forgotten where there is too much."""
    known.pop(name, None)
    known[name] = value
    if len(known) > REMEMBERED:
        del known[next(iter(known))]
