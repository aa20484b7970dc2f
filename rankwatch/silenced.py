"""Silences where people read: which incidents page nobody, and how that is said in reports and in the feed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rich.text import Text

from schemas.identity import NO_JOB
from schemas.ports import Entry
from schemas.results import Incident, Notice
from schemas.silences import Silence
from streams.report import moment
from streams.silencing import Labels, SilenceReason, judged, kept, labels_of, silence_of, silenced_with

REMEMBERED = 10_000
"""Silenced incidents that are shown once their silence is over, and those of which it is known what silences them."""


def silences_at(incidents: Iterable[Incident], silences: Sequence[Silence], ended: int) -> dict[str, Silence]:
    """By incident the silence that holds: at a run's end (ns) for those still open, else when they were resolved."""
    found, incidents = {}, list(incidents)
    members = {(one.job, one.id): labels_of(one) for one in incidents if one.job != NO_JOB} if silences else {}
    for incident in incidents:
        at = max(incident.published, ended) if incident.status == "open" else incident.published
        silence = silenced_with(incident, members, silences, at).silence
        if silence is not None:
            found[incident.id] = silence
    return found


def said(silence: Silence) -> str:
    """``silenced until 2026-11-29T14:00:00.000Z by maria (3f9c2a7715d0be44 1): new firmware``."""
    comment = f": {silence.comment}" if silence.comment else ""
    return f"silenced until {moment(silence.ends)} by {silence.created_by} ({silence.label}){comment}"


def silence_facts(silence: Silence | None) -> list[tuple[str, str]]:
    """What a report says of the silence that holds for an incident: label and words."""
    return [("silenced", said(silence).removeprefix("silenced "))] if silence else []


def silence_json(silence: Silence | None) -> dict[str, Any] | None:
    """What reports say of the silence of an incident; null where none holds."""
    if silence is None:
        return None
    plain = {name: getattr(silence, name) for name in ("id", "number", "comment", "kind")}
    return {**plain, "until": moment(silence.ends), "by": silence.created_by}


class SilencedFeed:
    """Which revisions of a feed are silenced now, and which incidents have to be shown since that is over.

    ``clock`` tells the time of the deployment's ticks (ns): the workers' clock, or else the latest publication.
    """

    def __init__(self, stored: Iterable[Silence], clock: Callable[[], int] | None) -> None:
        self._silences = kept(stored)
        self._clock = clock
        self._latest = 0
        self._hidden: dict[str, Incident] = {}
        self._members: dict[tuple[str, str], Labels] = {}

    def take(self, entries: Iterable[Entry]) -> list[str]:
        """Take in what the topic of silences brings; returns why some of it was none."""
        read = [silence_of(entry) for entry in entries]
        if read:
            self._silences = kept([*self._silences, *(one for one in read if isinstance(one, Silence))])
        return [one for one in read if isinstance(one, str)]

    def of(self, incident: Incident) -> Silence | None:
        """The silence that holds for a newer revision, or null; an open one that is silenced is kept in mind."""
        self._latest = max(self._latest, incident.published)
        self._hidden.pop(incident.id, None)
        # A silence that has just begun also holds for the window that closed before it.
        self._note(incident)
        times = (incident.published, self._now())
        found = [self._held(incident, at) for at in times]
        silence = found[0] or found[1]
        if silence is not None and incident.status == "open":
            self._hidden[incident.id] = incident
            if len(self._hidden) > REMEMBERED:
                del self._hidden[next(iter(self._hidden))]
        return silence

    def of_notice(self, notice: Notice) -> Silence | None:
        """The silence that holds for all that its attempt may have, hangs apart: those show as incidents."""
        self._latest = max(self._latest, notice.time)
        labels = {"job": (notice.job,), "attempt": (notice.attempt,)}
        holding = [one for one in self._silences if judged(one, labels, self._now()) is SilenceReason.SILENCED]
        return max(holding, key=lambda one: (one.ends, one.id), default=None)

    def over(self) -> list[Incident]:
        """Incidents that are open still and no longer silenced, each once, in order of publication."""
        if not self._hidden:
            return []
        now = self._now()
        shown = [one for one in self._hidden.values() if self._held(one, now) is None]
        for incident in shown:
            del self._hidden[incident.id]
        return sorted(shown, key=lambda one: (one.published, one.id))

    def _note(self, incident: Incident) -> None:
        """Keep by what it can be silenced, for those of several jobs of which it is part."""
        key = (incident.job, incident.id)
        self._members.pop(key, None)
        self._members[key] = labels_of(incident)
        if len(self._members) > REMEMBERED:
            del self._members[next(iter(self._members))]

    def _held(self, incident: Incident, at: int) -> Silence | None:
        return silenced_with(incident, self._members, self._silences, at).silence

    def _now(self) -> int:
        return self._latest if self._clock is None else max(self._clock(), 0)


def dimmed(line: Text, silence: Silence) -> Text:
    """A line of the feed for what pages nobody."""
    shown = Text(line.plain, style="dim")
    shown.append("  [" + "".join(char if char.isprintable() else " " for char in said(silence)) + "]")
    return shown
