"""The order of the ranks' first errors (crash): by time where clocks allow, else by how far each had come in a group.

Who prints first is mostly a victim, and clocks of two nodes differ: an order is said only where no precision and no
skew can turn it round. Where times cannot tell, collectives do: watchdogs say how far their rank had come in a group,
and whoever enqueued least stopped first, whatever its clock said. Evidence beside other findings; it names nobody.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from schemas.identity import said_ranks, shortened
from schemas.results import Anomaly, Fatal
from streams.attempt_window import AttemptWindow
from streams.checks import require
from streams.contrast import FAILING, few_of
from streams.detectors.registry import JobDetector, register
from streams.view import AttemptView

MOST_GROUPS = 64
LONGEST_NUMBER = 18


class FirstErrorsConfig(msgspec.Struct, frozen=True, kw_only=True):
    """``skew_s``: how far clocks of two nodes may differ. Fewer than ``least_peers`` reports of a group say nothing,
    and more than ``few`` of the ranks are not the first, or not behind.
    """

    skew_s: float = 2.0
    least_peers: int = 3
    few: float = 0.25

    def __post_init__(self) -> None:
        require(self, above_0=("skew_s", "least_peers"), shares=("few",))


class FirstError(msgspec.Struct, frozen=True, kw_only=True):
    """A rank's earliest error; it happened between ``earliest`` and ``latest`` by its node's clock (ns)."""

    earliest: int
    latest: int
    role: str
    text: str
    signature: str


class FirstErrorsState(msgspec.Struct, kw_only=True):
    """First errors by rank; by group, each rank's place in it and what it had enqueued, as first reported."""

    errors: dict[int, FirstError] = {}
    groups: dict[str, dict[int, tuple[int, int]]] = {}


@register
class FirstErrors(JobDetector[FirstErrorsConfig, FirstErrorsState]):
    """Puts the ranks' first errors in order where they have one."""

    name = "first_errors"
    supporting = True
    config_type = FirstErrorsConfig
    state_type = FirstErrorsState

    def observe(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        """Findings only in windows that bring a rank's first error."""
        fresh = False
        for summary in window.summaries:
            rank = summary.identity.rank
            for fatal in summary.fatals:
                if rank is not None and fatal.role in FAILING:
                    fresh |= self._take(rank, fatal)
        if not fresh or view.stopped is not None or view.finished:
            return []
        return [*self._by_time(view, window), *self._by_groups(view, window)]

    def _take(self, rank: int, fatal: Fatal) -> bool:
        """Take an error in; whether it tells anything new of the order."""
        earliest, latest = fatal.time - fatal.precision_ns, fatal.time + fatal.precision_ns
        known = self.state.errors.get(rank)
        first = known is None or earliest < known.earliest
        if first:
            self.state.errors[rank] = FirstError(
                earliest=earliest,
                latest=latest,
                role=fatal.role,
                text=shortened(fatal.text, 160),
                signature=fatal.signature,
            )
        return self._take_progress(rank, fatal.values) or first

    def _take_progress(self, rank: int, values: dict[str, str]) -> bool:
        place, enqueued = _number(values.get("rank")), _number(values.get("enqueued"))
        group = values.get("group", "")
        if not group or place is None or enqueued is None:
            return False
        if group not in self.state.groups and len(self.state.groups) >= MOST_GROUPS:
            return False
        reports = self.state.groups.setdefault(group, {})
        if rank in reports:
            return False
        reports[rank] = (place, enqueued)
        return True

    def _before(self, view: AttemptView, one: int, other: int) -> bool:
        """Whether the first error of ``one`` certainly came before that of ``other``."""
        node = view.node_of(one)
        skew = 0 if node and node == view.node_of(other) else int(self.config.skew_s * 1e9)
        return self.state.errors[one].latest + skew < self.state.errors[other].earliest

    def _by_time(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        errors = self.state.errors
        ranks = sorted(errors, key=lambda rank: (errors[rank].latest, rank))
        # Who is not certainly behind the one whose error was over first is not behind anybody.
        firsts = [rank for rank in ranks if not self._before(view, ranks[0], rank)]
        later = [rank for rank in ranks if all(self._before(view, first, rank) for first in firsts)]
        if not later or len(firsts) + len(later) < len(ranks) or len(firsts) > few_of(len(ranks), self.config.few):
            return []
        gap = min(errors[rank].earliest for rank in later) - max(errors[rank].latest for rank in firsts)
        first = errors[firsts[0]]
        own = first.role == "candidate"
        what = "failed first by an error of its own" if own else "noticed first that a peer was lost or late"
        return [
            self._finding(
                view,
                window,
                "first_error",
                onset=first.earliest,
                text=f"{said_ranks(firsts)} {what}: {first.text}",
                peers=f"{said_ranks(later)} followed, {gap / 1e9:.1f} s later or more",
                templates=[first.signature] if own and first.signature else [],
            )
        ]

    def _by_groups(self, view: AttemptView, window: AttemptWindow) -> list[Anomaly]:
        found = []
        for group, reports in sorted(self.state.groups.items()):
            places = [place for place, _ in reports.values()]
            # Groups of one name in several places of the layout cannot be told apart.
            if len(reports) < self.config.least_peers or len(set(places)) < len(places):
                continue
            counted = Counter(enqueued for _, enqueued in reports.values())
            most = max(counted, key=lambda enqueued: (counted[enqueued], enqueued))
            behind = sorted(rank for rank, (_, enqueued) in reports.items() if enqueued < most)
            if not behind or len(behind) > few_of(len(reports), self.config.few):
                continue
            least = min(reports[rank][1] for rank in behind)
            peers = [rank for rank, (_, enqueued) in reports.items() if enqueued >= most]
            found.append(
                self._finding(
                    view,
                    window,
                    f"behind_in_group|{group}",
                    onset=min(self.state.errors[rank].earliest for rank in reports),
                    text=f"{said_ranks(behind)} had enqueued {least} operations of group {group} when watchdogs spoke",
                    peers=f"{said_ranks(peers)} had enqueued {most}",
                    templates=[],
                )
            )
        return found

    def _finding(
        self,
        view: AttemptView,
        window: AttemptWindow,
        subject: str,
        onset: int,
        text: str,
        peers: str,
        templates: list[str],
    ) -> Anomaly:
        return self.anomaly(
            window,
            subject,
            onset=onset,
            axis="space",
            layer="log",
            symptom="crash",
            area="unknown",
            grounds=subject.partition("|")[0],
            severity="info",
            text=text,
            peers=peers,
            iteration=view.clock.iteration,
            phase=view.phase,
            templates=templates,
        )


def _number(text: str | None) -> int | None:
    """A number of no more digits than counters have, or null."""
    plain = text or ""
    return int(plain) if plain.isdecimal() and len(plain) <= LONGEST_NUMBER else None
