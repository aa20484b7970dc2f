"""Whom the evidence supports: a pure decision over an incident's anomalies, with the reason it returns.

The order of blame is that of detectors.md section 3; hangs and crashes have a module of their own.
"""

from __future__ import annotations

from schemas.results import Anomaly, Area
from streams.incidents.counterfactual import by_played_steps
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
    played = by_played_steps(anomalies, spatial)
    if played is not None:
        return played
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


def _numerics(anomalies: list[Anomaly]) -> Decision:
    base = Base.of(anomalies, anomalies[0], symptom="numerics")
    # Steps that were skipped beside it say nothing of who began.
    telling = [one for one in anomalies if one.grounds != "overflow"] or anomalies
    latest = max(telling, key=lambda one: (one.end, one.id))
    if latest.suspects:
        return base.named(Reason.OWN_SERIES, latest.suspects, area=latest.area)
    return base.nobody(Reason.AFTER_REDUCTION)
