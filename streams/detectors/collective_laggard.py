"""Collectives during a stall (hang): who never enqueued what the group waits for, or took two in the wrong order.

Per group, from dumps: ranks that wait at sequence k against ranks that never came to k. A laggard that waits in
another group is a link of a chain, not its beginning. Where two groups wait for each other, the few of those that
belong to both stand apart who took the two operations in the other order. Dumps that show no sends of a job that has
pipeline stages cannot tell who waits in one: then laggards are only *perhaps* to blame.
"""

from __future__ import annotations

import msgspec

from schemas.identity import said_ranks
from schemas.results import Anomaly, CollectiveState, Suspect
from streams.detectors.registry import JobDetector, register
from streams.stall import Stall, StallRule, stall_of
from streams.view import AttemptView, AttemptWindow

GROUPS_KEPT = 256


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
                groups = self.state.reached.setdefault(summary.identity.rank, {})
                groups.update({one.group: one for one in summary.collectives})
                latest = sorted(groups.values(), key=lambda one: (one.captured, one.group))[-GROUPS_KEPT:]
                self.state.reached[summary.identity.rank] = {one.group: one for one in latest}
        stall = stall_of(view, window, self.config.stall)
        if stall is None:
            return []
        current = {
            rank: {name: one for name, one in groups.items() if one.captured > stall.since + 2 * stall.step}
            for rank, groups in sorted(self.state.reached.items())
        }
        return self._contrast(view, window, stall, {rank: groups for rank, groups in current.items() if groups})

    def _contrast(
        self, view: AttemptView, window: AttemptWindow, stall: Stall, current: dict[int, dict[str, CollectiveState]]
    ) -> list[Anomaly]:
        waiting = {
            rank: [one for one in groups.values() if one.last_enqueued > one.last_completed]
            for rank, groups in current.items()
        }
        blocked = sorted(rank for rank, waits in waiting.items() if waits)
        behind = {
            rank: missed
            for rank, missed in _laggards(current, waiting).items()
            if not any(one.outstanding for one in current[rank].values())
        }
        if blocked and 0 < len(behind) < len(blocked):
            grounds = "never_enqueued" if _shows_all_waits(view, current) else "perhaps_waiting"
            return [self._finding(view, window, stall, current, grounds, behind, blocked)]
        apart = _out_of_order(current)
        if apart:
            rest = [rank for rank in blocked if rank not in apart]
            return [self._finding(view, window, stall, current, "out_of_order", apart, rest)]
        return []

    def _finding(
        self,
        view: AttemptView,
        window: AttemptWindow,
        stall: Stall,
        current: dict[int, dict[str, CollectiveState]],
        grounds: str,
        apart: dict[int, CollectiveState],
        blocked: list[int],
    ) -> Anomaly:
        first = apart[min(apart)]
        operation = f"{first.operation} {first.last_enqueued} of group {first.group}"
        return self.anomaly(
            window,
            "job",
            onset=stall.since,
            axis="space",
            layer="collective",
            symptom="hang",
            area="code" if grounds == "out_of_order" else "unknown",
            grounds=grounds,
            severity="critical" if stall.critical else "warning",
            text=f"{said_ranks(apart)} never enqueued {operation}{_REMARK.get(grounds, '')}",
            peers=f"{said_ranks(blocked)} wait in collectives",
            iteration=stall.iteration,
            phase=stall.phase,
            suspects=[self._suspect(view, rank, apart[rank], grounds) for rank in sorted(apart)],
            victims=blocked,
            unobserved=sorted(view.expected - set(current)),
        )

    def _suspect(self, view: AttemptView, rank: int, missed: CollectiveState, grounds: str) -> Suspect:
        operation = f"{missed.operation} {missed.last_enqueued} of group {missed.group}"
        why = (
            f"left out {operation} and went on to the next, unlike its peers in both groups"
            if grounds == "out_of_order"
            else f"never enqueued {operation}, nothing outstanding"
        )
        return view.suspect(rank, 0.9, why)


_REMARK = {"perhaps_waiting": "; the dumps show no sends, so some of them may only wait in one"}


def _shows_all_waits(view: AttemptView, current: dict[int, dict[str, CollectiveState]]) -> bool:
    """Whether a rank without an outstanding operation really waits for nobody, as far as dumps can show."""
    states = [one for groups in current.values() for one in groups.values()]
    one_group = len({one.group for one in states}) == 1
    return any(one.shows_sends for one in states) or one_group or view.layout.get("pp") == 1


def _out_of_order(current: dict[int, dict[str, CollectiveState]]) -> dict[int, CollectiveState]:
    """Of the ranks in two groups that wait for each other, the minority and the operation that it left out.

    Most wait in one group and have not come to the other's operation; the few wait in the other and have not come to
    the first's: the order of most is the program's.
    """
    names = sorted({name for groups in current.values() for name in groups})
    for one in names:
        for other in names:
            both = [rank for rank, groups in current.items() if one in groups and other in groups]
            held = _held(current, both, one, other)
            passed = _held(current, both, other, one)
            if held and passed and len(held) + len(passed) == len(both) and 2 * len(passed) < len(held):
                left_out = max((current[rank][one] for rank in held), key=lambda state: state.last_enqueued)
                return dict.fromkeys(passed, left_out)
    return {}


def _held(current: dict[int, dict[str, CollectiveState]], both: list[int], one: str, other: str) -> list[int]:
    """Ranks that wait in ``one`` and are behind the furthest in ``other``."""
    furthest = max((current[rank][other].last_enqueued for rank in both), default=0)
    return [
        rank
        for rank in both
        if current[rank][one].last_enqueued > current[rank][one].last_completed
        and current[rank][other].last_enqueued < furthest
    ]


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
