"""Collectives during a stall (hang): who never enqueued what the group waits for, or took two in the wrong order.

Per group, from dumps: ranks that wait at sequence k against ranks that never came to k. A laggard that waits in
another group is a link of a chain, not its beginning. Where two groups wait for each other, the few of those that
belong to both stand apart who took the two operations in the other order. Dumps that show no sends of a job that has
pipeline stages cannot tell who waits in one: then laggards are only *perhaps* to blame. A rank that has not completed
what most others of its group have is not waiting for them: its device has stopped, whatever it went on to enqueue.

Where none of this tells the ranks apart, the earliest blocked group is named instead, and nobody: whether all have
joined and none completes it (a *communication hang*, by C4's word), one of it was not observed, most have not come to
what a few wait for, who may as well be ahead, each group waits for ranks of another, or the operations do not match.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from schemas.identity import said_ranks
from schemas.results import Anomaly, Area, CollectiveState
from streams.blocked import (
    Blocked,
    blocked_groups,
    never_came,
    never_completed,
    never_started,
    unmatched,
    waiting_ranks,
)
from streams.collectives import States, awaited, mismatched, out_of_order, shows_all_waits
from streams.detectors.registry import JobDetector, register
from streams.stall import SECOND, Stall, StallRule, over, stall_of
from streams.view import AttemptView, AttemptWindow

GROUPS_KEPT = 256
SAID_GROUPS = 3


class CollectiveLaggardConfig(msgspec.Struct, frozen=True, kw_only=True):
    """When a job counts as standing still."""

    stall: StallRule = StallRule()


class CollectiveLaggardState(msgspec.Struct, kw_only=True):
    """Each rank's latest state by group."""

    reached: States = {}


class _Words(msgspec.Struct, frozen=True):
    """What is said of a rank that stands apart, the operation in the braces, and what it is in the hang."""

    text: str
    why: str
    kind: str
    area: Area = "unknown"


_NEVER = "never enqueued {}, nothing outstanding"
_WORDS = {
    "never_enqueued": _Words("never enqueued {}", _NEVER, "blocker"),
    "outrun": _Words("never enqueued {}", "never enqueued {}, unlike peers that wait for the same", "blocker"),
    "perhaps_waiting": _Words(
        "never enqueued {}; the dumps show no sends, so some of them may only wait in one", _NEVER, "blocker"
    ),
    "out_of_order": _Words(
        "never enqueued {}",
        "left out {} and went on to the next, unlike its peers in both groups",
        "mismatched",
        "code",
    ),
    "mismatched": _Words(
        "enqueued {}, unlike most that wait there",
        "enqueued {} where its peers enqueued something else",
        "mismatched",
        "code",
    ),
    "never_started": _Words(
        "enqueued and did not begin {}",
        "its device has not begun {}, which those of its peers have",
        "stopped_device",
        "hardware",
    ),
    "never_completed": _Words(
        "never completed {}", "has not completed {}, which its peers have", "stopped_device", "hardware"
    ),
}
_NOT_COMMUNICATION = frozenset({"never_enqueued", "perhaps_waiting", "out_of_order"})
"""Grounds by which somebody has not come to what others wait for: C4's *non-communication hang*."""


_AREAS: dict[str, Area] = {"none_completed": "network", "unmatched": "code"}
"""The likely side, where nobody is named."""


class _Apart(msgspec.Struct, frozen=True):
    """A rank's state, or that of a peer that waits for it, and the words for what it shows."""

    state: CollectiveState
    words: _Words


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
        stall = stall_of(view, window, self.config.stall) or self._by_dumps(view, window)
        if stall is None:
            return []
        current = {
            rank: {name: one for name, one in groups.items() if one.captured > stall.since + 2 * stall.step}
            for rank, groups in sorted(self.state.reached.items())
        }
        found = self._contrast(view, window, stall, {rank: groups for rank, groups in current.items() if groups})
        return [found] if found is not None else []

    def _by_dumps(self, view: AttemptView, window: AttemptWindow) -> Stall | None:
        """The stall that dumps show by themselves, where no iteration was ever reported: half of them wait for long."""
        if view.clock.time is not None or over(view):
            return None
        waits = [
            [one for one in groups.values() if _long(one, self.config.stall)] for groups in self.state.reached.values()
        ]
        if 2 * sum(map(bool, waits)) < len(waits) or not any(waits):
            return None
        since = min(one.oldest_at for found in waits for one in found)
        silence = window.end - since
        return Stall(
            since=since, silence=silence, step=0, iteration=None, phase=view.phase, critical=True, settled=since
        )

    def _contrast(self, view: AttemptView, window: AttemptWindow, stall: Stall, current: States) -> Anomaly | None:
        blocked = waiting_ranks(current)
        certain = shows_all_waits(current) or view.layout.get("pp") == 1
        for grounds, apart in _apart(current, blocked, certain=certain):
            if apart:
                return self._finding(view, window, stall, current, grounds, apart, blocked)
        return self._unnamed(view, window, stall, current, blocked)

    def _finding(
        self,
        view: AttemptView,
        window: AttemptWindow,
        stall: Stall,
        current: States,
        grounds: str,
        apart: dict[int, _Apart],
        blocked: list[int],
    ) -> Anomaly:
        victims = [rank for rank in blocked if rank not in apart]
        said: dict[str, list[int]] = {}
        for rank, one in sorted(apart.items()):
            said.setdefault(one.words.text, []).append(rank)
        told = [f"{said_ranks(ranks)} {text.format(_operation(apart[ranks[0]].state))}" for text, ranks in said.items()]
        kind = "non-communication hang: " if grounds in _NOT_COMMUNICATION else ""
        return self.anomaly(
            window,
            "job",
            onset=stall.since,
            axis="space",
            layer="collective",
            symptom="hang",
            area=_WORDS[grounds].area,
            grounds=grounds,
            severity="critical" if stall.critical else "warning",
            text=f"{kind}{'; '.join(told)}",
            peers=f"{said_ranks(victims)} wait in collectives{_UNTIMED if _untimed(current) else ''}",
            iteration=stall.iteration,
            phase=stall.phase,
            suspects=[
                view.suspect(rank, 0.9, one.words.why.format(_operation(one.state)), one.words.kind)
                for rank, one in sorted(apart.items())
            ],
            victims=victims,
            unobserved=sorted(view.expected - set(current)),
        )

    def _unnamed(
        self, view: AttemptView, window: AttemptWindow, stall: Stall, current: States, blocked: list[int]
    ) -> Anomaly | None:
        """What the earliest blocked group shows where it does not tell the ranks apart."""
        groups = blocked_groups(current)
        unlike = unmatched(current)
        if not groups and not unlike:
            return None
        unseen = {rank for group in groups for rank in group.unseen}
        if unlike:
            told = " and ".join(f"{said_ranks(ranks)} {operation}" for _, ranks, operation in unlike[:SAID_GROUPS])
            grounds, text = (
                "unmatched",
                f"of group {unlike[0][0]} {told} do not match, and no majority tells who is wrong",
            )
        else:
            grounds, text = _why_nobody(groups, blocked, unseen)
        return self.anomaly(
            window,
            "job",
            onset=stall.since,
            axis="space",
            layer="collective",
            symptom="hang",
            area=_AREAS.get(grounds, "unknown"),
            grounds=grounds,
            severity="critical" if stall.critical else "warning",
            text=text,
            peers=f"{said_ranks(blocked)} wait in collectives{_UNTIMED if _untimed(current) else ''}",
            iteration=stall.iteration,
            phase=stall.phase,
            victims=blocked,
            unobserved=sorted((view.expected | unseen) - set(current)),
        )


