"""What is said when there was no room for all that jobs of a cluster reported: bounds are there, but not in silence."""

from __future__ import annotations

import msgspec

from schemas.meta import MetaAlert
from streams.meta import Alerts, AlertsState, Condition, Rule

LEFT_OUT = Rule("info", 1, 6)
NAME = "fleet_left_out"


class LeftOutState(msgspec.Struct, kw_only=True):
    """How much was left out when that was last asked, and whether it is said that something is."""

    count: int = 0
    alerts: AlertsState = msgspec.field(default_factory=AlertsState)


def said_left_out(state: LeftOutState, cluster: str, count: int, end: int) -> list[MetaAlert]:
    """The alert's beginning or end in the window that ends at ``end``; ``count`` of all that was ever left out."""
    new, state.count = count - state.count, count
    subject = f"cluster {cluster}" if cluster else "jobs of no known cluster"
    text = f"there was no room for {new} more incidents, jobs, nodes or complaints; fleet incidents may lack them"
    found = Condition(subject, new > 0, end, text, "there is room again for all that jobs report")
    return Alerts(NAME, LEFT_OUT, subject, state.alerts).close(end, cluster, [found])
