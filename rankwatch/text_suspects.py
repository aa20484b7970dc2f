"""Suspects as text: who, where, what they are while their peers wait, and why they are suspected."""

from __future__ import annotations

from collections.abc import Sequence

from schemas.identity import rank_ranges
from schemas.results import Incident, Suspect
from streams.incidents.scope import said_ranks_of, said_some

SHOWN_SUSPECTS = 16


def suspect_lines(incident: Incident) -> list[str]:
    """Those of whom the same is said in a line; of very many lines the first, and how many more suspects there are."""
    alike: dict[tuple[str, str, str, str], list[Suspect]] = {}
    for at, one in enumerate(incident.suspects):
        # Places without a rank are told one by one.
        own = "" if one.rank is not None else str(at)
        alike.setdefault((one.role, one.kind, f"{one.score:.2f}: {one.why}", own), []).append(one)
    groups = list(alike.values())
    more = sum(map(len, groups[SHOWN_SUSPECTS:]))
    rest = [f"and {more} more; --format json lists all"] if more else []
    return [*(suspect_line(*group) for group in groups[:SHOWN_SUSPECTS]), *rest]


def suspect_line(suspect: Suspect, *others: Suspect) -> str:
    """Which worker, where, and why it is suspected; ``others`` are those of whom the same is said."""
    all_of_them = (suspect, *others)
    role = f" {suspect.role}" if suspect.role else ""
    shared = [
        (axis, value)
        for axis, value in sorted(suspect.coordinates.items())
        if all(one.coordinates.get(axis) == value for one in others)
    ]
    at = "".join(f" {axis}={value}" for axis, value in shared)
    kind = f", {suspect.kind.replace('_', ' ')}" if suspect.kind else ""
    return f"{_called(all_of_them)}{role}{_on(all_of_them)}{at}, score {suspect.score:.2f}{kind}: {suspect.why}"


def _called(suspects: Sequence[Suspect]) -> str:
    """Who is suspected; of a place without a rank the switch or the device, where one is told."""
    ranks = [one.rank for one in suspects if one.rank is not None]
    if ranks:
        return said_ranks_of(rank_ranges(ranks))
    one = suspects[0]
    return f"switch {one.switch}" if one.switch else f"device {one.device}" if one.device else "unknown rank"


def _on(suspects: Sequence[Suspect]) -> str:
    """The nodes; a switch is on none."""
    if suspects[0].switch and not suspects[0].node:
        return ""
    return f" on {said_some(list(dict.fromkeys(one.node or 'an unknown node' for one in suspects)))}"
