"""Failures of most jobs of a cluster at once, where no place stands out."""

from __future__ import annotations

from streams.fleet.bundles import alike_together, bundles
from streams.fleet.failure import Failure, FleetReason
from streams.fleet.seen import Seen
from streams.fleet.together import Told, is_own

WIDE_JOBS = 5
"""Fewer jobs that are hit at once are no matter of the whole cluster."""


def of_all(seen: Seen, free: list[Told]) -> list[Failure]:
    """Most jobs of the cluster at once; where they are hit tells nothing then."""
    hit = [one for one in free if one.incident.symptom in ("hang", "crash", "slowdown") and not is_own(one.incident)]
    found = []
    for members in bundles(hit, alike_together, 2 * seen.widest):
        seed = members[0].incident
        jobs = seen.running_at(seed.onset, seed.within_ns, {one.job for one in members})
        if len(members) >= max(WIDE_JOBS, (jobs + 1) // 2):
            reason = FleetReason.CLUSTER_WIDE
            found.append(
                Failure(reason=reason, kind="fleet", name="", members=members, verdict="ambiguous", there=jobs)
            )
    return found
