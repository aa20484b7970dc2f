"""Worker groups of one job that wait for each other: which group's incident is part of another's, with the reason.

Where one group fails, the others only wait or lose it. Cause comes before effect, and nothing is guessed: a group that
has a suspect of its own keeps its incident, and so does one that may wait for either of two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

import msgspec

from schemas.results import Anomaly, Incident, Severity
from streams.incidents.decision import Reason
from streams.incidents.joining import STANDSTILL as STANDSTILL_FAMILY
from streams.incidents.merging import take
from streams.incidents.recurrence import Past
from streams.incidents.revising import Draft
from streams.incidents.situation import SECOND, STANDSTILL, margin_ns
from streams.incidents.standstill import CONTEXT_NS
from streams.stall import StallRule, silence_ns
from streams.view import AttemptView

_WAITS = frozenset(
    one.value
    for one in (
        Reason.NOBODY_APART,
        Reason.NOTHING_OBSERVED,
        Reason.NONE_COMPLETED,
        Reason.ONE_UNOBSERVED,
        Reason.OUTSIDE_BY_DESIGN,
        Reason.ONLY_CASCADES,
        Reason.SILENT_ONE,
    )
)
"""Reasons by which nothing within a group explains why it stands still, or lost somebody."""


class Waits(Enum):
    """Why a group's incident is part of another group's, or not."""

    OF_ITS_OWN = "something of its own explains it"
    NOBODY_FAILED = "no other group is known to have failed before"
    SEVERAL_FAILED = "several other groups had failed before, and nothing tells for which it waits"
    FOR_ANOTHER = "another group had failed before, and nothing of its own did"


def waits_for(incident: Incident, found: int, group: str, others: Sequence[Past]) -> tuple[Waits, str]:
    """Whether the incident of a group is part of one of another group, and of which.

    ``found`` is when it was first seen that the group stood still (ns): it was silent since its onset, and may have
    been waiting from then on for a group that failed later. ``others`` are the job's incidents.
    """
    if incident.suspects or incident.reason not in _WAITS:
        return Waits.OF_ITS_OWN, ""
    begun = incident.onset if incident.reason == Reason.ONLY_CASCADES.value else found
    failed = [
        one for one in others if one.group != group and one.failed and incident.onset - CONTEXT_NS <= one.onset <= begun
    ]
    if not failed:
        return Waits.NOBODY_FAILED, ""
    if len({one.group for one in failed}) > 1:
        return Waits.SEVERAL_FAILED, ""
    return Waits.FOR_ANOTHER, max(failed, key=lambda one: (one.order, one.onset, one.id)).id


def wait_for_others(drafts: Mapping[str, Sequence[Draft]], past: Sequence[Past]) -> None:
    """Note on incidents, by group of workers, of which incident of another group they are part, if of any.

    One that was found to be so stays it until something of its own explains it; the other shows what it took over.
    ``past`` are all incidents of the job.
    """
    whole = {draft.says.id: draft for of in drafts.values() for draft in of}
    for group, of in drafts.items():
        for draft in of:
            incident = draft.incident
            if incident.family != STANDSTILL_FAMILY:
                continue
            why, into = waits_for(draft.says, incident.anomalies[0].end, group, past)
            if why is Waits.FOR_ANOTHER and not incident.outside:
                incident.outside = into
                if into in whole:
                    take(whole[into], incident, draft.says, draft.says, earlier=False)
            elif why is Waits.OF_ITS_OWN:
                incident.outside = ""


def awaiting_turn(
    anomalies: list[Anomaly], view: AttemptView, others: Sequence[AttemptView], now: int
) -> tuple[list[Anomaly], list[Anomaly]]:
    """A group's findings, and those that say no more than that it awaits its turn, as information.

    Rollout waits for training and training for rollout: a group that is idle by design does not hang. While another
    goes on it only waits; once nobody does, it stands still no earlier than from then on.
    """
    found, waits = [], []
    for one in anomalies:
        since, silence = _since_when(one.onset, view, others) if one.detector in STANDSTILL else (one.onset, 0)
        if since == one.onset:
            found.append(one)
        elif now - since < silence:
            text = f"{one.text}; another group of the job goes on"
            waits.append(msgspec.structs.replace(one, severity="info", text=text))
        else:
            short = not one.suspects and now - since < StallRule().critical_s * SECOND
            severity: Severity = "info" if short else one.severity
            found.append(msgspec.structs.replace(one, onset=since, severity=severity))
    return found, waits


def _since_when(since: int, view: AttemptView, others: Sequence[AttemptView]) -> tuple[int, int]:
    """Since when no group goes on any more (ns), and how long silence must be for that to mean anything.

    Where this one counts no iterations, lines of others show that they go on, too: it may be idle until it is asked.
    """
    latest, silence = since, silence_ns(view.clock, StallRule())
    after = since + margin_ns(view.clock.step_ns or 0)
    for other in others:
        spoke = max((one.last_log or 0 for one in other.members.values()), default=0) if view.clock.time is None else 0
        went_on = max(other.iterated or 0, spoke)
        if went_on > max(after, latest):
            latest, silence = went_on, max(silence, silence_ns(other.clock, StallRule()))
    return latest, silence
