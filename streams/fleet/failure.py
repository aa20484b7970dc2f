"""A failure of several jobs: its members, the place that they have in common, and the reason."""

from __future__ import annotations

from enum import Enum
from typing import Literal

import msgspec

from schemas.results import Verdict
from streams.fleet.together import Told

LEAST_JOBS = 2

PlaceKind = Literal["node", "switch", "storage", "fleet"]


class FleetReason(Enum):
    """Why incidents of several jobs are one failure."""

    SAME_NODE = "incidents of several jobs began together, and each points at this node"
    SAME_DEVICE = "incidents of several jobs began together, and each points at this device"
    ONLY_NODE = (
        "incidents of several jobs began together and point at this node, but too little ran elsewhere to compare"
    )
    SAME_SWITCH = "incidents of several jobs began together, and each points at a node under this switch"
    SAME_STORAGE = "several jobs were held up together, and nodes of each complain of this storage"
    SAME_ERROR = (
        "several jobs failed together of one error, which code, settings or data that they share explain as well"
    )
    CLUSTER_WIDE = "most jobs of the cluster were hit alike at once, and nothing tells of one place"


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Incidents that are one failure, in order of onset; ``there`` jobs are known at the place, ``elsewhere`` hit too.

    ``nodes`` are those of the place, and ``name`` is empty where none is named.
    """

    reason: FleetReason
    kind: PlaceKind
    name: str
    members: list[Told]
    verdict: Verdict
    nodes: list[str] = []
    devices: list[str] = []
    there: int = 0
    elsewhere: int = 0

    @property
    def keys(self) -> set[tuple[str, str]]:
        """Its members' keys."""
        return {member.key for member in self.members}


def verdict_of(members: list[Told]) -> Verdict:
    """Supported where at least two jobs support it by themselves."""
    sure = {one.job for one in members if one.incident.verdict == "supported"}
    return "supported" if len(sure) >= LEAST_JOBS else "ambiguous"
