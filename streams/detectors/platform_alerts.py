"""What the platform itself tells (crash, hang): alarms of nodes, devices, switches and storage, the scheduler's word.

An alarm stands beside an incident that began after it, at its place, as long as it was not resolved before; it names
nobody and decides nothing. Only that the scheduler has lost a node is a fault by itself, where ranks there were alive
until then: what it says of a node on which they had vanished before is what they did to it.
"""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from schemas.identity import shortened
from schemas.results import Anomaly, PlatformAlert, Severity, Suspect
from streams.again import forget_oldest
from streams.alert_words import area_of, layer_of, said_place, says_node_gone
from streams.attempt_window import Alarm, AttemptWindow
from streams.checks import require
from streams.detectors.registry import JobDetector, register
from streams.incidents.hardware_beside import ALERT, ALERT_FIRES, ALERT_OVER
from streams.switches import under
from streams.troubles import of_others
from streams.view import AttemptView

MOST_A_WINDOW = 16
MOST_PLACES = 256
_SEVERITIES = ("critical", "warning", "info")


class PlatformAlertsConfig(msgspec.Struct, frozen=True, kw_only=True):
    """``alive_s``: how long before the scheduler's word ranks of a node may last have been seen alive.

    ``own_slack_s``, ``undated_s`` and ``gone_s`` as of ``node_faults``.
    """

    alive_s: float = 20.0
    own_slack_s: float = 1.0
    undated_s: float = 300.0
    gone_s: float = 60.0

    def __post_init__(self) -> None:
        require(self, above_0=("alive_s", "own_slack_s", "undated_s", "gone_s"))


class PlatformAlertsState(msgspec.Struct, kw_only=True):
    """When each alarm was told, by its words and place; the oldest are forgotten beyond a bound."""

    told: dict[str, int] = {}


@register
class PlatformAlerts(JobDetector[PlatformAlertsConfig, PlatformAlertsState]):
    """Reports each alarm once, and once more when it is resolved."""

    name = "platform_alerts"
    grounds = frozenset({"node_fault", ALERT, ALERT_FIRES, ALERT_OVER})
    config_type = PlatformAlertsConfig
    state_type = PlatformAlertsState

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """A finding for each alarm that was not told before, the worst first where there are very many."""
        if not window.alarms:
            return []
        here = [one for one in window.alarms if _is_of(view, one)]
        new = {key: one for one in here if (key := _key(one, one.alert.status)) not in self.state.told}
        ordered = sorted(new.items(), key=lambda item: (_SEVERITIES.index(item[1].alert.severity), item[0]))
        self.state.told |= dict.fromkeys(sorted(new), window.end)
        told = [
            self._anomaly(view, window, one, key, len(new))
            for key, one in ordered[:MOST_A_WINDOW]
            if one.alert.status != "resolved" or _key(one, "firing") in self.state.told
        ]
        forget_oldest(self.state.told)
        return told

    def _anomaly(self, view: AttemptView, window: AttemptWindow, one: Alarm, key: str, alike: int) -> Anomaly:
        alert = one.alert
        gone = self._is_fault(view, one)
        over = alert.status == "resolved"
        severity: Severity = "info" if over or alert.severity == "info" else "warning"
        told = f" ({', '.join([*([alert.source] if alert.source else []), _when(alert)])})"
        state = "resolved: " if over else ""
        return self.anomaly(
            window,
            key,
            onset=alert.time if over else alert.since,
            precision_ns=alert.precision_ns,
            axis="time",
            layer=layer_of(alert),
            symptom="crash",
            area=area_of(alert),
            grounds="node_fault" if gone else _grounds(alert.status),
            severity="warning" if gone else severity,
            text=f"{said_place(one.node, alert)}: {state}{_said(one)}{told}",
            peers=f"alarms told in this window: {alike}; nodes that run the job: {len(view.node_names)}",
            metric=alert.name,
            iteration=view.clock.iteration,
            phase=view.phase,
            suspects=_places(view, one),
        )

    def _is_fault(self, view: AttemptView, one: Alarm) -> bool:
        """Whether it says for certain, and in time, that a node of the job is gone."""
        alert = one.alert
        here = [member.last_life for member in view.members.values() if member.identity.node == one.node]
        if not here or not says_node_gone(alert) or alert.precision_ns > self.config.undated_s * 1e9:
            return False
        own_slack_s, gone_s = self.config.own_slack_s, self.config.gone_s
        if of_others(view, alert.since, alert.precision_ns, slack_s=own_slack_s, gone_s=gone_s):
            return False
        return view.first <= alert.since <= max(here) + int(self.config.alive_s * 1e9)


def _is_of(view: AttemptView, one: Alarm) -> bool:
    """Whether an alarm may be of a place of the attempt: one of its nodes, a switch above them, or a storage."""
    nodes = view.node_names
    if one.node:
        return one.node in nodes
    known = [path for node in nodes if (path := view.switch_of(node))]
    switch = one.alert.switch
    return not switch or len(known) < len(nodes) or any(under(path, switch) for path in known)


def _grounds(status: str) -> str:
    return {"firing": ALERT_FIRES, "resolved": ALERT_OVER}.get(status, ALERT)


def _key(one: Alarm, status: str) -> str:
    """Names an alarm: one that lasts by when it began, one that happened once by its time and words."""
    alert = one.alert
    words = "" if status else f"{alert.text}|{alert.time}"
    place = f"{one.node}|{alert.device}|{alert.switch}|{alert.storage}"
    return f"{status}|{alert.name}|{place}|{alert.since if status else ''}|{words}"


def _when(alert: PlatformAlert) -> str:
    """When it was, as ``since 2025-11-29T12:00:03Z`` or, of what happened once or is over, ``at`` that time."""
    lasts = alert.status == "firing"
    moment = datetime.fromtimestamp((alert.since if lasts else alert.time) // 1_000_000_000, UTC)
    return f"{'since' if lasts else 'at'} {moment:%Y-%m-%dT%H:%M:%SZ}"


def _said(one: Alarm) -> str:
    alert = one.alert
    times = f" ({alert.count} times)" if alert.count > 1 else ""
    return f"{alert.name}{': ' if alert.text and alert.name else ''}{alert.text if alert.text else ''}{times}"


def _places(view: AttemptView, one: Alarm) -> list[Suspect]:
    """The place of an alarm, with the rank that is known to use the device; no rank is accused by it."""
    alert = one.alert
    why = f"the platform tells of it: {shortened(_said(one), 200)}"
    if alert.switch:
        nodes = [node for node in view.node_names if under(view.switch_of(node), alert.switch)][:MOST_PLACES]
        device = alert.device or None
        return [
            Suspect(rank=None, node=node, switch=alert.switch, device=device, score=0.3, why=why)
            for node in nodes or [""]
        ]
    device = alert.device or alert.storage or None
    if one.rank is None:
        return [Suspect(rank=None, node=one.node, device=device, score=0.3, why=why)]
    return [msgspec.structs.replace(view.suspect(one.rank, 0.3, why), device=device)]
