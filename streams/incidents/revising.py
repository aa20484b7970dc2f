"""What would be said of an incident, and whether that is anything new."""

from __future__ import annotations

import msgspec

from schemas.results import Incident
from streams.incidents.opened import Open
from streams.incidents.stacks_seen import apart


class Draft(msgspec.Struct, kw_only=True):
    """An incident with what would be said of it if it were the only one.

    ``near_ns`` is how far apart one change may be dated. ``is_over``: it is no longer kept as open.
    """

    incident: Open
    says: Incident
    near_ns: int
    is_over: bool = False


_TELLING = (
    "verdict",
    "symptom",
    "area",
    "severity",
    "status",
    "reason",
    "onset",
    "templates",
    "unobserved",
    "missing",
    "victims",
    "merged_into",
)


def differs(before: Incident, after: Incident) -> bool:
    """Whether a revision says anything new; evidence of one more window of the same alone does not."""
    if any(getattr(before, name) != getattr(after, name) for name in _TELLING):
        return True
    ranks = [[suspect.rank for suspect in one.suspects] for one in (before, after)]
    kinds = [{(e.layer, e.detector) for e in one.evidence} for one in (before, after)]
    # Where somebody stands apart may change with each sample, who does so does not.
    moved = apart(before.stacks) != apart(after.stacks)
    return ranks[0] != ranks[1] or kinds[0] != kinds[1] or moved
