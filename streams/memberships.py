"""Of which incident of several jobs each incident of a job is part, by what the former say of their members.

Incidents of jobs are not written again for it: whoever reads both joins them.
"""

from __future__ import annotations

from collections.abc import Iterable

from schemas.results import Incident

REMEMBERED = 100_000
"""Members of which it is known; the oldest are forgotten beyond it."""

Key = tuple[str, str]
"""Job and incident."""


class Memberships:
    """Takes revisions in the order in which they are read; of each incident the newest counts."""

    def __init__(self) -> None:
        self._whole: dict[Key, str] = {}
        self._members: dict[str, tuple[int, list[Key]]] = {}

    def take(self, incident: Incident) -> list[Key]:
        """Take in a revision; returns the members that it has and that were not known to be its."""
        revision, before = self._members.get(incident.id, (0, []))
        if revision >= incident.revision or not (before or incident.members):
            return []
        members = [(one.job, one.incident) for one in incident.members]
        for key in before:
            if self._whole.get(key) == incident.id:
                del self._whole[key]
        self._whole |= dict.fromkeys(members, incident.id)
        self._members.pop(incident.id, None)
        self._members[incident.id] = (incident.revision, members)
        self._bound()
        known = set(before)
        return [key for key in members if key not in known]

    def of(self, incident: Incident) -> str:
        """The id of the incident of several jobs that it is part of; empty where there is none."""
        return self._whole.get((incident.job, incident.id), "")

    def _bound(self) -> None:
        while len(self._whole) > REMEMBERED and len(self._members) > 1:
            oldest = next(iter(self._members))
            for key in self._members.pop(oldest)[1]:
                if self._whole.get(key) == oldest:
                    del self._whole[key]


def memberships(incidents: Iterable[Incident]) -> Memberships:
    """Those of these incidents, whatever their order: of two that have one member that published last counts."""
    found = Memberships()
    for incident in sorted(incidents, key=lambda one: (one.published, one.id, one.revision)):
        found.take(incident)
    return found
