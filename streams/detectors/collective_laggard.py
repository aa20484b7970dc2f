"""Collectives during a stall (hang): who never enqueued what the group waits for.

Per group, from dumps: ranks that wait at sequence k against ranks that never came to k. A laggard that waits in
another group is a link of a chain, not its beginning; where every laggard waits somewhere nobody is named.
"""

from __future__ import annotations

import msgspec

from schemas.identity import rank_ranges
from schemas.results import Anomaly, CollectiveState, Suspect
from streams.detectors.registry import JobDetector, register
from streams.stall import Stall, StallRule, stall_of
from streams.view import AttemptView, AttemptWindow


class CollectiveLaggardConfig(msgspec.Struct, frozen=True, kw_only=True):
    """When a job counts as standing still."""

    stall: StallRule = StallRule()


class CollectiveLaggardState(msgspec.Struct, kw_only=True):
    """Each rank's latest state by group."""

    reached: dict[int, dict[str, CollectiveState]] = {}


@register
class CollectiveLaggard(JobDetector[CollectiveLaggardConfig, CollectiveLaggardState]):
    """Contrasts how far the ranks of each group have come."""

    name = "collective_laggard"
    config_type = CollectiveLaggardConfig
    state_type = CollectiveLaggardState

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """At most one finding a window, and only for dumps captured during a stall."""
        for summary in window.summaries:
            if summary.identity.rank is not None:
                for one in summary.collectives:
                    self.state.reached.setdefault(summary.identity.rank, {})[one.group] = one
        stall = stall_of(view, window, self.config.stall)
        if stall is None:
            return []
        current = {
            rank: {name: one for name, one in groups.items() if one.captured > stall.since + 2 * stall.step}
            for rank, groups in sorted(self.state.reached.items())
        }
        return self._contrast(view, window, stall, {rank: groups for rank, groups in current.items() if groups})

    def _contrast(
        self,
        view: AttemptView,
        window: AttemptWindow,
        stall: Stall,
        current: dict[int, dict[str, CollectiveState]],
    ) -> list[Anomaly]:
        waiting = {
            rank: [one for one in groups.values() if one.last_enqueued > one.last_completed]
            for rank, groups in current.items()
        }
        blocked = sorted(rank for rank, waits in waiting.items() if waits)
        behind: dict[int, CollectiveState] = {}
        for rank, laggard_in in _laggards(current, waiting).items():
            if not any(one.outstanding for one in current[rank].values()):
                behind[rank] = laggard_in
        if not blocked or not behind or len(behind) >= len(blocked):
            return []
        first = behind[min(behind)]
        return [
            self.anomaly(
                window,
                "job",
                onset=stall.since,
                axis="space",
                layer="collective",
                symptom="hang",
                area="unknown",
                grounds="never_enqueued",
                severity="critical" if stall.critical else "warning",
                text=f"rank(s) {rank_ranges(behind)} never enqueued {first.operation} {first.last_enqueued} "
                f"of group {first.group}; ranks {rank_ranges(blocked)} wait there",
                peers=f"{len(blocked)} ranks have an operation outstanding, rank(s) {rank_ranges(behind)} none",
                iteration=stall.iteration,
                phase=stall.phase,
                suspects=[self._suspect(view, rank, behind[rank]) for rank in sorted(behind)],
                victims=blocked,
                unobserved=sorted(view.expected - set(current)),
            )
        ]

    def _suspect(self, view: AttemptView, rank: int, missed: CollectiveState) -> Suspect:
        member = view.members.get(rank)
        operation = f"{missed.operation} {missed.last_enqueued} of group {missed.group}"
        return Suspect(
            rank=rank,
            node=view.node_of(rank),
            role=member.identity.role if member else "",
            coordinates=view.coordinates(rank),
            score=0.9,
            why=f"never enqueued {operation}, nothing outstanding",
        )


def _laggards(
    current: dict[int, dict[str, CollectiveState]], waiting: dict[int, list[CollectiveState]]
) -> dict[int, CollectiveState]:
    """Rank to the operation that it never enqueued while others of its group wait at it."""
    found: dict[int, CollectiveState] = {}
    for waits in waiting.values():
        for wait in waits:
            for rank, groups in current.items():
                own = groups.get(wait.group)
                if own is not None and own.last_enqueued < wait.last_enqueued:
                    known = found.get(rank)
                    if known is None or (wait.enqueued_at, wait.group) < (known.enqueued_at, known.group):
                        found[rank] = wait
    return found
