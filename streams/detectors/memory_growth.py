"""Memory that grows without end: of a rank unlike its peers, or of all, which is the job's.

Resident and device memory of each rank over three spans, of minutes, half an hour and hours, so that a leak is found
whether it is fast or slow and whenever it begins. Not while training starts up, nor while a rank that joins does. What
grows for minutes only may be a cache that fills: that is information, unless memory soon ends. A rank is named only if
its peers are known not to grow. Of a GPU whose user is not known its place is told and nobody is named; where all ranks
of a node are known by their GPUs, any other there is not theirs.
"""

from __future__ import annotations

from typing import Literal, get_args

import msgspec
import numpy as np

from schemas.results import Anomaly, Suspect
from streams.attempt_window import AttemptWindow
from streams.checks import require
from streams.comparable import ranks_compared
from streams.config import SECOND
from streams.contrast import warming_up
from streams.detectors.registry import JobDetector, register
from streams.gauge_words import said_who
from streams.gauges import OWN
from streams.lines.phases import QUIET_PHASES
from streams.memory_spans import MOST_NAMED, Growth, GrowthRule, MemoryFollower, MemorySpans, memory_of
from streams.metric_names import said_value
from streams.node_gauges import node_table, nodes_compared
from streams.stall import over
from streams.view import AttemptView

Grounds = Literal["memory_growth", "memory_growth_of_all", "memory_growth_of_device"]


class MemoryGrowthConfig(GrowthRule, frozen=True, kw_only=True):
    """What growth is, as ``GrowthRule`` has it.

    ``warm_up_windows`` of training do not count, where no iterations are known ``start_up_windows`` of the attempt, nor
    as many of a rank that came later.
    """

    warm_up_windows: int = 6
    start_up_windows: int = 30

    def __post_init__(self) -> None:
        require(self, above_0=("share", "least_mib"), shares=("few", "quiet"))
        if self.points < 8:
            raise ValueError("memory_growth: points must be 8 or more")


class MemoryGrowthState(msgspec.Struct, kw_only=True):
    """What is carried of ranks, and of devices of nodes, each node under its lowest rank."""

    ranks: MemorySpans = msgspec.field(default_factory=MemorySpans)
    nodes: MemorySpans = msgspec.field(default_factory=MemorySpans)


