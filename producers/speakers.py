"""Who the writers of files are that several wrote: workers that tables or other logs know, or new ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import msgspec

from producers.disputes import reason
from producers.homes import Homes
from producers.inputs import Unused
from producers.sole import sole
from producers.voices import Spoken, Voice
from producers.workers import Worker, Workers
from schemas.identity import Identity

TWICE = "files of other folders are named for the same rank at the same time, so the number may not be the global rank"
NOT_THE_FIRST = "the first error in its file is of a worker whose rank is not known"

_Rank = tuple[str, str, int | None]
"""Job, group of workers, and rank in it."""


class Speakers:
    """Identities by file and voice; ``workers`` are those that no table and no other log knows.

    ``unknown`` are the files in which the first traceback is of nobody known: the others may be its consequences.
    """

    def __init__(self, known: Workers, homes: Homes, voices: Sequence[Spoken]) -> None:
        self.identities: dict[tuple[str, Voice], Identity] = {}
        self.workers: list[Worker] = []
        self.unused: list[Unused] = []
        self._known = known
        self._new: dict[tuple[str, str, int], Worker] = {}
        jobs = [homes.job_of(spoken.log.file) or spoken.job or known.job for spoken in voices]
        twice = _twice(voices, jobs)
        heard = [_unnamed(spoken) if spoken.log.file in twice else spoken for spoken in voices]
        self._processes = _processes(heard, jobs)
        for spoken, job in zip(heard, jobs, strict=True):
            self.identities[spoken.log.file, spoken.voice] = self._identity(spoken, job)
        self.unknown = self._unknown(voices)

    def of_error(self, spoken: Spoken) -> Identity:
        """The identity under which a voice's tracebacks are sent."""
        identity = self.identities[spoken.log.file, spoken.voice]
        if identity.rank is None or spoken.log.file not in self.unknown:
            return identity
        return msgspec.structs.replace(identity, rank=None, rank_reason=NOT_THE_FIRST, group="")

    def _unknown(self, voices: Sequence[Spoken]) -> set[str]:
        firsts: dict[str, tuple[int, bool]] = {}
        for spoken in voices:
            file, identity = spoken.log.file, self.identities[spoken.log.file, spoken.voice]
            line = next((record.line for record in spoken.log.records if record.shape == "traceback"), 0)
            # What a launcher or driver prints comes after the error that it speaks of.
            if line and identity.process_type != "launcher":
                firsts[file] = min(firsts.get(file, (line, True)), (line, identity.rank is None))
        found = {file: line for file, (line, nobodys) in firsts.items() if nobodys}
        said = "an error of a worker whose rank is not known; tracebacks behind it name nobody"
        self.unused += [Unused(file, line, said) for file, line in found.items()]
        return set(found)

    def _identity(self, spoken: Spoken, job: str) -> Identity:
        if spoken.launcher:
            return Identity(job=job, node=spoken.node, rank_reason=spoken.rank_reason, process_type="launcher")
        worker = self._find(spoken, job)
        if worker is None:
            return self._told(spoken, job)
        if spoken.rank is not None and worker.rank is not None and worker.rank != spoken.rank:
            note = f"sources disagree: the log speaks of rank {spoken.rank}, the table of starts of rank {worker.rank}"
            self.unused.append(Unused(spoken.log.file, 0, note))
            doubt = reason(tuple(sorted((spoken.rank, worker.rank))))
            return Identity(job=job, attempt=worker.attempt, node=worker.node, rank_reason=doubt, role="trainer")
        return worker.identity()

    def _find(self, spoken: Spoken, job: str) -> Worker | None:
        """The worker of a voice, by its process if that is known, else by its rank."""
        time, pid = spoken.log.first(), _pid(spoken)
        node = spoken.voice.pod if spoken.pid is None else spoken.node
        if pid is not None and (worker := self._known.by_pid(pid, node, time, job)):
            return worker
        if spoken.rank is None or spoken.group:
            return None
        return self._known.find(spoken.rank, "", None, time or 0, job)

    def _told(self, spoken: Spoken, job: str) -> Identity:
        """The identity of a worker as its own file describes it; several voices may be of one worker."""
        nodes, pids = self._processes.get((job, spoken.group, spoken.rank), (set(), set()))
        pid = _pid(spoken)
        worker = Worker(
            job=job,
            attempt="0",
            node=spoken.node or sole(nodes) or "",
            local_rank=spoken.local,
            rank=spoken.rank,
            pid=sole(pids) if pid is None else pid,
            role=spoken.role,
            group=spoken.group,
            start=spoken.log.first(),
            rank_reason=spoken.rank_reason,
        )
        if spoken.rank is None:
            return worker.identity()
        key = (job, spoken.group, spoken.rank)
        if key not in self._new:
            self._new[key] = worker
            self.workers.append(worker)
        return self._new[key].identity()


def _processes(voices: Sequence[Spoken], jobs: Sequence[str]) -> dict[_Rank, tuple[set[str], set[int]]]:
    """The nodes and processes that the voices of each rank tell: what it prints to one stream may tell nothing."""
    found: dict[_Rank, tuple[set[str], set[int]]] = defaultdict(lambda: (set(), set()))
    for spoken, job in zip(voices, jobs, strict=True):
        if spoken.rank is not None:
            nodes, pids = found[job, spoken.group, spoken.rank]
            nodes |= {spoken.node} - {""}
            pids |= {pid for pid in (_pid(spoken),) if pid is not None}
    return dict(found)


def _pid(spoken: Spoken) -> int | None:
    """The process of a voice as NCCL or an envelope tells it."""
    if spoken.pid is not None:
        return spoken.pid
    return spoken.voice.pid if spoken.voice.pid >= 0 else None


def _twice(voices: Sequence[Spoken], jobs: Sequence[str]) -> set[str]:
    """The files whose names alone give them a rank that a file of another folder has in the same job and time.

    Such numbers begin anew on each node. Files of one folder, and of attempts one after the other, are no conflict.
    """
    claims: dict[tuple[str, int], list[tuple[int, int, str, bool]]] = defaultdict(list)
    for spoken, job in zip(voices, jobs, strict=True):
        first, last = spoken.log.first(), spoken.log.last()
        if spoken.by_name and spoken.rank is not None and first is not None and last is not None:
            claims[job, spoken.rank].append((min(first, last), last, spoken.log.file, spoken.confirmed))
    found: set[str] = set()
    for claimed in claims.values():
        for together in _overlapping(claimed):
            if len({_folder(file) for _, _, file, _ in together}) > 1:
                found |= {file for _, _, file, confirmed in together if not confirmed}
    return found


def _overlapping(claims: Sequence[tuple[int, int, str, bool]]) -> list[list[tuple[int, int, str, bool]]]:
    """Claims in groups, those of a group without a time between them at which none holds."""
    groups: list[list[tuple[int, int, str, bool]]] = []
    end = 0
    for claim in sorted(claims):
        if not groups or claim[0] > end:
            groups.append([])
            end = claim[1]
        groups[-1].append(claim)
        end = max(end, claim[1])
    return groups


def _folder(file: str) -> str:
    return file.rpartition("/")[0]


def _unnamed(spoken: Spoken) -> Spoken:
    return msgspec.structs.replace(spoken, rank=None, rank_reason=TWICE)
