"""Changes of hardware beside an incident: those that came before it, at its place.

They decide nothing. A change on the node of a rank that is named supports it, unless another rank is known to use the
device; where nobody is named all are shown, since one of them may say where to look.
"""

from __future__ import annotations

from schemas.results import Anomaly
from streams.incidents.decision import Decision
from streams.incidents.situation import SECOND

PORT_WORKS = "port_works"
"""Grounds that say of a port that it works again."""
GROUNDS = frozenset({"hardware_change", "hardware_unlike", PORT_WORKS})
"""Grounds of findings that only stand beside an incident."""
_DETECTORS = frozenset({"hardware_state", "hardware_peers"})
KEPT = 64
LOOK_BACK_NS = 600 * SECOND
SHOWN = 3
_SEVERITIES = ("critical", "warning", "info")


def stands_beside(anomaly: Anomaly) -> bool:
    """Whether a finding opens, joins and decides nothing."""
    return anomaly.grounds in GROUNDS


def kept(known: list[Anomaly], found: list[Anomaly]) -> list[Anomaly]:
    """What is remembered, with this window's findings; the latest where there is no room for all."""
    told = [one for one in found if one.detector in _DETECTORS]
    return [*known, *told][-KEPT:] if told else known


def working(known: list[Anomaly]) -> dict[tuple[str, str], int]:
    """When a port was last found to work again (ns), by node and device."""
    found: dict[tuple[str, str], int] = {}
    for one in known:
        if one.grounds == PORT_WORKS:
            for place in one.suspects:
                key = (place.node, place.device or "")
                found[key] = max(one.onset, found.get(key, one.onset))
    return found


def beside(known: list[Anomaly], anomalies: list[Anomaly], decision: Decision, reach_ns: int) -> list[Anomaly]:
    """Those to show with an incident, in order of time: the worst and the nearest to its onset.

    ``reach_ns`` is how long after the last sign of progress what stopped it may still have come.
    """
    own = {one.id for one in anomalies}
    near = [
        one
        for one in known
        if one.id not in own
        and decision.onset - LOOK_BACK_NS <= one.onset <= decision.onset + one.precision_ns + reach_ns
        and _at_its_place(one, decision)
    ]
    ordered = sorted(near, key=lambda one: (_SEVERITIES.index(one.severity), -one.onset, one.id))
    return sorted(ordered[:SHOWN], key=lambda one: (one.onset, one.id))


def _at_its_place(anomaly: Anomaly, decision: Decision) -> bool:
    if not decision.suspects:
        return True
    nodes = {suspect.node for suspect in decision.suspects} - {""}
    ranks = {suspect.rank for suspect in decision.suspects}
    return any(place.node in nodes and (place.rank is None or place.rank in ranks) for place in anomaly.suspects)
