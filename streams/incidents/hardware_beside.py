"""Changes of hardware, and alarms of the platform, beside an incident: those that came before it, at its place.

They decide nothing. A change on the node of a rank that is named supports it, unless another rank is known to use the
device; where nobody is named all are shown, since one of them may say where to look. An alarm that fires stands for as
long as it does; one that was resolved before the incident began supports nobody.
"""

from __future__ import annotations

from collections.abc import Sequence

from schemas.results import Anomaly
from streams.incidents.decision import Decision
from streams.incidents.situation import SECOND

PORT_WORKS = "port_works"
"""Grounds that say of a port that it works again."""
ALERT, ALERT_FIRES, ALERT_OVER = "platform_alert", "platform_alert_fires", "platform_alert_over"
"""Grounds of alarms: of what happened once, of what lasts, and that it is over."""
_CHANGES = frozenset({"hardware_change", "hardware_unlike", PORT_WORKS})
_ALERTS = frozenset({ALERT, ALERT_FIRES})
GROUNDS = frozenset({*_CHANGES, *_ALERTS, ALERT_OVER})
"""Grounds of findings that only stand beside an incident."""
_DETECTORS = frozenset({"hardware_state", "hardware_peers"})
_ALERTING = frozenset({"platform_alerts"})
KEPT = 64
LOOK_BACK_NS = 600 * SECOND
SHOWN = 3
_SEVERITIES = ("critical", "warning", "info")
_BY_STORAGE = frozenset({"data", "checkpoint"})
"""Areas of incidents at whose place a storage is that is told without a node."""


def stands_beside(anomaly: Anomaly) -> bool:
    """Whether a finding opens, joins and decides nothing."""
    return anomaly.grounds in GROUNDS


def kept(known: list[Anomaly], found: list[Anomaly]) -> list[Anomaly]:
    """What is remembered, with this window's findings; the latest where there is no room for all.

    Changes and alarms have room of their own, so that a storm of alarms drives no change out.
    """
    told = [one for one in found if one.detector in _DETECTORS or one.detector in _ALERTING]
    if not told:
        return known
    every = [*known, *told]
    if len(every) <= KEPT:
        return every
    room = {True: KEPT, False: KEPT}
    latest = []
    for one in reversed(every):
        alarm = one.detector in _ALERTING
        if room[alarm]:
            room[alarm] -= 1
            latest.append(one)
    return latest[::-1]


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
        and one.grounds != ALERT_OVER
        and one.onset <= decision.onset + one.precision_ns + reach_ns
        and (decision.onset - LOOK_BACK_NS <= one.onset or _fires(one, known, decision.onset))
        and not _over(one, known, decision.onset)
        and _at_its_place(one, decision)
    ]
    shown = [one for kind in (_DETECTORS, _ALERTING) for one in _first([o for o in near if o.detector in kind])]
    return sorted(shown, key=lambda one: (one.onset, one.id))


def _first(found: Sequence[Anomaly]) -> list[Anomaly]:
    return sorted(found, key=lambda one: (_SEVERITIES.index(one.severity), -one.onset, one.id))[:SHOWN]


def _fires(one: Anomaly, known: Sequence[Anomaly], onset: int) -> bool:
    return one.grounds == ALERT_FIRES and not _over(one, known, onset)


def _over(one: Anomaly, known: Sequence[Anomaly], onset: int) -> bool:
    """Whether an alarm was resolved before the incident began."""
    return one.grounds == ALERT_FIRES and any(
        other.grounds == ALERT_OVER
        and (other.metric, _place(other)) == (one.metric, _place(one))
        and one.onset <= other.onset < onset
        for other in known
    )


def _place(anomaly: Anomaly) -> set[tuple[str, str, str]]:
    """Its device on its node, or on its switch: which nodes hang under that may become known later."""
    return {("" if place.switch else place.node, place.device or "", place.switch) for place in anomaly.suspects}


def _at_its_place(anomaly: Anomaly, decision: Decision) -> bool:
    if not decision.suspects:
        return True
    nodes = {suspect.node for suspect in decision.suspects} - {""}
    ranks = {suspect.rank for suspect in decision.suspects}
    if anomaly.area == "data" and all(not place.node for place in anomaly.suspects):
        return decision.area in _BY_STORAGE
    return any(place.node in nodes and (place.rank is None or place.rank in ranks) for place in anomaly.suspects)
