"""What is known of a cluster when failures of several jobs are looked for."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Set
from functools import cached_property

import msgspec
import numpy as np
from numpy.typing import NDArray

from streams.fleet.failure import LEAST_JOBS
from streams.fleet.together import Counts, Told, alike, counts, is_own
from streams.switches import above

Span = tuple[int, int]
"""First and last time (ns)."""
Kind = tuple[str, str, bool]
"""Symptom, area, and whether it is a job's own: all that ``alike`` asks of an incident."""


_ALWAYS = (-(1 << 63), (1 << 63) - 1)
_FARTHEST = 1 << 62
"""No time lies as far behind 1970 (ns), and none before it; sums of two still fit."""


def _bounded(time: int) -> int:
    return max(min(time, _FARTHEST), 0)


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
    def by_job(self) -> dict[str, list[Told]]:
        """Those that count of each job."""
        found: dict[str, list[Told]] = {}
        for one in self.counting:
            found.setdefault(one.job, []).append(one)
        return found

    @cached_property
    def _kinds(self) -> tuple[list[Told], NDArray[np.int64]]:
        """One incident of each kind, and of which kind each one is; kinds are few where incidents are thousands."""
        numbers: dict[Kind, int] = {}
        examples, kinds = [], []
        for one in self.counting:
            kind = (one.incident.symptom, one.incident.area, is_own(one.incident))
            if kind not in numbers:
                numbers[kind] = len(numbers)
                examples.append(one)
            kinds.append(numbers[kind])
        return examples, np.array(kinds, np.int64)

    @cached_property
    def _times(self) -> NDArray[np.int64]:
        """Onset, how far the failure may lie from it, and when its attempt was first seen, a row each."""
        times = [(one.incident.onset, one.incident.within_ns, one.incident.started) for one in self.counting]
        return np.array([[_bounded(time) for time in one] for one in times], np.int64).reshape(-1, 3).T

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
        spans, latest = self._spans, onset + within_ns
        begun = bisect_right(self._begun, onset + within_ns)
        over = bisect_left(self._over, onset)
        untold = len(self.running.keys() - self.ran.keys())
        counted = [job for job in more if job in spans and spans[job][0] <= latest and spans[job][1] >= onset]
        return begun - over + untold + len(more) - len(counted)

    @cached_property
    def _spans(self) -> dict[str, Span]:
        """From when to when each job ran that is known to run on nodes, at any time where that is not told."""
        return {job: self.ran.get(job, _ALWAYS) for job in self.running}

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

    def begun_alike(self, seed: Told) -> list[Told]:
        """Those of other jobs that began together with it (``begun_together``) and are alike, in order of onset."""
        one, (examples, kinds) = seed.incident, self._kinds
        onset, within, started = self._times
        first, latest = _bounded(one.started), _bounded(one.onset + one.within_ns)
        alike_kinds = np.array([alike(one, other.incident) for other in examples], bool)
        begun = np.abs(onset - _bounded(one.onset)) <= within + one.within_ns
        there = np.maximum(started, first) <= np.minimum(onset + within, latest)
        found = [self.counting[at] for at in np.flatnonzero(begun & there & alike_kinds[kinds])]
        return [other for other in found if other.job != seed.job]

    def named_alike(self, seed: Told, job: str) -> set[str]:
        """The nodes at which a job points by incidents that are alike and may have begun with it."""
        reach, onset = seed.incident.within_ns + self.widest, seed.incident.onset
        near = [one for one in self.by_job.get(job, ()) if abs(one.incident.onset - onset) <= reach]
        return {node for one in near if alike(seed.incident, one.incident) for node in one.incident.nodes}
