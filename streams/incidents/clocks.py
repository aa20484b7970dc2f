"""Whose times were corrected before an incident was dated: clocks in another zone, and times that ran ahead."""

from __future__ import annotations

from collections.abc import Iterable

from schemas.identity import MOST_RANKS, ranks_of, said_ranks
from schemas.results import Scope
from streams.incidents.decision import Decision
from streams.incidents.scope import said_some
from streams.view import AttemptView

MOST_KINDS = 4
_MINUTE = 60_000_000_000


def said_clocks(view: AttemptView, decision: Decision, scope: Scope) -> list[str]:
    """What was corrected of those whom an incident is of, of all where it names no place; a sentence for each kind."""
    if not view.clocks and not view.retimed:
        return []
    nodes = set(scope.nodes) or set(view.clocks)
    by_shift: dict[int, list[str]] = {}
    for node in sorted(nodes & view.clocks.keys()):
        by_shift.setdefault(view.clocks[node], []).append(node)
    said = [
        f"times of {said_some(own)} were set {_said(shift)}: the clock there shows another zone than others'"
        for shift, own in sorted(by_shift.items())
    ]
    ahead = _ahead(view, decision, ranks_of(scope.ranks, MOST_RANKS) or view.retimed)
    if ahead:
        said.append(f"times of {said_ranks(ahead)} ran ahead and count from when they came, so the onset is less exact")
    return said[:MOST_KINDS]


def _ahead(view: AttemptView, decision: Decision, ranks: Iterable[int]) -> list[int]:
    """Those whose times were not believed since the incident began."""
    return [rank for rank in ranks if view.retimed.get(rank, 0) > decision.onset]


def _said(shift: int) -> str:
    hours, minutes = divmod(abs(shift) // _MINUTE, 60)
    amount = " ".join(part for part in (f"{hours} h" if hours else "", f"{minutes} min" if minutes else "") if part)
    return f"{'back' if shift > 0 else 'forward'} by {amount}"
