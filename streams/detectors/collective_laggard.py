"""Collectives during a stall (hang): who never enqueued what the group waits for, or took two in the wrong order.

Per group, from dumps: ranks that wait at sequence k against ranks that never came to k. A laggard that waits in
another group is a link of a chain, not its beginning. Where two groups wait for each other, the few of those that
belong to both stand apart who took the two operations in the other order. Dumps that show no sends of a job that has
pipeline stages cannot tell who waits in one: then laggards are only *perhaps* to blame. A rank that has not completed
what all others of its group have is not waiting for them: its device has stopped, whatever it went on to enqueue.
Where dumps tell nobody apart, the counts that watchdogs print may.
"""

from __future__ import annotations

import msgspec

from schemas.identity import said_ranks
from schemas.results import Anomaly, Area, CollectiveState
from streams.collectives import States, awaited, laggards, mismatched, out_of_order, shows_all_waits, stopped, waits_of
from streams.detectors.registry import JobDetector, register
from streams.printed_progress import apart, dumped_of, printed_of
from streams.stall import SECOND, Stall, StallRule, over, stall_of
from streams.view import AttemptView, AttemptWindow

GROUPS_KEPT = 256
TOGETHER_NS = 60 * SECOND
"""Within how long of one another ranks print the same timeout."""


class CollectiveLaggardConfig(msgspec.Struct, frozen=True, kw_only=True):
    """When a job counts as standing still."""

    stall: StallRule = StallRule()


class CollectiveLaggardState(msgspec.Struct, kw_only=True):
    """Each rank's latest state by group."""

    reached: States = {}


@register
class CollectiveLaggard(JobDetector[CollectiveLaggardConfig, CollectiveLaggardState]):
    """Contrasts how far the ranks of each group have come."""

    name = "collective_laggard"
    config_type = CollectiveLaggardConfig
    state_type = CollectiveLaggardState

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """At most one finding a window, and only for what was captured or printed during a stall."""
        for summary in window.summaries:
            if summary.identity.rank is not None:
                groups = self.state.reached.setdefault(summary.identity.rank, {})
                groups.update({one.group: one for one in summary.collectives})
                latest = sorted(groups.values(), key=lambda one: (one.captured, one.group))[-GROUPS_KEPT:]
                self.state.reached[summary.identity.rank] = {one.group: one for one in latest}
        stall = (
            stall_of(view, window, self.config.stall) or self._by_dumps(view, window) or self._by_lines(view, window)
        )
        if stall is None:
            return []
        current = {
            rank: {name: one for name, one in groups.items() if one.captured > stall.since + 2 * stall.step}
            for rank, groups in sorted(self.state.reached.items())
        }
        current = {rank: groups for rank, groups in current.items() if groups}
        return self._contrast(view, window, stall, dumped_of(current)) or self._by_counts(view, window, stall, current)

    def _by_dumps(self, view: AttemptView, window: AttemptWindow) -> Stall | None:
        """The stall that dumps show by themselves, where no iteration was ever reported: half of them wait for long."""
        if view.clock.time is not None or over(view):
            return None
        dumped = dumped_of(self.state.reached)
        waits = [[one for one in groups.values() if _long(one, self.config.stall)] for groups in dumped.values()]
        if 2 * sum(map(bool, waits)) < len(waits) or not any(waits):
            return None
        since = min(one.oldest_at for found in waits for one in found)
        silence = window.end - since
        return Stall(
            since=since, silence=silence, step=0, iteration=None, phase=view.phase, critical=True, settled=since
        )

    def _by_lines(self, view: AttemptView, window: AttemptWindow) -> Stall | None:
        """The stall that watchdogs print: half of all ranks have just said for how long they have waited.

        Their processes end at once, so the attempt may be over by the end of the window.
        """
        printing = any(one.printed for summary in window.summaries for one in summary.collectives)
        if not printing or view.stopped is not None or view.finished or view.superseded is not None:
            return None
        waits = [
            [one.oldest_at for one in groups.values() if one.captured > window.end - TOGETHER_NS and self._waited(one)]
            for groups in printed_of(self.state.reached).values()
        ]
        if 2 * sum(map(bool, waits)) < len(view.expected) or not any(waits):
            return None
        since = min(begun for found in waits for begun in found)
        return Stall(
            since=since,
            silence=window.end - since,
            step=0,
            iteration=view.clock.iteration,
            phase=view.phase,
            critical=True,
            settled=since,
        )

    def _waited(self, one: CollectiveState) -> bool:
        """Whether a line says that an operation had been under way for long."""
        return one.oldest_at > 0 and _long(one, self.config.stall)

    def _by_counts(self, view: AttemptView, window: AttemptWindow, stall: Stall, current: States) -> list[Anomaly]:
        found = apart(current, view.expected, world_known=view.world_size is not None)
        if found is None:
            return []
        printed = printed_of(current)
        blocked = sorted(rank for rank, waits in waits_of(printed).items() if waits)
        return [self._finding(view, window, stall, printed, *found, blocked)]

    def _contrast(self, view: AttemptView, window: AttemptWindow, stall: Stall, current: States) -> list[Anomaly]:
        blocked = sorted(rank for rank, waits in waits_of(current).items() if waits)
        device = stopped(current)
        if 0 < 2 * len(device) < len(current):
            return [self._finding(view, window, stall, current, "never_completed", device, blocked)]
        behind = laggards(current)
        if blocked and 0 < len(behind) < len(blocked):
            certain = shows_all_waits(current) or view.layout.get("pp") == 1
            grounds = "never_enqueued" if certain else "perhaps_waiting"
            return [self._finding(view, window, stall, current, grounds, behind, blocked)]
        apart = out_of_order(current)
        if apart:
            return [self._finding(view, window, stall, current, "out_of_order", apart, blocked)]
        unlike = mismatched(current)
        if unlike:
            return [self._finding(view, window, stall, current, "mismatched", unlike, blocked)]
        return []

    def _finding(
        self,
        view: AttemptView,
        window: AttemptWindow,
        stall: Stall,
        current: States,
        grounds: str,
        apart: dict[int, CollectiveState],
        blocked: list[int],
    ) -> Anomaly:
        words = _WORDS[grounds]
        victims = [rank for rank in blocked if rank not in apart]
        return self.anomaly(
            window,
            "job",
            onset=stall.since,
            axis="space",
            layer="collective",
            symptom="hang",
            area=words.area,
            grounds=grounds,
            severity="critical" if stall.critical else "warning",
            text=f"{said_ranks(apart)} {words.text.format(_operation(apart[min(apart)]))}",
            peers=f"{said_ranks(victims)} wait in collectives{_UNTIMED if _untimed(current) else ''}",
            iteration=stall.iteration,
            phase=stall.phase,
            suspects=[view.suspect(rank, 0.9, words.why.format(_operation(apart[rank]))) for rank in sorted(apart)],
            victims=victims,
            unobserved=sorted(view.expected - set(current)),
        )


