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
from streams.incidents.resolution import Resolution
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
_LEFT = frozenset(
    one.value
    for one in (
        Resolution.SUPERSEDED,
        Resolution.STOPPED,
        Resolution.PREEMPTED,
        Resolution.OUT_OF_TIME,
        Resolution.FORGOTTEN,
    )
)
"""How incidents end whose attempts are no longer there to be waited for."""
TURN_NS = 600 * SECOND
"""For so long a group may await its turn before that is told, also where it was never known to."""
TURNS = 2
"""For so many times as long as it once paused and went on a group may await its turn."""


class Waits(Enum):
    """Why a group's incident is part of another group's, or not."""

    OF_ITS_OWN = "something of its own explains it"
    NOBODY_FAILED = "no other group is known to have failed before"
    SEVERAL_FAILED = "several other groups had failed before, and nothing tells for which it waits"
    FOR_ANOTHER = "another group had failed before, and nothing of its own did"


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """A group whose incident may be part of another group's.

    ``found`` is when it was first seen that it stood still (ns): it was silent since its onset, and may have been
    waiting from then on for a group that failed later. ``stands`` is whether it shows in the window that ends at
    ``now`` that it stands still; ``part_of`` is the incident that it was part of until now, empty for none.
    """

    group: str
    found: int
    now: int
    stands: bool
    part_of: str = ""


def waits_for(incident: Incident, waiting: Waiting, others: Sequence[Past]) -> tuple[Waits, str]:
    """Whether the incident of a group is part of one of another group, and of which.

    ``others`` are the job's incidents.
    """
    if incident.suspects or incident.reason not in _WAITS:
        return Waits.OF_ITS_OWN, ""
    begun = incident.onset if incident.reason == Reason.ONLY_CASCADES.value else waiting.found
    failed = [
        one
        for one in others
        if one.group != waiting.group
        and one.failed
        and incident.onset - CONTEXT_NS <= one.onset <= begun
        and _is_waited_for(one, incident, waiting)
    ]
    if not failed:
        return Waits.NOBODY_FAILED, ""
    if len({one.group for one in failed}) > 1:
        return Waits.SEVERAL_FAILED, ""
    last = max(failed, key=lambda one: (one.id == waiting.part_of, one.order, one.onset, one.id))
    return Waits.FOR_ANOTHER, last.id


def _is_waited_for(one: Past, incident: Incident, waiting: Waiting) -> bool:
    """Whether a group may still wait for another that failed so, or lost it.

    One that is open is waited for; one that has ended, while nobody has begun it anew, for as long as watchdogs wait.
    Of what was over before, or of an attempt that was given up, no group stands still; but it may have lost it then.
    """
    if not one.over:
        return True
    if one.over_at < incident.onset:
        return False
    if one.over in _LEFT:
        return not waiting.stands
    return not waiting.stands or waiting.now <= one.over_at + CONTEXT_NS


def wait_for_others(
    drafts: Mapping[str, Sequence[Draft]], past: Sequence[Past], newest: Mapping[str, tuple[int, int]], now: int
) -> None:
    """Note on incidents, by group of workers, of which incident of another group they are part, if of any.

    One that was found to be so stays it until something of its own explains it, or the other is over and the group
    still stands still; the other shows what it took over. ``past`` are all incidents of the job, ``newest`` is the
    order of the latest attempt by group, ``now`` the window's end.
    """
    past = [_given_up(one) if one.over and one.order < newest.get(one.group, one.order) else one for one in past]
    whole = {draft.says.id: draft for of in drafts.values() for draft in of}
    for group, of in drafts.items():
        for draft in of:
            incident = draft.incident
            if incident.family != STANDSTILL_FAMILY:
                continue
            stands = any(one.detector in STANDSTILL and one.end == now for one in incident.anomalies)
            waiting = Waiting(
                group=group, found=incident.anomalies[0].end, now=now, stands=stands, part_of=incident.outside
            )
            why, into = waits_for(draft.says, waiting, past)
            if why is Waits.FOR_ANOTHER and into != incident.outside:
                incident.outside = into
                if into in whole:
                    take(whole[into], incident, draft.says, draft.says, earlier=False)
            elif why is Waits.OF_ITS_OWN or (why is Waits.NOBODY_FAILED and stands):
                incident.outside = ""


def _given_up(one: Past) -> Past:
    """An incident that is over of an attempt after which another has begun."""
    return msgspec.structs.replace(one, over=Resolution.SUPERSEDED.value)


def awaiting_turn(
    anomalies: list[Anomaly], view: AttemptView, others: Sequence[AttemptView], now: int
) -> tuple[list[Anomaly], list[Anomaly]]:
    """A group's findings, and those that say no more than that it awaits its turn, as information.

    Rollout waits for training and training for rollout: a group that is idle by design does not hang. While another
    goes on it only waits; once nobody does, it stands still no earlier than from then on. Idle by design is what tells
    nobody apart, and what it has come through before: where somebody is named after a longer pause, all stays as it is.
    Where nobody is told apart it is a warning after a while, however long others go on.
    """
    found, waits = [], []
    hangs = any(_tells_apart(one, view, now) for one in anomalies)
    for one in anomalies:
        since, silence = _since_when(one.onset, view, others) if one.detector in STANDSTILL else (one.onset, 0)
        if since == one.onset or hangs:
            found.append(one)
        elif now - since < silence and now - one.onset > max(TURN_NS, TURNS * view.clock.pause):
            severity: Severity = "warning" if one.severity == "critical" else one.severity
            text = f"{one.text}; another group of the job goes on"
            found.append(msgspec.structs.replace(one, severity=severity, text=text))
        elif now - since < silence:
            text = f"{one.text}; another group of the job goes on"
            waits.append(msgspec.structs.replace(one, severity="info", text=text))
        else:
            short = not one.suspects and now - since < StallRule().critical_s * SECOND
            severity = "info" if short else one.severity
            found.append(msgspec.structs.replace(one, onset=since, severity=severity))
    return found, waits


def _tells_apart(one: Anomaly, view: AttemptView, now: int) -> bool:
    """Whether it names somebody while the group stands still for longer than it once did and went on."""
    if one.detector not in STANDSTILL or not one.suspects or one.severity == "info":
        return False
    return now - one.onset > min(view.clock.pause + margin_ns(view.clock.step_ns or 0), TURN_NS)


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
