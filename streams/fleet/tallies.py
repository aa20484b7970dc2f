"""The nodes of a cluster in its history: which run jobs, which were where jobs failed, and when that is told anew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

import msgspec

from schemas.fleet import NodeHistory, ReportedIncident
from streams.fleet.history import (
    DAY_NS,
    HALF_LIFE_DAYS,
    ONE_FAILURE_NS,
    Tally,
    cluster_rate,
    node_rate,
    said_history,
)
from streams.fleet.together import Counts, counts, is_own

MOST_NODES = 20_000
MOST_AT_ONCE = 8
"""An incident that points at more nodes says of none of them that it fails."""
TOLD_AGAIN_DAYS = 1.0


class TalliesState(msgspec.Struct, kw_only=True):
    """``nodes`` by name, ``whole`` of the cluster; ``left_out`` counts nodes for which there was no room."""

    nodes: dict[str, Tally] = {}
    whole: Tally = msgspec.field(default_factory=lambda: Tally(at=0))
    left_out: int = 0


class Tallies:
    """Keeps the state; ``running`` are the nodes of each job as it begins."""

    def __init__(self, state: TalliesState, running: Iterable[Collection[str]]) -> None:
        self.state = state
        self._jobs = Counter(node for nodes in running for node in nodes)
        self._changed: set[str] = set()

    def moved(self, before: Collection[str], after: Collection[str], time: int) -> None:
        """A job runs on other nodes than before from this time on."""
        for node in sorted(set(before) - set(after)):
            self._jobs[node] -= 1
            if not self._jobs[node]:
                del self._jobs[node]
                self._busy(node, 0, time)
        for node in sorted(set(after) - set(before)):
            self._jobs[node] += 1
            if self._jobs[node] == 1:
                self._busy(node, 1, time)

    def _busy(self, node: str, busy: int, time: int) -> None:
        tally = self._tally(node, time)
        if tally is not None and tally.busy != busy:
            tally.busy = busy
            self.state.whole.until(time)
            self.state.whole.busy += 1 if busy else -1

    def _tally(self, node: str, time: int) -> Tally | None:
        """The node's, brought up to the time; null where there is no room for another."""
        tally = self.state.nodes.get(node)
        if tally is None:
            if len(self.state.nodes) >= MOST_NODES:
                self._make_room(time)
            if len(self.state.nodes) >= MOST_NODES:
                self.state.left_out += 1
                return None
            tally = self.state.nodes[node] = Tally(at=time)
        tally.until(time)
        return tally

    def _make_room(self, time: int) -> None:
        """Forget a tenth of the nodes, idle ones of which least is known."""
        idle = [node for node, one in self.state.nodes.items() if not one.busy]
        for node in idle:
            self.state.nodes[node].until(time)
        known = sorted((self.state.nodes[node].failures, self.state.nodes[node].days, node) for node in idle)
        for _, _, node in known[: MOST_NODES // 10]:
            del self.state.nodes[node]

    def count(self, one: ReportedIncident, before: Counted, time: int) -> Counted:
        """Count what an incident says of nodes now, and take back what it said ``before`` and does no longer."""
        nodes = blamed(one)
        for node in [node for node in before.nodes if node not in nodes]:
            self._take_back(node, before.at, time)
        kept = [node for node in before.nodes if node in nodes]
        new = [node for node in nodes if node not in kept and self._add(node, one.onset, time)]
        if not new:
            return msgspec.structs.replace(before, nodes=kept)
        return Counted(nodes=sorted([*kept, *new]), at=before.at if kept else time)

    def _add(self, node: str, onset: int, time: int) -> bool:
        tally = self._tally(node, time)
        if tally is None or (tally.last is not None and abs(onset - tally.last) <= ONE_FAILURE_NS):
            return False
        self.state.whole.until(time)
        tally.failures, tally.counted = tally.failures + 1.0, tally.counted + 1
        self.state.whole.failures += 1.0
        tally.last = max(onset, tally.last or onset)
        self._changed.add(node)
        return True

    def _take_back(self, node: str, at: int, time: int) -> None:
        tally = self._tally(node, time)
        self.state.whole.until(time)
        left = float(2.0 ** (-(time - at) / DAY_NS / HALF_LIFE_DAYS))
        self.state.whole.failures = max(self.state.whole.failures - left, 0.0)
        if tally is not None and tally.counted:
            tally.failures, tally.counted = max(tally.failures - left, 0.0), tally.counted - 1
            tally.last = tally.last if tally.counted else None
            self._changed.add(node)

    def grown(self, nodes: Iterable[str], time: int) -> None:
        """Note which of these have run jobs for so long since they were last told that they are to be told again."""
        for node in nodes:
            tally = self.state.nodes.get(node)
            if tally is not None and tally.counted:
                tally.until(time)
                if abs(tally.days - tally.told) >= TOLD_AGAIN_DAYS:
                    self._changed.add(node)

    def told(self, cluster: str, time: int) -> list[NodeHistory]:
        """The history of nodes of which something has changed since the last call."""
        changed, self._changed = sorted(self._changed), set()
        self.state.whole.until(time)
        usual = cluster_rate(self.state.whole)
        return [self._history(cluster, node, self.state.nodes[node], usual, time) for node in changed]

    def _history(self, cluster: str, node: str, tally: Tally, usual: float, time: int) -> NodeHistory:
        tally.until(time)
        tally.told = tally.days
        rate = node_rate(tally, usual)
        return NodeHistory(
            cluster=cluster,
            node=node,
            published=time,
            incidents=round(tally.failures, 6),
            node_days=round(tally.days, 6),
            rate=round(rate, 6),
            cluster_rate=round(usual, 6),
            score=round(rate / usual, 3),
            counted=tally.counted,
            last=tally.last or 0,
        )

    def context(self, node: str, time: int) -> list[str]:
        """The history of a node in words, where there is more of it than what is failing now."""
        tally = self.state.nodes.get(node)
        if tally is None or not tally.counted:
            return []
        tally.until(time)
        if tally.counted == 1 and tally.days < TOLD_AGAIN_DAYS:
            return []
        self.state.whole.until(time)
        return [said_history(node, tally, self.state.whole)]


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes at which an incident was counted, and when (ns)."""

    nodes: list[str] = []
    at: int = 0


def blamed(one: ReportedIncident) -> list[str]:
    """The nodes of which an incident says that they fail: those it points at, if surely and for a cause of theirs."""
    sure = one.verdict == "supported" and counts(one) is Counts.YES and not is_own(one)
    return sorted(set(one.nodes)) if sure and len(set(one.nodes)) <= MOST_AT_ONCE else []
