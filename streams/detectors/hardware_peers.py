"""Ports and GPUs unlike the same ones elsewhere (slowdown): a slower or idle port, a GPU much hotter than the others.

This is no change, so it opens nothing: an incident at its place shows it. A port is held against those of its name on
other nodes, since a node has ports of several kinds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from statistics import median

import msgspec

from schemas.measures import measure_of
from schemas.results import Anomaly, Area, Gauge, Suspect
from streams.again import forget_oldest, is_due
from streams.attempt_window import AttemptWindow
from streams.checks import require
from streams.detectors.registry import JobDetector, register
from streams.hardware_words import said_device, said_rate, said_state
from streams.lines.devices import pci_of
from streams.view import AttemptView

Place = tuple[str, str]
"""Node and device."""


class HardwarePeersConfig(msgspec.Struct, frozen=True, kw_only=True):
    """``share`` of at least ``least_ports`` ports of one name must agree for another to be unlike them.

    A GPU is hot beyond ``hot_c`` degrees if it is also ``above_peers_c`` over the median of at least ``least_gpus``.
    What stays so is told again after ``again_s``.
    """

    share: float = 0.66
    least_ports: int = 3
    hot_c: float = 85.0
    above_peers_c: float = 10.0
    least_gpus: int = 4
    again_s: float = 300.0

    def __post_init__(self) -> None:
        require(self, above_0=("least_ports", "hot_c", "above_peers_c", "least_gpus", "again_s"), shares=("share",))


class HardwarePeersState(msgspec.Struct, kw_only=True):
    """When each was last told, by node, device and kind."""

    told: dict[str, int] = {}


@register
class HardwarePeers(JobDetector[HardwarePeersConfig, HardwarePeersState]):
    """Contrasts the window's ports and GPUs over the nodes of an attempt."""

    name = "hardware_peers"
    grounds = frozenset({"hardware_unlike"})
    config_type = HardwarePeersConfig
    state_type = HardwarePeersState

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """A finding for each port and GPU that stands apart."""
        levels = _levels(window)
        # What has just changed is told as that.
        for changed in window.hardware:
            self.state.told[_key(changed.node, changed.change.device, changed.change.kind)] = window.end
        found = [
            *self._ports(window, view, "port_state", levels.get("port_state", {})),
            *self._ports(window, view, "port_rate", levels.get("port_rate", {})),
            *self._gpus(window, view, levels.get("gpu_temperature", {})),
        ]
        forget_oldest(self.state.told)
        return [one for one in found if one is not None]

    def _ports(
        self, window: AttemptWindow, view: AttemptView, kind: str, ports: dict[Place, Gauge]
    ) -> Iterator[Anomaly | None]:
        by_name: dict[str, dict[str, float]] = {}
        for (node, device), gauge in ports.items():
            by_name.setdefault(device, {})[node] = gauge.last
        said = said_state if kind == "port_state" else said_rate
        for device, values in sorted(by_name.items()):
            usual, count = max(Counter(values.values()).items(), key=lambda item: (item[1], item[0]))
            if count < self.config.least_ports or count < self.config.share * len(values):
                continue
            for node, value in sorted(values.items()):
                if value < usual:
                    text = f"is {said(value)}" if kind == "port_state" else f"its rate is {said(value)}"
                    peers = f"{count} of {len(values)} ports of this name: {said(usual)}"
                    yield self._finding(window, view, kind, (node, device), text, peers, "network")

    def _gpus(self, window: AttemptWindow, view: AttemptView, gpus: dict[Place, Gauge]) -> Iterator[Anomaly | None]:
        if len(gpus) < self.config.least_gpus:
            return
        usual = median(gauge.mean for gauge in gpus.values())
        for place, gauge in sorted(gpus.items()):
            if gauge.mean >= max(self.config.hot_c, usual + self.config.above_peers_c):
                text = f"{gauge.mean:.0f} C on average, over {self.config.hot_c:g} C"
                peers = f"median of {len(gpus)} GPUs: {usual:.0f} C"
                yield self._finding(window, view, "gpu_temperature", place, text, peers, "hardware")

    def _finding(
        self, window: AttemptWindow, view: AttemptView, kind: str, place: Place, text: str, peers: str, area: Area
    ) -> Anomaly | None:
        node, device = place
        key = _key(node, device, kind)
        if not is_due(self.state.told, key, window.end, self.config.again_s):
            return None
        rank = window.users.get(place)
        used = "" if rank is None else f"rank {rank}'s "
        said = f"{used}{said_device(node, device, kind)}: {text}"
        return self.anomaly(
            window,
            key,
            onset=window.start,
            precision_ns=window.end - window.start,
            axis="space",
            layer="hardware",
            symptom="slowdown",
            area=area,
            grounds="hardware_unlike",
            severity="info",
            text=said,
            peers=peers,
            phase=view.phase,
            suspects=[Suspect(rank=rank, node=node, device=device or None, score=0.3, why=said)],
        )


def _key(node: str, device: str, kind: str) -> str:
    return f"{node}|{device}|{kind}"


def _levels(window: AttemptWindow) -> dict[str, dict[Place, Gauge]]:
    """What nodes show in this window, by kind and place; of two sources of one device the first by name counts."""
    found: dict[str, dict[Place, Gauge]] = {}
    for summary in window.nodes:
        for gauge in summary.measured:
            measure = measure_of(gauge.name)
            if measure is not None and measure.kind in ("port_state", "port_rate", "gpu_temperature"):
                device = gauge.device or ""
                place = summary.identity.node, pci_of(device) or device
                found.setdefault(measure.kind, {}).setdefault(place, gauge)
    return found
