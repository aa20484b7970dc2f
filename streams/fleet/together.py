"""Whether two incidents of different jobs may be one failure, and why not: each a pure decision with a reason."""

from __future__ import annotations

from enum import Enum

import msgspec

from schemas.fleet import ReportedIncident
from streams.incidents.decision import Reason
from streams.incidents.resolution import Resolution

SECOND = 1_000_000_000
REACTION_NS = 300 * SECOND
"""An owner who stops a job that has stood for so long reacts to its incident; sooner it may be why there is one."""
OWN_AREAS = frozenset({"code", "configuration", "workload"})
"""What a job brings along: a node on which it fails of that is not to blame."""
HARDWARE = frozenset({"hardware", "network"})
OF_NODES = frozenset({Reason.NODE_FAULT.value, Reason.RANK_FAULT.value, Reason.OWN_DEATH.value})
"""Reasons by which memory was the node's: its kernel killed for want of it."""


_STOPPED = frozenset({Resolution.STOPPED.value, Resolution.PREEMPTED.value, Resolution.OUT_OF_TIME.value})
"""Words of a scheduler or an owner that explain why ranks are gone."""


class Told(msgspec.Struct, frozen=True):
    """An incident and the job that it is of."""

    job: str
    incident: ReportedIncident

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from all others."""
        return self.job, self.incident.incident


class Counts(Enum):
    """Whether an incident may be part of a failure of several jobs."""

    YES = "it counts"
    INFORMATION = "it is information and no failure"
    MERGED = "it is part of another incident of its job"
    STOPPED = "its job was stopped, preempted or out of time before it had failed for long"


def counts(one: ReportedIncident) -> Counts:
    """Whether it counts, as of its latest revision."""
    if one.merged_into:
        return Counts.MERGED
    if one.severity == "info":
        return Counts.INFORMATION
    if one.resolution in _STOPPED and one.published - one.onset < REACTION_NS:
        return Counts.STOPPED
    return Counts.YES


def is_merely_superseded(one: ReportedIncident) -> bool:
    """Whether all that is known is that an attempt failed and another began soon, as of a job that is requeued."""
    soon = one.published - one.onset < REACTION_NS
    return one.resolution == Resolution.SUPERSEDED.value and soon and one.area == "unknown"


class Together(Enum):
    """Whether two incidents may be one failure."""

    YES = "they began together and alike"
    ONE_JOB = "they are of one job"
    APART_IN_TIME = "they did not begin together"
    NOT_THERE = "one's attempt began only after the other had failed"
    NOT_ALIKE = "they fail in different ways"
    OWN_CAUSES = "each fails by an error of its own that the other does not show"


def begun_together(first: Told, other: Told, slack_ns: int = 0) -> Together:
    """Whether both jobs ran and failed at one time, as far as onsets tell; ``slack_ns`` is how far apart they may be.

    Each failure lies somewhere about its onset, a hang perhaps a step before it was missed.
    """
    one, two = first.incident, other.incident
    if first.job == other.job:
        return Together.ONE_JOB
    within = one.within_ns + two.within_ns + slack_ns
    if abs(one.onset - two.onset) > within:
        return Together.APART_IN_TIME
    if max(one.started, two.started) > min(one.onset + one.within_ns, two.onset + two.within_ns):
        return Together.NOT_THERE
    return Together.YES


def together(first: Told, other: Told) -> Together:
    """Whether they may be one failure as far as time and kind tell; their place is not looked at."""
    begun = begun_together(first, other)
    if begun is not Together.YES:
        return begun
    if not alike(first.incident, other.incident):
        return Together.NOT_ALIKE
    if is_own(first.incident) and not by_one_error(first.incident, other.incident):
        return Together.OWN_CAUSES
    return Together.YES


def alike(one: ReportedIncident, two: ReportedIncident) -> bool:
    """Whether they are of one symptom and area, where both areas are known.

    Broken hardware may stop one job and crash the next.
    """
    if one.area in HARDWARE and two.area in HARDWARE:
        return one.area == two.area
    if one.symptom != two.symptom or is_own(one) != is_own(two):
        return False
    return one.area in (two.area, "unknown") or two.area == "unknown"


def is_own(one: ReportedIncident) -> bool:
    """Whether it lies in what its job brings along: code, settings, data, what it computes, how much memory it takes.

    A rank that failed by an error of its own did so too, unless that tells of hardware or the network.
    """
    if one.symptom == "crash" and one.reason == Reason.OWN_ERROR.value and one.area not in HARDWARE:
        return True
    return one.area in OWN_AREAS or one.symptom == "numerics" or (one.area == "memory" and one.reason not in OF_NODES)


def by_one_error(one: ReportedIncident, two: ReportedIncident) -> bool:
    """Whether both show an error in common; without any, whether they were judged alike."""
    if one.errors or two.errors:
        return bool(set(one.errors) & set(two.errors))
    return one.reason == two.reason