def _apart(states: States, blocked: list[int], *, certain: bool) -> Iterable[tuple[str, dict[int, _Apart]]]:
    """Who stands apart and on which grounds, the surest first; nobody where it would not be a minority."""
    device = _told("never_completed", never_completed(states))
    waiting = set(blocked)
    behind = {
        rank: _Apart(one, _WORDS["outrun" if rank in waiting else "never_enqueued"])
        for rank, one in never_came(states).items()
    }
    both = behind | device if certain else device
    if device and 2 * len(both) < len(states):
        yield "never_completed", both
    elif 2 * len(device) < len(states):
        yield "never_completed", device
    if 0 < len(behind) < len(waiting - set(behind)):
        perhaps = {rank: _Apart(one.state, _WORDS["perhaps_waiting"]) for rank, one in behind.items()}
        yield ("never_enqueued", behind) if certain else ("perhaps_waiting", perhaps)
    yield "never_started", _told("never_started", never_started(states))
    yield "out_of_order", _told("out_of_order", out_of_order(states))
    yield "mismatched", _told("mismatched", mismatched(states))


def _told(grounds: str, states: dict[int, CollectiveState]) -> dict[int, _Apart]:
    return {rank: _Apart(one, _WORDS[grounds]) for rank, one in states.items()}


def _why_nobody(groups: list[Blocked], blocked: list[int], unseen: set[int]) -> tuple[str, str]:
    """Grounds on which nobody is named, and what is said; groups that wait for others are followed to those."""
    waiting = set(blocked)
    few = [group for group in groups if not waiting.issuperset(group.absent)]
    if few:
        group = few[0]
        idle = [rank for rank in group.absent if rank not in waiting]
        ahead = f"{said_ranks(idle)} have not come to {group.said}, and {said_ranks(group.waiting)} wait there"
        return "few_ahead", f"{ahead}: it cannot be told who is behind and who ahead"
    ends = [group for group in groups if not group.absent]
    if unseen:
        first = next((group for group in [*ends, *groups] if group.unseen), groups[0])
        all_joined = "one_unobserved" if len(unseen) == 1 else "some_unobserved"
        grounds = all_joined if len(ends) == len(groups) else "perhaps_unobserved"
        return (
            grounds,
            f"{said_ranks(first.waiting)} wait in {first.said}; there is no dump of {said_ranks(first.unseen)}",
        )
    if not ends:
        told = [f"{said_ranks(group.waiting)} in {group.said}" for group in groups[:SAID_GROUPS]]
        return "different_collectives", f"{', '.join(told)}: each group waits for ranks that wait in another"
    first = ends[0]
    passed = f", which {said_ranks(first.passed)} completed" if first.passed else ", none has completed it"
    return "none_completed", f"communication hang: all ranks of the group have joined {first.said}{passed}"


_UNTIMED = "; when the dumps were captured is not known, they are taken for those of a timeout"


def _untimed(states: States) -> bool:
    return any(one.inferred for groups in states.values() for one in groups.values())


def _operation(state: CollectiveState) -> str:
    sequence, operation = awaited(state)
    return f"{operation or 'operation'} {sequence} of group {state.group}"


def _long(one: CollectiveState, rule: StallRule) -> bool:
    """Whether an operation had waited for long when the dump was captured."""
    return one.oldest >= 0 and one.captured - one.oldest_at >= rule.critical_s * SECOND