class _Words(msgspec.Struct, frozen=True):
    """What is said of ranks that stand apart, the operation in the braces."""

    text: str
    why: str
    area: Area = "unknown"


_NEVER = "never enqueued {}, nothing outstanding"
_WORDS = {
    "never_enqueued": _Words("never enqueued {}", _NEVER),
    "perhaps_waiting": _Words(
        "never enqueued {}; the dumps show no sends, so some of them may only wait in one", _NEVER
    ),
    "out_of_order": _Words(
        "never enqueued {}", "left out {} and went on to the next, unlike its peers in both groups", "code"
    ),
    "mismatched": _Words(
        "enqueued {}, unlike most that wait there", "enqueued {} where its peers enqueued something else", "code"
    ),
    "never_completed": _Words("never completed {}", "has not completed {}, which all its peers have", "hardware"),
    "printed_behind": _Words("never enqueued {}, by printed counts", _NEVER),
    "printed_perhaps": _Words(
        "never enqueued {}, by printed counts; these do not show all that a rank may wait for", _NEVER
    ),
    "printed_mismatched": _Words(
        "enqueued {}, unlike most that wait there", "enqueued {} where its peers enqueued something else", "code"
    ),
    "printed_never_completed": _Words(
        "never completed {}", "has not completed {}, which all its peers have", "hardware"
    ),
}


_UNTIMED = "; when the dumps were captured is not known, they are taken for those of a timeout"


def _untimed(states: States) -> bool:
    return any(one.inferred for groups in states.values() for one in groups.values())


def _operation(state: CollectiveState) -> str:
    sequence, operation = awaited(state)
    return f"{operation} {sequence} of group {state.group}"


def _long(one: CollectiveState, rule: StallRule) -> bool:
    """Whether an operation had waited for long when the dump was captured."""
    return one.oldest >= 0 and one.captured - one.oldest_at >= rule.critical_s * SECOND
