"""What is known of a cluster when failures of several jobs are looked for."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Set
from functools import cached_property

import msgspec

from streams.fleet.failure import LEAST_JOBS
from streams.fleet.together import Counts, Told, counts
from streams.switches import above

Span = tuple[int, int]
"""First and last time (ns)."""


class Seen(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """What is known of a cluster: incidents, the nodes on which each job runs, and the paths of switches above nodes.

    ``ran`` is from when to when each job is known to have run, at any time where that is not told; ``complaints`` are
    spans of time by storage and node.
    """

    incidents: Collection[Told]
    running: Mapping[str, Set[str]] = {}
    ran: Mapping[str, Span] = {}
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
    def places(self) -> int:
        """How many nodes and switches run several jobs, so that several might point at them by chance; one at least."""
        nodes = sum(len(jobs) >= LEAST_JOBS for jobs in self.jobs_of.values())
        switches = sum(len(self._any_on(nodes)) >= LEAST_JOBS for nodes in self.under.values())
        return max(nodes + switches, 1)

    @cached_property
    def under(self) -> dict[str, frozenset[str]]:
        """The nodes under each switch, by its path, as far as the switches of nodes are known."""
        found: dict[str, set[str]] = {}
        for node, path in self.switches.items():
            for switch in above(path):
                found.setdefault(switch, set()).add(node)
        return {switch: frozenset(found[switch]) for switch in sorted(found)}

    @cached_property
    def jobs_of(self) -> dict[str, list[str]]:
        """The jobs that run on each node."""
        found: dict[str, list[str]] = {}
        for job, nodes in self.running.items():
            for node in nodes:
                found.setdefault(node, []).append(job)
        return found

    def _any_on(self, nodes: Iterable[str]) -> set[str]:
        return {job for node in nodes for job in self.jobs_of.get(node, ())}

    def on(self, nodes: Iterable[str], onset: int, within_ns: int) -> set[str]:
        """The jobs that ran on any of these nodes when something happened there, so far about its onset."""
        return {job for job in self._any_on(nodes) if self._ran(job, onset, within_ns)}

    def running_at(self, onset: int, within_ns: int, more: Set[str]) -> int:
        """How many jobs ran when something happened, so far about its onset, with those that did anyway."""
        begun = bisect_right(self._begun, onset + within_ns)
        over = bisect_left(self._over, onset)
        untold = len(self.running.keys() - self.ran.keys())
        return begun - over + untold + sum(not self._is_counted(job, onset, within_ns) for job in more)

    def _is_counted(self, job: str, onset: int, within_ns: int) -> bool:
        return job in self.running and self._ran(job, onset, within_ns)

    def _ran(self, job: str, onset: int, within_ns: int) -> bool:
        first, last = self.ran.get(job, (onset, onset))
        return first <= onset + within_ns and last >= onset

    @cached_property
    def _begun(self) -> list[int]:
        return sorted(self.ran[job][0] for job in self.running if job in self.ran)

    @cached_property
    def _over(self) -> list[int]:
        return sorted(self.ran[job][1] for job in self.running if job in self.ran)

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
