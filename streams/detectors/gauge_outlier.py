"""Cross-rank outliers of sampled metrics, per window, with continuity: a rank unlike its peers for k of n windows.

Continuity buys precision (Minder: without it .757 instead of .904). Hardware metrics are rarely the cause of slowness,
so a finding is information: it supports or explains an incident, it never opens one.
"""

from __future__ import annotations

import msgspec
import numpy as np

from schemas.results import Anomaly, Gauge
from streams.checks import require
from streams.detectors.registry import JobDetector, register
from streams.view import AttemptView, AttemptWindow


class GaugeOutlierConfig(msgspec.Struct, frozen=True, kw_only=True):
    """``mads`` from the peers' median, with a floor of a share of it, in ``k`` of the last ``n`` windows.

    Groups of fewer than ``least_peers`` are not compared.
    """

    mads: float = 5.0
    floor: float = 0.1
    least_peers: int = 4
    k: int = 3
    n: int = 4

    def __post_init__(self) -> None:
        require(self, above_0=("mads", "floor", "least_peers", "k"))
        if self.k > self.n:
            raise ValueError(f"k windows of n: {self.k} of {self.n} cannot be")


class GaugeOutlierState(msgspec.Struct, kw_only=True):
    """The last verdicts (-1 low, 0, 1 high) by ``metric|rank``."""

    verdicts: dict[str, list[int]] = {}


@register
class GaugeOutlier(JobDetector[GaugeOutlierConfig, GaugeOutlierState]):
    """Contrasts window means of each metric within peer groups."""

    name = "gauge_outlier"
    config_type = GaugeOutlierConfig
    state_type = GaugeOutlierState

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """One finding a metric and rank, in the window in which it becomes continuous."""
        means: dict[str, dict[int, Gauge]] = {}
        for summary in window.summaries:
            for gauge in summary.measured:
                if summary.identity.rank is not None and gauge.device is None:
                    means.setdefault(gauge.name, {})[summary.identity.rank] = gauge
        found = []
        for name in sorted(means):
            for group in view.peer_groups():
                present = [rank for rank in group if rank in means[name]]
                if len(present) >= self.config.least_peers:
                    found.extend(self._contrast(view, window, name, {rank: means[name][rank] for rank in present}))
        return found

    def _contrast(self, view: AttemptView, window: AttemptWindow, name: str, gauges: dict[int, Gauge]) -> list[Anomaly]:
        values = np.array([gauge.mean for gauge in gauges.values()])
        center = float(np.median(values))
        spread = max(float(np.median(np.abs(values - center))), self.config.floor * abs(center), 1e-12)
        found = []
        for rank, value in zip(gauges, values.tolist(), strict=True):
            side = 0 if abs(value - center) <= self.config.mads * spread else (1 if value > center else -1)
            key = f"{name}|{rank}"
            before = self.state.verdicts.get(key, [])
            after = [*before, side][-self.config.n :]
            self.state.verdicts[key] = after
            if side and after.count(side) == self.config.k and before.count(side) < self.config.k:
                found.append(self._finding(view, window, name, rank, value, center))
        return found

    def _finding(
        self, view: AttemptView, window: AttemptWindow, name: str, rank: int, value: float, center: float
    ) -> Anomaly:
        text = f"{name} of rank {rank} {value:.4g} in {self.config.k} of the last {self.config.n} windows"
        return self.anomaly(
            window,
            f"{name}|{rank}",
            onset=window.start,
            axis="space",
            layer="metric",
            symptom="slowdown",
            area="unknown",
            grounds="unlike_peers",
            severity="info",
            text=text,
            peers=f"peers' median {center:.4g}",
            phase=view.phase,
            suspects=[view.suspect(rank, 0.3, text)],
        )
