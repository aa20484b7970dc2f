"""Collectives during a stall (hang): where the waits of all ranks begin, and who stands apart there.

From dumps: a rank that has nothing outstanding while others wait for it, one whose device has stopped or has not begun
what the others have, one that brought another operation than its peers or left one out (``streams/apart.py``). Dumps
that show no sends of a job that has pipeline stages cannot tell who waits in one: then who has nothing outstanding is
only *perhaps* to blame. Where nothing tells the ranks apart, the place is named instead, and nobody. Where dumps tell
nobody apart, the counts that watchdogs print may.
"""

from __future__ import annotations

import msgspec

from schemas.identity import said_ranks
from schemas.results import Anomaly, Area, CollectiveState
from streams.apart import Apart, apart
from streams.attempt_window import AttemptWindow
from streams.collectives import States
from streams.detectors.registry import JobDetector, register
from streams.printed_progress import PRINTED, dumped_of, printed_apart, printed_of
from streams.stall import SECOND, Stall, StallRule, over, stall_of
from streams.view import AttemptView

GROUPS_KEPT = 256
TOGETHER_NS = 60 * SECOND
"""Within how long of one another ranks print the same timeout."""


class CollectiveLaggardConfig(msgspec.Struct, frozen=True, kw_only=True):
    """When a job counts as standing still."""

    stall: StallRule = StallRule()


class CollectiveLaggardState(msgspec.Struct, kw_only=True):
    """Each rank's latest state by group."""

    reached: States = {}


class _Words(msgspec.Struct, frozen=True):
    """What is said of ranks that stand apart, the operation in the braces, and what they are in the hang.

    ``absent``: they have not come to what others wait for, C4's *non-communication hang*.
    """

    text: str
    why: str
    kind: str
    area: Area = "unknown"
    absent: bool = False


_IDLE = "never enqueued {}, nothing outstanding"
_OTHER = ("enqueued {}, unlike most that wait there", "enqueued {} where its peers enqueued something else")
_STOPPED = ("never completed {}", "has not completed {}, which its peers have")
_WORDS = {
    "never_enqueued": _Words("never enqueued {}", _IDLE, "blocker", absent=True),
    "outrun": _Words(
        "stopped short of its peers at {}",
        "stopped short of peers that wait for the same, at {}",
        "blocker",
        absent=True,
    ),
    "perhaps_waiting": _Words(
        "never enqueued {}, or waits in a send that the dumps do not show",
        "never enqueued {}, and its dump shows nothing outstanding",
        "blocker",
        absent=True,
    ),
    "out_of_order": _Words(
        "never enqueued {}",
        "left out {} and went on to the next, unlike its peers in both groups",
        "mismatched",
        "code",
        absent=True,
    ),
    "mismatched": _Words(*_OTHER, "mismatched", "code"),
    "never_started": _Words(
        "enqueued and did not begin {}",
        "its device has not begun {}, which those of its peers have",
        "stopped_device",
        "hardware",
    ),
    "never_completed": _Words(*_STOPPED, "stopped_device", "hardware"),
    "printed_behind": _Words("never enqueued {}, by printed counts", _IDLE, "blocker", absent=True),
    "printed_perhaps": _Words(
        "never enqueued {}, by printed counts; these do not show all that a rank may wait for",
        _IDLE,
        "blocker",
        absent=True,
    ),
    "printed_mismatched": _Words(*_OTHER, "mismatched", "code"),
    "printed_never_completed": _Words(*_STOPPED, "stopped_device", "hardware"),
}


