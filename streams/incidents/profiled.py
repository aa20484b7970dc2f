"""Slowness that only profiles show: one look at a job, which names somebody only beside enough that can be compared."""

from __future__ import annotations

from schemas.results import Anomaly
from streams.incidents.decision import Base, Decision, Reason
from streams.incidents.situation import Situation

_SPACE = ("slow_function", "slow_function_and_changed", "many_slow_functions", "function_apart")
GROUNDS = frozenset({*_SPACE, "function_shift"})
"""Grounds of the detector that contrasts profiles."""


def by_profiles(anomalies: list[Anomaly], situation: Situation) -> Decision:
    """The decision over an incident in which no timer was contrasted over ranks."""
    spatial = [one for one in anomalies if one.grounds in _SPACE]
    latest = [one for one in spatial if one.end == spatial[-1].end]
    base = Base.of(anomalies, (spatial or anomalies)[0], symptom="slowdown")
    if any(one.grounds == "many_slow_functions" for one in latest):
        return base.nobody(Reason.MANY_SLOW, area="workload")
    singled = [one for one in latest if one.suspects]
    if not singled:
        apart = latest or spatial
        reason = Reason.FUNCTION_APART if apart else Reason.FUNCTION_SHIFT
        return base.nobody(reason, area=(apart or anomalies)[-1].area)
    area = singled[-1].area
    if singled[-1].grounds == "slow_function_and_changed":
        return base.named(Reason.SLOW_AND_CHANGED, singled[-1].suspects, area=area)
    if situation.knows_layout:
        return base.named(Reason.SLOW_KNOWN_LAYOUT, singled[-1].suspects, area=area)
    return base.nobody(Reason.SLOW_UNKNOWN_LAYOUT, area=area)
