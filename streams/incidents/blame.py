"""Whom the evidence supports: a pure decision over an incident's anomalies, with the reason it returns.

The order of blame is that of detectors.md section 3; hangs and crashes have a module of their own.
"""

from __future__ import annotations

from schemas.results import Anomaly, Area
from streams.incidents.decision import Base, Decision, Reason, ranks_of
from streams.incidents.situation import Situation
from streams.incidents.standstill import at_its_place, faults_alone, standstill


def decide(anomalies: list[Anomaly], situation: Situation) -> Decision:
    """The decision over an incident's anomalies, in order of their windows; there must be at least one."""
    symptom = anomalies[0].symptom
    if symptom == "slowdown":
        return _slowdown(anomalies, situation)
    if symptom == "numerics":
        return _numerics(anomalies)
    faults = [one for one in anomalies if one.grounds == "node_fault"]
    if len(faults) == len(anomalies):
        return faults_alone(anomalies, situation)
    return at_its_place(standstill(anomalies, situation), faults)


def _slowdown(anomalies: list[Anomaly], situation: Situation) -> Decision:
    spatial = [one for one in anomalies if one.grounds in ("slow_and_changed", "slow_against_peers", "many_slow")]
    if not spatial:
        return _slower_as_such(anomalies)
    latest = [one for one in spatial if one.end == spatial[-1].end]
    begun = [one for one in spatial if one.end == spatial[0].end]
    base = Base.of(anomalies, min(begun, key=lambda one: (one.onset, one.id)), symptom="slowdown")
    if any(one.grounds == "many_slow" for one in latest):
        return base.nobody(Reason.MANY_SLOW, area="workload")
    strongest = max(latest, key=lambda one: (len(one.suspects) == 1, one.suspects[0].score, one.id))
    # Space cancels time: a shift that turned out to be everybody's supports nobody.
    shifts = [one for one in anomalies if one.grounds in ("own_shift", "shared_shift")]
    own = shifts and max(shifts, key=lambda one: (one.end, one.grounds)).grounds == "own_shift"
    shifted = {suspect.rank for one in shifts for suspect in one.suspects} if own else set()
    ranks = ranks_of(strongest.suspects)
    area: Area = strongest.area
    if any(one.grounds == "slow_and_changed" for one in latest) or ranks <= shifted:
        return base.named(Reason.SLOW_AND_CHANGED, strongest.suspects, area=area)
    if situation.knows_layout:
        return base.named(Reason.SLOW_KNOWN_LAYOUT, strongest.suspects, area=area)
    return base.nobody(Reason.SLOW_UNKNOWN_LAYOUT, area=area)


def _slower_as_such(anomalies: list[Anomaly]) -> Decision:
    """The job takes longer than its own past, and no contrast of ranks says who: that is certain, and names nobody."""
    shifts = [one for one in anomalies if one.grounds == "job_shift"] or anomalies
    return Base.of(anomalies, shifts[0], symptom="slowdown").everybody(Reason.JOB_SLOWER, area=shifts[-1].area)


_NUMERICS = (("own_series", "after_reduction"), ("stays_up",), ("steps_skipped", "scale_collapsed"))
"""What tells who began, the surest first; a step skipped beside it, and what came back at once, tell nothing."""


def _numerics(anomalies: list[Anomaly]) -> Decision:
    base = Base.of(anomalies, anomalies[0], symptom="numerics")
    telling = (found for grounds in _NUMERICS if (found := [one for one in anomalies if one.grounds in grounds]))
    latest = max(next(telling, anomalies), key=lambda one: (one.end, one.id))
    if latest.suspects:
        return base.named(Reason.OWN_SERIES, latest.suspects, area=latest.area)
    return base.nobody(Reason.AFTER_REDUCTION)
