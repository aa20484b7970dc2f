"""Sources that contradict each other about who runs under a process id: then nobody can tell, and nobody is named."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from producers.homes import Homes
from producers.inputs import Unused
from producers.rows import Row, Rows
from producers.times import SECOND
from producers.workers import LEAD, Worker, Workers

_SAME_PROCESS = 600 * SECOND
"""How far two sightings of a rank under one process id may lie apart and still be of one process."""
_KINDS = ("metrics", "pids", "stacks")

Process = Worker | tuple[str, str, int | None]
"""A known start of a worker, or job, node and process id of what no start is known of."""


class Claim(msgspec.Struct, frozen=True, gc=False):
    """A row that speaks of a process, and the rank that it names."""

    kind: str
    file: str
    line: int
    time: int
    rank: int | None


class Disputes(msgspec.Struct, frozen=True):
    """Why rows (by file and line) and workers have no rank, and the notes on them."""

    rows: dict[tuple[str, int], str] = {}
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
        about = f"sources disagree about {_called(self.process)}: rank {either(self.ranks)}"
        return Unused(first.file, first.line, about, len(self.claims))


def either(ranks: Iterable[int]) -> str:
    """Ranks as alternatives: ``0 or 5``, ``0, 3 or 5``."""
    *others, last = (str(rank) for rank in sorted(ranks))
    return f"{', '.join(others)} or {last}" if others else last


def reason(ranks: Iterable[int]) -> str:
    """Why something has no rank."""
    return f"sources disagree: rank {either(ranks)}"


def disputes(tables: Mapping[str, list[Rows]], workers: Workers, homes: Homes) -> Disputes:
    """All processes of which tables name different ranks, within one life of the process."""
    processes = _processes(tables, workers, homes)
    found = [dispute for process, claims in processes.items() for dispute in _contested(process, claims)]
    if not found:
        return Disputes()
    found += _children(processes, found)
    rows = {(claim.file, claim.line): reason(dispute.ranks) for dispute in found for claim in dispute.claims}
    lost = {dispute.process: reason(dispute.ranks) for dispute in found if isinstance(dispute.process, Worker)}
    return Disputes(rows, lost, [dispute.note() for dispute in found])


def _processes(tables: Mapping[str, list[Rows]], workers: Workers, homes: Homes) -> dict[Process, list[Claim]]:
    found: dict[Process, list[Claim]] = defaultdict(list)
    for kind in _KINDS:
        for table in tables.get(kind, []):
            home = homes.job_of(table.file)
            for row in table.rows:
                rank, pid = row.integer("rank"), row.integer("pid")
                if rank is not None or pid is not None:
                    process = _process(row, pid, home, workers)
                    found[process].append(Claim(kind, table.file, row.line, row.time, rank))
    return found


def _process(row: Row, pid: int | None, home: str, workers: Workers) -> Process:
    node = row.text("node")
    if pid is not None:
        stated = row.fields.get("attempt")
        attempt = str(stated) if isinstance(stated, int | str) else ""
        if worker := workers.living(pid, node, row.time, home, attempt):
            return worker
    return home or workers.job_of(node), node, pid


def _place(process: Process) -> tuple[str, str]:
    return (process.job, process.node) if isinstance(process, Worker) else process[:2]


def _called(process: Process) -> str:
    pid, node = (process.pid, process.node) if isinstance(process, Worker) else (process[2], process[1])
    return f"node {node}" if pid is None else f"process {pid} of node {node}"


def _contested(process: Process, claims: list[Claim]) -> Iterator[_Dispute]:
    named = {claim.rank for claim in claims if claim.rank is not None}
    if isinstance(process, Worker):
        ranks = named | ({process.rank} if process.rank is not None else set())
        if len(ranks) > 1:
            yield _Dispute(process, sorted(ranks), claims)
    elif len(named) > 1 and process[2] is not None:
        # Nothing tells when it started; ranks that follow each other are different processes under one id.
        for low, high, ranks in _overlapping(claims):
            own = [claim for claim in claims if low <= claim.time <= high]
            yield _Dispute(process, sorted(ranks), own)


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
