"""Who processes are by NCCL's own lines, in which each says its rank in every communicator that it joins.

``gpu07:4001:4601 [1] NCCL INFO ncclCommInitRank comm 0x55d rank 9 nranks 16 cudaDev 1 … - Init COMPLETE``: process 4001
of gpu07 is rank 9 of 16 there. That is its rank in the job only where the communicator joins all ranks of the job; in
the groups of one node or one stage numbers begin anew.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import msgspec

from producers.envelopes.evidence import HEAD, WORLD
from producers.grouping import Record
from producers.logfile import LogFile
from producers.sole import sole
from schemas.text import iteration_of

Process = tuple[str, int]
"""Host and process id, as NCCL prints them before its lines."""

_PREFIX = re.compile(
    r"(?:\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,9})?\] ?)?"
    r"([A-Za-z0-9][\w.-]{0,252}):(\d{1,9}):\d{1,9} \[-?\d{1,4}\] (?:[^\n]{0,200}? )?NCCL (?:INFO|WARN|TRACE|VERSION) "
)
_JOINED = re.compile(r"\bcomm (0x[0-9a-fA-F]{1,16}|\(nil\)) rank (\d{1,7}) n[rR]anks (\d{1,7}) (?:cudaDev|nNodes) ")
"""With the word behind it, so that a number is whole where a line was cut off."""


class Introduced(msgspec.Struct, frozen=True):
    """The ranks of processes; ``whole`` where all of a job's have said who they are, so that none is unseen."""

    ranks: Mapping[Process, int] = {}
    whole: bool = False


NOBODY = Introduced()


Introductions = Callable[[str, str], Introduced]
"""What NCCL tells of the processes of the job that a file, and its name, belong to."""


class Self(msgspec.Struct, frozen=True):
    """What one writer's own lines of NCCL say of it; the id is null where it was several processes in turn."""

    rank: int
    host: str
    pid: int | None


def process_of(text: str) -> Process | None:
    """The process whose line of NCCL this is."""
    found = _PREFIX.match(text) if "NCCL " in text[:HEAD] else None
    return None if found is None else (found.group(1), int(found.group(2)))


def self_of(records: Sequence[Record], introduced: Introduced) -> Self | None:
    """Who the one writer of records is; null where it printed no line of NCCL, or such of several ranks."""
    if not introduced.ranks:
        return None
    found = {process for record in records if (process := process_of(record.text)) is not None}
    rank = sole({introduced.ranks.get(process) for process in found})
    if rank is None:
        return None
    own = sole(found)
    return Self(rank, sole({host for host, _ in found}) or "", None if own is None else own[1])


def introduced(logs: Sequence[LogFile]) -> Introduced:
    """Who the processes of one job are, nobody where what its logs say does not fit together.

    The largest communicator counts: where its size is the only one that lines call that of the world; or where none
    does, it joins several hosts, each of its ranks is one process, and no communicator lacks a member once the job has
    trained. The ranks of one host may as well be a group of a job whose other hosts nothing tells of.
    """
    told = _Told(logs)
    size = max(told.joined, default=0)
    ranks: dict[Process, set[int]] = defaultdict(set)
    for process, _, rank in told.joined.get(size, ()):
        ranks[process].add(rank)
    if size < 2 or told.worlds - {size} or any(len(found) > 1 for found in ranks.values()):
        return NOBODY
    own = {process: min(found) for process, found in ranks.items()}
    complete = len(set(own.values())) == size
    if told.worlds:
        return Introduced(own, complete) if _in_turn(own, told.spans) else NOBODY
    several = len({host for host, _ in own}) > 1
    # A process that joins nobody who is known, as one of another job would, has not introduced itself there.
    known = several and complete and len(own) == size and own.keys() == told.spans.keys()
    return Introduced(own, True) if known and _closed(told) and _has_trained(logs) else NOBODY


class _Told:
    """What lines say: who joined which communicator under which rank, by its size, and the sizes of the world.

    ``spans`` are the first and the last line of each process in each file.
    """

    def __init__(self, logs: Sequence[LogFile]) -> None:
        self.joined: dict[int, set[tuple[Process, str, int]]] = defaultdict(set)
        self.worlds: set[int] = set()
        self.spans: dict[Process, dict[str, tuple[int, int]]] = defaultdict(dict)
        for log in logs:
            for record in log.records:
                self._take(log.file, record)

    def _take(self, file: str, record: Record) -> None:
        self.worlds.update(int(world) for world in WORLD.findall(record.text[:HEAD]))
        process = process_of(record.text)
        if process is None:
            return
        first, _ = self.spans[process].get(file, (record.line, record.line))
        self.spans[process][file] = first, record.line
        found = _JOINED.search(record.text)
        if found is not None and int(found.group(2)) < int(found.group(3)):
            self.joined[int(found.group(3))].add((process, found.group(1), int(found.group(2))))


def _in_turn(own: Mapping[Process, int], spans: Mapping[Process, Mapping[str, tuple[int, int]]]) -> bool:
    """Whether processes of one rank followed each other, as they do after a restart: in a file that both wrote to.

    Two at once are of two jobs, or of two groups of one size.
    """
    by_rank: dict[int, list[Process]] = defaultdict(list)
    for process, rank in own.items():
        by_rank[rank].append(process)
    for processes in by_rank.values():
        files = set.intersection(*(set(spans[process]) for process in processes))
        if len(processes) > 1 and not files:
            return False
        for file in files:
            ordered = sorted(spans[process][file] for process in processes)
            if any(after[0] <= before[1] for before, after in pairwise(ordered)):
                return False
    return True


def _closed(told: _Told) -> bool:
    """Whether all members of all communicators are among those seen: of each size every rank is told as often."""
    for size, joined in told.joined.items():
        counts = Counter(rank for _, _, rank in joined)
        if len(counts) != size or len(set(counts.values())) != 1:
            return False
    return True


def _has_trained(logs: Sequence[LogFile]) -> bool:
    """Whether an iteration or a loss is told: before the first, groups that join nodes need not have been made."""
    return any(
        iteration_of(record.text.partition("\n")[0]) is not None or record.text.startswith("{'loss': ")
        for log in logs
        for record in log.records
    )
