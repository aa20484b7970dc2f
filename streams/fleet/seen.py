"""What is known of a cluster when failures of several jobs are looked for."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Set
from functools import cached_property

import msgspec

from streams.fleet.failure import LEAST_JOBS
from streams.fleet.together import Counts, Told, counts

Span = tuple[int, int]
"""First and last time (ns)."""


class Seen(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """What is known of a cluster: incidents, the nodes on which each job runs, and the switches of nodes.

    ``complaints`` are spans of time by storage and node.
    """

    incidents: Collection[Told]
    running: Mapping[str, Set[str]] = {}
    switches: Mapping[str, str] = {}
    complaints: Mapping[str, Mapping[str, Span]] = {}

    @cached_property
    def counting(self) -> list[Told]:
        """The incidents that count, in order of onset."""
        found = [one for one in self.incidents if counts(one.incident) is Counts.YES]
        return sorted(found, key=lambda one: (one.incident.onset, one.key))

    @cached_property
    def onsets(self) -> list[int]:
        """Their onsets (ns)."""
        return [one.incident.onset for one in self.counting]

    @cached_property
    def widest(self) -> int:
        """How far any of them may lie from its onset at most (ns)."""
        return max((one.incident.within_ns for one in self.counting), default=0)

    @cached_property
    def jobs(self) -> set[str]:
        """All jobs that are known."""
        return {*self.running, *(one.job for one in self.counting)}

    @cached_property
    def shared_nodes(self) -> int:
        """How many nodes run several jobs, so might have been the one by chance."""
        return max(sum(len(jobs) >= LEAST_JOBS for jobs in self.jobs_of.values()), 1)

    @cached_property
    def jobs_of(self) -> dict[str, list[str]]:
        """The jobs that run on each node."""
        found: dict[str, list[str]] = {}
        for job, nodes in self.running.items():
            for node in nodes:
                found.setdefault(node, []).append(job)
        return found

    def on(self, nodes: Iterable[str]) -> set[str]:
        """The jobs that run on any of these nodes."""
        return {job for node in nodes for job in self.jobs_of.get(node, ())}

    @cached_property
    def complaining(self) -> dict[str, list[tuple[str, Span]]]:
        """What each node complains of, and when."""
        found: dict[str, list[tuple[str, Span]]] = {}
        for storage in sorted(self.complaints):
            for node, span in self.complaints[storage].items():
                found.setdefault(node, []).append((storage, span))
        return found

    def near(self, seed: Told) -> list[Told]:
        """Those that may have begun with it."""
        reach = seed.incident.within_ns + self.widest
        first = bisect_left(self.onsets, seed.incident.onset - reach)
        last = bisect_left(self.onsets, seed.incident.onset + reach + 1)
        return self.counting[first:last]