@register
class CollectiveLaggard(JobDetector[CollectiveLaggardConfig, CollectiveLaggardState]):
    """Contrasts how far the ranks of each group have come."""

    name = "collective_laggard"
    grounds = frozenset(
        {
            "never_enqueued",
            "perhaps_waiting",
            "out_of_order",
            "mismatched",
            "never_started",
            "never_completed",
            "unmatched",
            "none_completed",
            "few_ahead",
            "one_unobserved",
            "some_unobserved",
            "perhaps_unobserved",
            "different_collectives",
            *PRINTED,
        }
    )
    config_type = CollectiveLaggardConfig
    state_type = CollectiveLaggardState

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """At most one finding a window, and only for what was captured or printed during a stall."""
        self._remember(window)
        stall = (
            stall_of(view, window, self.config.stall) or self._by_dumps(view, window) or self._by_lines(view, window)
        )
        if stall is None:
            return []
        current = {
            rank: {name: one for name, one in groups.items() if one.captured > stall.settled}
            for rank, groups in sorted(self.state.reached.items())
        }
        current = {rank: groups for rank, groups in current.items() if groups}
        dumped = dumped_of(current)
        stages = view.layout.get("pp")
        by_dumps = apart(dumped, stages=stages)
        if by_dumps is not None and by_dumps.ranks:
            return [self._finding(view, window, stall, dumped, by_dumps)]
        by_counts = printed_apart(current, view.expected, world_known=view.world_size is not None)
        if by_counts is not None:
            return [self._finding(view, window, stall, printed_of(current), by_counts)]
        return [self._finding(view, window, stall, dumped, by_dumps)] if by_dumps is not None else []

    def _remember(self, window: AttemptWindow) -> None:
        """Keep what is newest of each rank; a new dump shows all that there is, so what it leaves out is over."""
        for summary in window.summaries:
            if summary.identity.rank is not None and summary.collectives:
                groups = self.state.reached.setdefault(summary.identity.rank, {})
                groups.update({one.group: one for one in summary.collectives})
                dumped = max((one.captured for one in groups.values() if not one.printed), default=0)
                groups = {name: one for name, one in groups.items() if one.printed or one.captured == dumped}
                latest = sorted(groups.values(), key=lambda one: (one.captured, one.group))[-GROUPS_KEPT:]
                self.state.reached[summary.identity.rank] = {one.group: one for one in latest}

    def _by_dumps(self, view: AttemptView, window: AttemptWindow) -> Stall | None:
        """The stall that dumps show by themselves, where no iteration was ever reported: half of them wait for long."""
        if view.clock.time is not None or over(view):
            return None
        dumped = dumped_of(self.state.reached)
        waits = [[one for one in groups.values() if self._long(one)] for groups in dumped.values()]
        begun = sorted(min(one.oldest_at for one in found) for found in waits if found)
        if 2 * len(begun) < len(waits) or not begun:
            return None
        # A dump that was taken before most of them began to wait shows another time.
        settled = begun[len(begun) // 2]
        since = min(one.oldest_at for found in waits for one in found if one.captured > settled)
        return _stall(view, window, since, None, settled)

    def _by_lines(self, view: AttemptView, window: AttemptWindow) -> Stall | None:
        """The stall that watchdogs print: half of all ranks have just said for how long they have waited.

        Their processes end at once, so the attempt may be over by the end of the window.
        """
        printing = any(one.printed for summary in window.summaries for one in summary.collectives)
        if not printing or view.stopped is not None or view.finished or view.superseded is not None:
            return None
        waits = [
            [one.oldest_at for one in groups.values() if one.captured > window.end - TOGETHER_NS and self._long(one)]
            for groups in printed_of(self.state.reached).values()
        ]
        if 2 * sum(map(bool, waits)) < len(view.expected) or not any(waits):
            return None
        since = min(begun for found in waits for begun in found)
        return _stall(view, window, since, view.clock.iteration, since)

    def _long(self, one: CollectiveState) -> bool:
        """Whether an operation is known to have waited for long when this was seen."""
        return one.oldest >= 0 and one.oldest_at > 0 and one.captured - one.oldest_at >= self._critical_ns

    @property
    def _critical_ns(self) -> float:
        return self.config.stall.critical_s * SECOND

    def _finding(self, view: AttemptView, window: AttemptWindow, stall: Stall, states: States, found: Apart) -> Anomaly:
        words = _WORDS.get(found.grounds)
        victims = [rank for rank in found.blocked if rank not in found.ranks]
        one_of_each = {one.group: one for groups in states.values() for one in groups.values()}
        members = {rank for one in one_of_each.values() for rank in one.members}
        return self.anomaly(
            window,
            "job",
            onset=stall.since,
            axis="space",
            layer="collective",
            symptom="hang",
            area=words.area if words else _AREA.get(found.grounds, "unknown"),
            grounds=found.grounds,
            severity="critical" if stall.critical else "warning",
            text=_text(found) if found.ranks else _WHY_NOBODY[found.grounds](found),
            peers=f"{_they(victims)} in collectives{_UNTIMED if _untimed(states) else ''}",
            iteration=stall.iteration,
            phase=stall.phase,
            suspects=[
                view.suspect(rank, 0.9, _WORDS[one.grounds].why.format(one.operation), _WORDS[one.grounds].kind)
                for rank, one in found.ranks.items()
            ],
            victims=victims,
            unobserved=sorted((view.expected | members) - set(states)),
        )


def _stall(view: AttemptView, window: AttemptWindow, since: int, iteration: int | None, settled: int) -> Stall:
    return Stall(
        since=since,
        silence=window.end - since,
        step=0,
        iteration=iteration,
        phase=view.phase,
        critical=True,
        settled=settled,
    )


def _text(found: Apart) -> str:
    """Who stands apart by what, those with the same words together."""
    said: dict[str, list[int]] = {}
    for rank, one in found.ranks.items():
        said.setdefault(_WORDS[one.grounds].text.format(one.operation), []).append(rank)
    kind = "non-communication hang: " if _WORDS[found.grounds].absent else ""
    return kind + "; ".join(f"{said_ranks(ranks)} {text}" for text, ranks in said.items())


def _places(found: Apart) -> str:
    return "; ".join(place for place, _ in found.places) + _more(found)


def _who_waits_where(found: Apart) -> str:
    return "; ".join(f"{_they(ranks)} in {place}" for place, ranks in found.places) + _more(found)


def _they(ranks: list[int]) -> str:
    return f"{said_ranks(ranks)} {'waits' if len(ranks) == 1 else 'wait'}"


def _more(found: Apart) -> str:
    return f"; and so on at {found.more} more" if found.more else ""


def _none_completed(found: Apart) -> str:
    completed = f", which {said_ranks(found.others)} completed" if found.others else ", none has completed it"
    return f"communication hang: all ranks of the group have joined {_places(found)}{completed}"


def _few_ahead(found: Apart) -> str:
    ahead = f"{_who_waits_where(found)}, and {said_ranks(found.others)} did not come to it"
    return f"{ahead}: it cannot be told who is behind and who ahead"


def _unobserved(found: Apart) -> str:
    return f"{_who_waits_where(found)}; no dump shows whether {said_ranks(found.others)} came"


def _unmatched(found: Apart) -> str:
    told = "; ".join(f"{said_ranks(ranks)} in {operation}" for operation, ranks in found.places)
    return f"{told}: these do not match, and no majority tells who is wrong"


def _different(found: Apart) -> str:
    return f"{_who_waits_where(found)}: each group waits for ranks that wait in another"


_WHY_NOBODY = {
    "unmatched": _unmatched,
    "none_completed": _none_completed,
    "few_ahead": _few_ahead,
    "one_unobserved": _unobserved,
    "some_unobserved": _unobserved,
    "perhaps_unobserved": _unobserved,
    "different_collectives": _different,
}
_AREA: dict[str, Area] = {"none_completed": "network", "unmatched": "code"}
"""The likely side, where nobody is named."""
_UNTIMED = "; when the dumps were captured is not known, they are taken for those of a timeout"


def _untimed(states: States) -> bool:
    return any(one.inferred for groups in states.values() for one in groups.values())