@register
class MemoryGrowth(JobDetector[MemoryGrowthConfig, MemoryGrowthState]):
    """Watches memory of processes and devices against its own past and against its peers'."""

    name = "memory_growth"
    grounds = frozenset(get_args(Grounds))
    version = 2
    config_type = MemoryGrowthConfig
    state_type = MemoryGrowthState

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """One finding in every window in which memory of ranks grows, and one for GPUs of which nobody knows whose."""
        if over(view) or self._starts_up(view, window):
            return []
        ranks = self._of_ranks(view, window)
        devices = self._of_devices(view, window)
        return [
            *([self._finding(view, window, ranks)] if ranks else []),
            *([self._of_places(view, window, devices)] if devices else []),
        ]

    def _of_ranks(self, view: AttemptView, window: AttemptWindow) -> list[Growth]:
        state, seen = self.state.ranks, ranks_compared(view, window)
        values = state.cells.fit(memory_of(seen, window.gauges.column("minima")))
        if view.phase in QUIET_PHASES:
            # A checkpoint and an evaluation hold what training does not.
            values[:] = np.nan
        values[:, self._joining(view, window)] = np.nan
        follower = MemoryFollower(state, self.config)
        return follower.take(values, seen, window.start, window.end, view.peer_groups())

    def _of_devices(self, view: AttemptView, window: AttemptWindow) -> list[Growth]:
        """What grows of GPUs whose user is not known; what nodes hold besides is mostly the kernel's cache."""
        state, seen = self.state.nodes, nodes_compared(view, window)
        values = state.cells.fit(memory_of(seen, node_table(view, window).column("minima")))
        values[[at for at, row in enumerate(state.cells.rows) if not row.device]] = np.nan
        values[:, self._placed(view, window)] = np.nan
        if view.phase in QUIET_PHASES:
            values[:] = np.nan
        follower = MemoryFollower(state, self.config)
        return follower.take(values, seen, window.start, window.end, view.peer_groups())

    def _placed(self, view: AttemptView, window: AttemptWindow) -> list[int]:
        """Places of the nodes all of whose ranks are known by their GPUs."""
        users = {rank for (node, _), rank in window.users.items() if node == view.node_of(rank)}
        missing = {view.node_of(rank) for rank in view.members if rank not in users}
        return [at for at, rank in enumerate(self.state.nodes.cells.ranks) if view.node_of(rank) not in missing]

    def _starts_up(self, view: AttemptView, window: AttemptWindow) -> bool:
        if view.clock.began is not None:
            return warming_up(view, window, self.config.warm_up_windows)
        return window.start < view.first + self.config.start_up_windows * (window.end - window.start)

    def _joining(self, view: AttemptView, window: AttemptWindow) -> list[int]:
        """Places of the ranks that came once training had begun, and not long ago; nothing tells when they train."""
        began = view.first if view.clock.began is None else view.clock.began
        since = max(began, window.start - self.config.start_up_windows * (window.end - window.start))
        ranks, members = self.state.ranks.cells.ranks, view.members
        return [at for at, rank in enumerate(ranks) if rank in members and members[rank].first_seen > since]

    def _finding(self, view: AttemptView, window: AttemptWindow, found: list[Growth]) -> Anomaly:
        """What grows now, what presses before the rest; of what single ranks and all do, the former says more."""
        pressing = [one for one in found if one.presses]
        presses, found = bool(pressing), pressing or found
        own = [one for one in found if one.own]
        ranks = sorted({one.rank for one in own}) if len({one.rank for one in own}) <= MOST_NAMED else []
        told = own if ranks else found
        most = max(told, key=lambda one: (one.last - one.first, -one.rank))
        name = most.measured.name + (f" ({most.measured.device})" if most.measured.device not in ("", OWN) else "")
        unit = most.measured.unit
        alike = sum(one.together for one in told if (one.measured, one.stride) == (most.measured, most.stride))
        who = said_who(view, ranks) if ranks else f"{alike} ranks" if alike > 1 else said_who(view, [most.rank])
        text = (
            f"{name} of {who} grows {'without end' if presses else 'for minutes'}: {said_value(most.first, unit)} "
            f"to {said_value(most.last, unit)} in {_said(most, window)}"
        )
        peers = "" if most.usual is None else f"those of its peers that do not grew by {said_value(most.usual, unit)}"
        grounds: Grounds = "memory_growth" if ranks else "memory_growth_of_all"
        return self.anomaly(
            window,
            grounds,
            onset=min(one.since for one in told),
            axis="time",
            layer="metric",
            symptom="memory",
            area="memory",
            grounds=grounds,
            severity="warning" if presses else "info",
            text=text,
            peers=peers,
            metric=most.measured.name,
            iteration=view.clock.iteration,
            phase=view.phase,
            suspects=[view.suspect(rank, 0.8, f"its {name} grows without end") for rank in ranks if presses],
            about=[] if presses else ranks,
        )

    def _of_places(self, view: AttemptView, window: AttemptWindow, found: list[Growth]) -> Anomaly:
        """What grows of GPUs of which nobody knows who uses them: where they are."""
        found = [one for one in found if one.presses] or found
        table = node_table(view, window)
        most = max(found, key=lambda one: (one.last - one.first, -one.rank))
        places = [
            (view.node_of(one.rank), table.called(one.rank, one.measured.name, one.measured.device)) for one in found
        ]
        node, device = places[found.index(most)]
        unit, alike = most.measured.unit, sum(one.together for one in found if one.stride == most.stride)
        others = f"; {alike} GPUs in all" if alike > 1 else ""
        return self.anomaly(
            window,
            "memory_growth_of_device",
            onset=min(one.since for one in found),
            axis="time",
            layer="metric",
            symptom="memory",
            area="memory",
            grounds="memory_growth_of_device",
            severity="warning" if most.presses else "info",
            text=f"{most.measured.name} of GPU {device or 'unknown'} of {node} grows "
            f"{'without end' if most.presses else 'for minutes'}: {said_value(most.first, unit)} to "
            f"{said_value(most.last, unit)} in {_said(most, window)}{others}",
            peers="" if most.usual is None else f"the same on other nodes grew by {said_value(most.usual, unit)}",
            metric=most.measured.name,
            iteration=view.clock.iteration,
            phase=view.phase,
            suspects=[
                Suspect(rank=None, node=node, device=device or None, score=0.5, why="memory of it grows without end")
                for node, device in sorted(set(places))[:MOST_NAMED]
                if most.presses
            ],
        )


def _said(one: Growth, window: AttemptWindow) -> str:
    """How long it has grown, how fast, and how long the rest lasts."""
    pace = f"{(window.end - one.since) / SECOND:.0f} s, {said_value(one.per_s * 3600, one.measured.unit)} an hour"
    if one.left is None or one.per_s <= 0:
        return pace
    return f"{pace}; at this pace nothing is left in {max(1, round(one.left / one.per_s / 60))} minutes"
