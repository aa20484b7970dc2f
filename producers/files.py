"""Whose plain logs are: what the names of files say, as far as the lines in them prove it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import msgspec

from producers.introductions import Introduced, Introductions, self_of
from producers.logfile import LogFile
from producers.readers.plain import Place
from producers.sole import sole
from producers.voices import Spoken, Voice, introduced_as, introduction_of, said_of, voices_of

_NOT_PROVEN = "the number in the file's name may be that of a node, and nothing shows that it is the global rank"
_FEWEST = 2
"""Files of a family that must name their own rank, so that the numbers of all of them are ranks."""


def by_file(logs: Sequence[tuple[Place, LogFile]], introductions: Introductions) -> list[Spoken]:
    """Who wrote each of these files, in order of their names."""
    families: dict[str, list[tuple[Place, LogFile]]] = defaultdict(list)
    for where, log in logs:
        families[where.family].append((where, log))
    proven = {family for family, found in families.items() if family and _are_ranks(found, introductions)}
    processes = {family: _process(found) for family, found in families.items() if found[0][0].pid >= 0}
    found = []
    for where, log in logs:
        if where.pid >= 0:
            found.append(in_place(_of_process(where, log, processes[where.family]), where))
        else:
            found += _spoken(where, log, where.family in proven, introductions(log.file, where.job))
    return found


def _are_ranks(found: Sequence[tuple[Place, LogFile]], introductions: Introductions) -> bool:
    """Whether the numbers of files are global ranks: several name their own, each has one, and it is that number."""
    shown: set[int] = set()
    for where, log in found:
        ranks = _named(log, introductions(log.file, where.job))
        if ranks - {where.number} or where.number < 0:
            return False
        shown |= ranks
    return len(shown) >= _FEWEST


class _Process(msgspec.Struct, frozen=True):
    """What the files of one process say of it."""

    rank: int | None
    actor: str


def _process(found: Sequence[tuple[Place, LogFile]]) -> _Process:
    ranks = {rank for _, log in found if (rank := said_of(log)) is not None}
    records = [record for _, log in found for record in log.records if ":actor_name:" in record.text]
    actor = records[0].text.partition(":actor_name:")[2].strip()[:64] if records else ""
    return _Process(sole(ranks), actor)


def _named(log: LogFile, introduced: Introduced) -> set[int]:
    """The ranks that the lines of a file name as their own; a tee's are local ones and count as none at all."""
    ranks = {one.rank for one in voices_of(log, introduced) if one.rank is not None}
    if log.teed:
        return ranks | {-1}
    said = said_of(log)
    if said is None and not ranks:
        said = introduced_as(log)
    return ranks if said is None else ranks | {said}


def _spoken(where: Place, log: LogFile, proven: bool, introduced: Introduced) -> list[Spoken]:
    rank = where.rank if where.rank >= 0 else where.number if proven else None
    if rank is not None:
        return [in_place(_of_rank(where, log, rank, introduced), where)]
    found = [in_place(one, where) for one in voices_of(log, introduced)]
    if where.number < 0:
        return found
    return [
        msgspec.structs.replace(one, rank_reason=_NOT_PROVEN) if one.rank is None and one.voice.nobody else one
        for one in found
    ]


def _of_rank(where: Place, log: LogFile, rank: int, introduced: Introduced) -> Spoken:
    local = where.local if where.local >= 0 else None
    voice = Voice(rank=rank, local=local)
    said = said_of(log)
    if said is not None and said != rank and not log.teed:
        reason = f"sources disagree: rank {rank} by the file's name, rank {said} by its lines"
        return Spoken(voice=voice, log=log, local=local, rank_reason=reason)
    itself = self_of(log.records, introduced)
    if itself is not None and itself.rank != rank:
        reason = f"sources disagree: rank {rank} by the file's name, rank {itself.rank} by NCCL's lines in it"
        return Spoken(voice=voice, log=log, local=local, rank_reason=reason)
    host, pid = introduction_of(log, rank)
    return Spoken(
        voice=voice,
        log=log,
        rank=rank,
        local=local,
        node=host or (itself.host if itself is not None else ""),
        pid=pid if itself is None else itself.pid,
        by_name=where.rank >= 0,
        confirmed=said == rank,
    )


def _of_process(where: Place, log: LogFile, process: _Process) -> Spoken:
    """The file of one process: what one of its lines says of itself holds for all."""
    reason = "" if process.rank is not None else "no line says which rank this process is"
    return Spoken(Voice(pid=where.pid), log, rank=process.rank, rank_reason=reason, role=process.actor)


def in_place(spoken: Spoken, where: Place | None) -> Spoken:
    """The same with the job and the stream that the file's name tells."""
    return spoken if where is None else msgspec.structs.replace(spoken, job=where.job, stream=where.stream)
