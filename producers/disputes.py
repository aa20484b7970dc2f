"""Sources that contradict each other about who runs under a process id: then nobody can tell, and nobody is named.

An id tells processes apart on one node only, and there not where containers run: each of them counts from 1. So what a
source says of a rank is held against another only on a node that is known, and where not several ranks have the id.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from producers.homes import Homes
from producers.inputs import Unused
from producers.rows import Row, Rows
from producers.times import SECOND
from producers.workers import FIRST_PID, LEAD, Worker, Workers
from schemas.identity import said_ranks, shortened

_SAME_PROCESS = 600 * SECOND
"""How far two sightings of a rank under one process id may lie apart and still be of one process."""
_KINDS = ("metrics", "pids", "stacks")
_SHARED = 3
"""How many ranks that one kind of source names under an id at once are no contradiction, but processes of their own."""
_LISTED = 4
_MOST_SAID = 60
"""How many ranks a note lists as alternatives, and how many characters the ranges of more may have."""

Process = Worker | tuple[str, str, int | None]
"""A known start of a worker, or job, node and process id of what no start is known of."""


class Claim(msgspec.Struct, frozen=True, gc=False):
    """A row that speaks of a process, the rank that it names, and the node if that is known."""

    kind: str
    file: str
    line: int
    time: int
    rank: int | None
    node: str


class Disputes(msgspec.Struct, frozen=True):
    """Why rows (by file and line) and workers have no rank, and the notes on them.

    ``shared`` are the rows that name no rank and whose process id several ranks have.
    """

    rows: dict[tuple[str, int], str] = {}
    shared: frozenset[tuple[str, int]] = frozenset()
    workers: dict[Worker, str] = {}
    unused: list[Unused] = []


class _Dispute(msgspec.Struct, frozen=True):
    """One process, the ranks that it is said to be, and all rows about it."""

    process: Process
    ranks: list[int]
    claims: list[Claim]

    def note(self) -> Unused:
        """Stands at the first row that differs from the table of starts, or from the rows before it."""
        known = self.process.rank if isinstance(self.process, Worker) else self.claims[0].rank
        first = next((claim for claim in self.claims if claim.rank not in (None, known)), self.claims[0])
        about = f"sources disagree about {_called(self.process)}: {either(self.ranks)}"
        return Unused(first.file, first.line, about, len(self.claims))


def either(ranks: Iterable[int]) -> str:
    """Ranks as alternatives: ``rank 0 or 5``, ``rank 0, 3 or 5``, ``one of ranks 0-7``."""
    listed = sorted(ranks)
    if len(listed) > _LISTED:
        return shortened(f"one of {said_ranks(listed)}", _MOST_SAID)
    *others, last = (str(rank) for rank in listed)
    return f"rank {', '.join(others)} or {last}" if others else f"rank {last}"


def reason(ranks: Iterable[int]) -> str:
    """Why something has no rank."""
    return f"sources disagree: {either(ranks)}"


def disputes(tables: Mapping[str, list[Rows]], workers: Workers, homes: Homes) -> Disputes:
    """All processes of which tables name different ranks, within one life of the process."""
    processes = _processes(tables, workers, homes)
    found = [dispute for process, claims in processes.items() for dispute in _contested(process, claims)]
    shared = frozenset(_unnamed(processes))
    if not found:
        return Disputes(shared=shared)
    found += _children(processes, found)
    rows = {(claim.file, claim.line): reason(dispute.ranks) for dispute in found for claim in dispute.claims}
    lost = {dispute.process: reason(dispute.ranks) for dispute in found if isinstance(dispute.process, Worker)}
    return Disputes(rows, shared - rows.keys(), lost, [dispute.note() for dispute in found])


def _processes(tables: Mapping[str, list[Rows]], workers: Workers, homes: Homes) -> dict[Process, list[Claim]]:
    found: dict[Process, list[Claim]] = defaultdict(list)
    for kind in _KINDS:
        for table in tables.get(kind, []):
            home = homes.job_of(table.file)
            for row in table.rows:
                rank, pid = row.integer("rank"), row.integer("pid")
                if rank is not None or pid is not None:
                    node = row.text("node") or (workers.node_of(rank, home) if rank is not None else "")
                    process = _process(row, node, home, workers)
                    found[process].append(Claim(kind, table.file, row.line, row.time, rank, node))
    return found


def _process(row: Row, node: str, home: str, workers: Workers) -> Process:
    pid = row.integer("pid")
    rank = row.integer("rank")
    # Two ranks on nodes that nobody knows may be two processes under one id, unless the rank's own is known.
    if pid is not None and (node or rank is None or workers.has_pid(rank, home)):
        stated = row.fields.get("attempt")
        attempt = str(stated) if isinstance(stated, int | str) else ""
        if worker := workers.living(pid, node, row.time, home, attempt):
            return worker
    return home or workers.job_of(node), node, pid


def _place(process: Process) -> tuple[str, str]:
    return (process.job, process.node) if isinstance(process, Worker) else process[:2]


def _called(process: Process) -> str:
    pid, node = (process.pid, process.node) if isinstance(process, Worker) else (process[2], process[1])
    if pid is None:
        return f"node {node}"
    return f"process {pid} of node {node}" if node else f"process {pid}"


def _contested(process: Process, claims: list[Claim]) -> Iterator[_Dispute]:
    for ranks, own in _at_once(process, claims):
        if not _is_shared(process, own):
            yield _Dispute(process, sorted(ranks), own)


def _at_once(process: Process, claims: list[Claim]) -> Iterator[tuple[set[int], list[Claim]]]:
    """The ranks, where they are several, that a process on a known node is said to be, and the rows that say so."""
    named = {claim.rank for claim in claims if claim.rank is not None}
    if isinstance(process, Worker):
        ranks = named | ({process.rank} if process.rank is not None else set())
        if len(ranks) > 1:
            yield ranks, claims
    elif len(named) > 1 and process[1] and process[2] is not None:
        # Nothing tells when it started; ranks that follow each other are different processes under one id.
        for low, high, ranks in _overlapping(claims):
            yield ranks, [claim for claim in claims if low <= claim.time <= high]


def _is_shared(process: Process, claims: list[Claim]) -> bool:
    """Whether an id is that of several ranks on a node, so that it says of none of them that it is another."""
    if not isinstance(process, Worker) and process[2] == FIRST_PID:
        return True
    known = {process.rank} if isinstance(process, Worker) and process.rank is not None else set()
    ranks: dict[str, set[int]] = defaultdict(lambda: set(known))
    for claim in claims:
        if claim.rank is not None:
            ranks[claim.kind].add(claim.rank)
    return any(len(named) >= _SHARED for named in ranks.values())


def _unnamed(processes: dict[Process, list[Claim]]) -> Iterator[tuple[str, int]]:
    """The rows without a rank whose process id may be that of another rank than the worker whose id is known."""
    elsewhere: dict[tuple[str, int | None], set[int]] = defaultdict(set)
    for process, claims in processes.items():
        if not isinstance(process, Worker):
            elsewhere[process[0], process[2]].update(claim.rank for claim in claims if claim.rank is not None)
    for process, claims in processes.items():
        if not isinstance(process, Worker):
            continue
        shared = any(_is_shared(process, own) for _, own in _at_once(process, claims))
        others = elsewhere.get((process.job, process.pid), set()) - {process.rank}
        for claim in claims:
            if claim.rank is None and (shared or (others and not claim.node)):
                yield claim.file, claim.line


def _overlapping(claims: list[Claim]) -> list[tuple[int, int, set[int]]]:
    """The spans of time in which several ranks were seen under one process id."""
    clusters: list[tuple[int, int, set[int]]] = []
    for low, high, rank in sorted(_spans(claims)):
        if clusters and low <= clusters[-1][1]:
            start, end, ranks = clusters.pop()
            clusters.append((start, max(end, high), ranks | {rank}))
        else:
            clusters.append((low, high, {rank}))
    return [cluster for cluster in clusters if len(cluster[2]) > 1]


def _spans(claims: list[Claim]) -> Iterator[tuple[int, int, int]]:
    times: dict[int, list[int]] = defaultdict(list)
    for claim in claims:
        if claim.rank is not None:
            times[claim.rank].append(claim.time)
    for rank, seen in times.items():
        seen.sort()
        low = high = seen[0]
        for time in seen:
            if time > high + _SAME_PROCESS:
                yield low, high, rank
                low = time
            high = time
        yield low, high, rank


def _children(processes: dict[Process, list[Claim]], found: list[_Dispute]) -> list[_Dispute]:
    """Processes of unknown start that a disputed source names by a disputed rank: those of the same worker."""
    naming: dict[tuple[str, str, str, int], list[tuple[int, int, list[int]]]] = defaultdict(list)
    for dispute in found:
        times: dict[tuple[str, int], list[int]] = defaultdict(list)
        for claim in dispute.claims:
            if claim.rank is not None:
                times[claim.kind, claim.rank].append(claim.time)
        for (kind, rank), seen in times.items():
            span = (min(seen) - LEAD, max(seen) + LEAD, dispute.ranks)
            naming[kind, *_place(dispute.process), rank].append(span)
    taken = {(claim.file, claim.line) for dispute in found for claim in dispute.claims}
    children: list[_Dispute] = []
    for process, claims in processes.items():
        if isinstance(process, Worker):
            continue
        doubted: dict[tuple[int, ...], list[Claim]] = defaultdict(list)
        for claim in claims:
            if claim.rank is None or (claim.file, claim.line) in taken:
                continue
            spans = naming.get((claim.kind, *_place(process), claim.rank), [])
            ranks = {rank for low, high, either_ in spans if low <= claim.time <= high for rank in either_}
            if ranks:
                doubted[tuple(sorted(ranks))].append(claim)
        children += [_Dispute(process, list(ranks), own) for ranks, own in doubted.items()]
    return children
