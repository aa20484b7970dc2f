"""Whom the evidence supports: a pure decision over an incident's anomalies, with the reason it returns.

The order of blame is that of detectors.md section 3; hangs, crashes and slowness have modules of their own.
"""

from __future__ import annotations

from schemas.results import Anomaly
from streams.incidents.decision import Base, Decision, Reason, earliest_of, latest_of, placed
from streams.incidents.situation import Situation
from streams.incidents.slowness import CROSS_JOB, slowdown
from streams.incidents.standstill import at_its_place, faults_alone, shortly_before, standstill

OF_DEVICE = "memory_growth_of_device"
GROWTH = frozenset({"memory_growth", "memory_growth_of_all", OF_DEVICE})
"""Grounds that say of memory that it grows, before anything comes of it."""
SLOWER_PORT = "port_slower"
"""Grounds that say of a port that its rate has fallen."""


def decide(anomalies: list[Anomaly], situation: Situation) -> Decision:
    """The decision over an incident's anomalies, in order of their windows; there must be at least one."""
    others = [one for one in anomalies if one.grounds not in GROWTH]
    if len(others) < len(anomalies):
        return _beside_growth(anomalies, others, situation)
    symptom = anomalies[0].symptom
    if symptom == "slowdown":
        return _beside_slower_ports(anomalies, situation)
    if symptom == "numerics":
        return _numerics(anomalies)
    faults = [one for one in anomalies if one.grounds == "node_fault"]
    if len(faults) == len(anomalies):
        return faults_alone(anomalies, situation)
    return at_its_place(standstill(anomalies, situation), faults)


def _beside_growth(anomalies: list[Anomaly], others: list[Anomaly], situation: Situation) -> Decision:
    """Memory that grows decides only as long as nothing worse has come of it, or of anything else."""
    worse = [one for one in others if one.severity != "info"]
    decision = decide(others, situation) if worse else None
    if decision is not None and decision.reason is not Reason.SURVIVED:
        return decision
    growth = [one for one in anomalies if one.grounds in GROWTH]
    # Growth of minutes beside it takes back nothing.
    growth = [one for one in growth if one.severity != "info"] or growth
    # Whose memory is known says more than where some device is.
    growth = [one for one in growth if one.grounds != OF_DEVICE] or growth
    base = Base.on(growth, earliest_of(growth), symptom="memory")
    latest = latest_of(growth)
    if latest.grounds == OF_DEVICE:
        return placed(base.nobody(Reason.DEVICE_MEMORY_GROWS, area="memory"), [latest])
    if latest.suspects:
        return base.named(Reason.MEMORY_GROWS, latest.suspects, area="memory")
    return base.nobody(Reason.MEMORY_OF_ALL_GROWS, area="memory")


def _beside_slower_ports(anomalies: list[Anomaly], situation: Situation) -> Decision:
    """A port that has become slower warns of its place, and says where to look if the job is slower as a whole since.

    It names nobody: what goes through a port is what all ranks wait for.
    """
    ports = [one for one in anomalies if one.grounds == SLOWER_PORT]
    others = [one for one in anomalies if one.grounds != SLOWER_PORT]
    if not ports or any(one.severity != "info" and one.grounds not in CROSS_JOB for one in others):
        decision = slowdown(others, situation)
        before = shortly_before(decision, ports)
        return placed(decision, before) if decision.reason is Reason.JOB_SLOWER else decision
    base = Base.on(ports, earliest_of(ports), symptom="slowdown")
    return placed(base.nobody(Reason.PORT_SLOWER, area="network"), ports)


_NUMERICS = (
    ("own_series", "after_reduction", "alone", "part"),
    ("went_back",),
    ("stays_up",),
    ("steps_skipped", "scale_collapsed"),
    ("one_report",),
)
"""What tells who began, the surest first; a step skipped beside it, and what came back at once, tell nothing."""

NUMERICS = frozenset(grounds for alike in _NUMERICS for grounds in alike)
"""Grounds that decide on losses and gradients."""
_UNTOLD = {
    "after_reduction": Reason.AFTER_REDUCTION,
    "part": Reason.OTHERS_GO_ON,
    "one_report": Reason.ONE_REPORT,
}


def _numerics(anomalies: list[Anomaly]) -> Decision:
    base = Base.of(anomalies, anomalies[0], symptom="numerics")
    telling = (found for grounds in _NUMERICS if (found := [one for one in anomalies if one.grounds in grounds]))
    latest = latest_of(next(telling, anomalies))
    if latest.grounds in ("alone", "part"):
        base = Base.on([latest], anomalies[0], symptom="numerics")
    if latest.suspects:
        reason = Reason.OWN_ALONE if latest.grounds == "alone" else Reason.OWN_SERIES
        return base.named(reason, latest.suspects, area=latest.area)
    return base.nobody(_UNTOLD.get(latest.grounds, Reason.TRAINING_AS_SUCH))
