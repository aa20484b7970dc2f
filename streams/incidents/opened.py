"""An incident that is open, or was of late, and what an attempt keeps of its incidents from window to window."""

from __future__ import annotations

import msgspec

from schemas.results import Anomaly, Incident
from streams.incidents.stacks_seen import StacksSeen
from streams.regular_lines import Regular

KEPT_ANOMALIES = 60
KEPT_TAKEN = 20
KEPT_SUPPORT = 20
ERRORS = frozenset({"own_error", "rank_fault", "node_fault", "unplaced_error", "unplaced_besides"})
"""Grounds of lines that say of themselves that something has failed."""


class Open(msgspec.Struct, kw_only=True):
    """An incident's anomalies and its latest revision. The first anomaly is kept for good: it is the id.

    ``support`` are findings of supporting detectors from shortly before it on, of whatever family; ``stacks`` is what
    stacks said first and of late; ``repeated`` when those whom it suspects last printed what they had printed before,
    ``told`` the end of the window in which they last said how long their own work takes. ``quiet`` counts the windows
    since it last showed, ``lull`` is for how long it once did not and was not over (ns), ``flaps`` how often it was
    over and showed again. ``passed``: the job has gone on for a while after all of it. ``reasons`` are all that blame
    has given. ``merged`` is the incident that it proved to be part of, ``outside`` that of another group of workers.
    ``beside`` is the first finding of the standstill in which it was found to be another fault, ``second`` are those of
    its own findings that have an incident beside it. ``took`` are findings of those that proved to be part of this one,
    ``began`` the onset that it has from them (ns), null where it has its own.
    """

    first: str
    family: str
    anomalies: list[Anomaly]
    support: list[Anomaly] = []
    stacks: list[StacksSeen] = []
    repeated: dict[int, int] = {}
    told: dict[int, int] = {}
    latest: Incident | None = None
    quiet: int = 0
    lull: int = 0
    flaps: int = 0
    passed: bool = False
    reasons: list[str] = []
    merged: str = ""
    outside: str = ""
    beside: str = ""
    second: list[str] = []
    took: list[Anomaly] = []
    began: int | None = None

    @property
    def shown(self) -> int:
        """The end of the window in which it last showed (ns); information alone shows nothing."""
        return max((one.end for one in self.anomalies if one.severity != "info"), default=self.anomalies[0].end)

    @property
    def errors(self) -> list[str]:
        """Signatures of what those printed whom blame names, or else of all errors that it found."""
        found = [one for one in self.anomalies if one.grounds in ERRORS and one.severity != "info"]
        named = {one.rank for one in self.latest.suspects} if self.latest is not None else set()
        theirs = [one for one in found if named & {suspect.rank for suspect in one.suspects}]
        return sorted({signature for one in theirs or found for signature in one.templates})

    def join(self, anomalies: list[Anomaly]) -> None:
        """Take in what was found."""
        self.anomalies = trimmed([*self.anomalies, *anomalies], KEPT_ANOMALIES)


class IncidentBookState(msgspec.Struct, kw_only=True):
    """Open incidents, in the order in which they began, and information that none has taken up yet.

    ``support`` are the latest findings of supporting detectors, for an incident to come; ``hardware`` are changes of
    hardware, which may be some minutes older than what they lead to. ``rested`` are incidents that were over of late
    though the attempt goes on: what shows now and then may not be over. ``timed`` is the end of the last window in
    which most ranks said how long their own work takes; ``regular`` are the lines that the attempt prints in a rhythm.
    ``announced`` is the first finding of the incident whose alert is that of the attempt, which notices announce.
    """

    incidents: list[Open] = []
    context: list[Anomaly] = []
    support: list[Anomaly] = []
    hardware: list[Anomaly] = []
    rested: list[Open] = []
    timed: int = 0
    regular: dict[str, Regular] = {}
    announced: str = ""


def trimmed(anomalies: list[Anomaly], most: int) -> list[Anomaly]:
    """At most so many, but of every detector's every ground the first and the latest: verdicts rest on them."""
    if len(anomalies) <= most:
        return anomalies
    by_grounds: dict[tuple[str, str], list[int]] = {}
    for index, one in enumerate(anomalies):
        by_grounds.setdefault((one.detector, one.grounds), []).append(index)
    kept = {0} | {found[0] for found in by_grounds.values()} | {found[-1] for found in by_grounds.values()}
    room = most - len(kept)
    for index in range(len(anomalies) - 1, -1, -1):
        if room <= 0:
            break
        room -= index not in kept
        kept.add(index)
    return [anomalies[index] for index in sorted(kept)]
