"""Puts together who is who out of all that was read."""

from __future__ import annotations

from collections import defaultdict

import msgspec

from producers.contents import Contents
from producers.disputes import Disputes, disputes, reason
from producers.homes import Homes
from producers.inputs import Unused
from producers.introductions import NOBODY, Self, self_of
from producers.logfile import LogFile
from producers.owners import Owners
from producers.readers import op_timings, pids, torchrun
from producers.rows import Rows
from producers.sole import sole
from producers.speakers import Speakers
from producers.workers import NO_RUN, Worker, Workers

Slot = tuple[str, str, int]
"""Run folder, attempt, local rank: one worker's logs."""


class Cast(msgspec.Struct, frozen=True):
    """All workers, which of them wrote which logs, those that only logs describe, and contradictions.

    ``doubted`` says why logs count for no rank although their writer is known. ``speakers`` are the writers of files
    that several wrote.
    """

    workers: Workers
    owners: Owners
    writers: dict[Slot, Worker]
    doubted: dict[Slot, str]
    described: list[Worker]
    unused: list[Unused]
    speakers: Speakers


def slot_of(place: torchrun.Place) -> Slot:
    """The worker's slot that a log lies in."""
    return place.folder, place.attempt, place.local_rank


def homes_of(contents: Contents) -> Homes:
    """Where the logs of each job lie."""
    return Homes((place.run, place.folder) for place, _ in contents.ranks)


def cast(contents: Contents) -> Cast:
    """Workers out of start tables first, then out of what their logs say."""
    logs: dict[Slot, list[tuple[torchrun.Place, LogFile]]] = defaultdict(list)
    for place, log in contents.ranks:
        logs[slot_of(place)].append((place, log))
    itself = {slot: _by_nccl(contents, found) for slot, found in logs.items()}
    told = {slot: _said(found, itself[slot]) for slot, found in logs.items()}
    homes = homes_of(contents)
    nodes = _nodes(contents, told, homes)
    jobs = _jobs(contents, nodes)
    job = min((place.run for place, _ in contents.ranks), default=_job_of_files(contents))
    placed = {_slot(place, nodes): place for place, _ in contents.ranks}
    announced = [
        pids.worker(start, home or _job(start, placed, told, jobs, job))
        for home, tables in _by_home(contents.rows("pids"), homes)
        for start in pids.starts(tables)
    ]
    slots = {(worker.job, worker.node, worker.attempt, worker.local_rank): worker for worker in announced}
    writers: dict[Slot, Worker] = {}
    described: list[Worker] = []
    for slot, found in sorted(logs.items()):
        place = found[0][0]
        worker = slots.get((place.run, nodes[place.folder], place.attempt, place.local_rank))
        if worker is None:
            writers[slot] = _described(place, nodes[place.folder], told[slot], itself[slot], [log for _, log in found])
            described.append(writers[slot])
            continue
        writers[slot] = _with_role(worker, told[slot])
    known = {_start(writer) for writer in writers.values()}
    told_of = [*writers.values(), *(worker for worker in announced if _start(worker) not in known)]
    heard = Speakers(Workers(told_of, jobs, job), homes, contents.spoken)
    described += heard.workers
    workers = Workers([*told_of, *heard.workers], jobs, job)
    disputed = disputes(contents.tables, workers, homes)
    doubted, unused = _doubted(logs, told, itself, writers, disputed)
    owners = Owners(workers, homes, disputed)
    unused = [*disputed.unused, *unused, *heard.unused]
    return Cast(workers, owners, writers, doubted, described, unused, heard)


def _job_of_files(contents: Contents) -> str:
    """The only job that names of files tell, or the trial of the only op timings."""
    named = {spoken.job for spoken in contents.spoken if spoken.job}
    if not named and len(contents.timings) == 1:
        named = {op_timings.job_of(contents.timings[0], contents.layouts, tables=1)}
    return sole(named) or NO_RUN


def _by_home(tables: list[Rows], homes: Homes) -> list[tuple[str, list[Rows]]]:
    """Tables of one job each, those of which that is not known last."""
    found: dict[str, list[Rows]] = defaultdict(list)
    for table in tables:
        found[homes.job_of(table.file)].append(table)
    return sorted(found.items(), key=lambda item: (not item[0], item[0]))


def _doubted(
    logs: dict[Slot, list[tuple[torchrun.Place, LogFile]]],
    told: dict[Slot, torchrun.Said],
    itself: dict[Slot, Self | None],
    writers: dict[Slot, Worker],
    disputed: Disputes,
) -> tuple[dict[Slot, str], list[Unused]]:
    """The logs that name another rank than the table of starts or NCCL in them, or none where tables disagree."""
    found: dict[Slot, str] = {}
    unused: list[Unused] = []
    for slot, worker in writers.items():
        spoken, own = told[slot].rank, itself[slot]
        if own is not None and spoken is not None and own.rank != spoken:
            found[slot] = reason((spoken, own.rank))
            note = f"sources disagree: the log speaks of rank {spoken}, NCCL's lines in it of rank {own.rank}"
            unused.append(Unused(logs[slot][0][1].file, 0, note))
        elif spoken is None and worker in disputed.workers:
            found[slot] = disputed.workers[worker]
        elif spoken is not None and worker.rank is not None and spoken != worker.rank:
            found[slot] = reason((spoken, worker.rank))
            note = f"sources disagree: the log speaks of rank {spoken}, the table of starts of rank {worker.rank}"
            unused.append(Unused(_speaking(logs[slot]), 0, note))
    return found, unused


def _slot(place: torchrun.Place, nodes: dict[str, str]) -> tuple[str, str, int, str]:
    return nodes[place.folder], place.attempt, place.local_rank, place.run


def _start(worker: Worker) -> tuple[str, str, int | None, str]:
    return worker.job, worker.node, worker.pid, worker.attempt


def _with_role(worker: Worker, said: torchrun.Said) -> Worker:
    # Tables call every worker a trainer where roles are not told apart; the log may know better.
    if said.role and worker.role in ("", "trainer"):
        return msgspec.structs.replace(worker, role=said.role)
    return worker


def _speaking(found: list[tuple[torchrun.Place, LogFile]]) -> str:
    return next((log.file for _, log in found if torchrun.said([log]).rank is not None), found[0][1].file)


def _by_nccl(contents: Contents, logs: list[tuple[torchrun.Place, LogFile]]) -> Self | None:
    """Who the one worker of logs is by NCCL's lines in them."""
    place = logs[0][0]
    introduced = contents.introduced.get((place.run, place.attempt), NOBODY)
    return self_of([record for _, log in logs for record in log.records], introduced)


def _said(logs: list[tuple[torchrun.Place, LogFile]], itself: Self | None) -> torchrun.Said:
    """What the logs of one worker say of it; its rank and process by NCCL's lines where nothing else tells them."""
    said = torchrun.said(log for _, log in logs)
    if itself is None or said.rank not in (None, itself.rank):
        return said
    return msgspec.structs.replace(said, rank=itself.rank, pid=itself.pid if said.pid is None else said.pid)


def _described(
    place: torchrun.Place, node: str, said: torchrun.Said, itself: Self | None, logs: list[LogFile]
) -> Worker:
    """A worker that no table knows, as its logs describe it."""
    return Worker(
        job=place.run,
        attempt=place.attempt,
        node=node or said.host or (itself.host if itself is not None else ""),
        local_rank=place.local_rank,
        rank=said.rank,
        pid=said.pid,
        role=said.role,
        start=min((time for log in logs if (time := log.first()) is not None), default=None),
        rank_reason="neither a table of starts nor the log names the global rank",
    )


def _nodes(contents: Contents, told: dict[Slot, torchrun.Said], homes: Homes) -> dict[str, str]:
    """The node of every run folder."""
    known: dict[str, set[str]] = defaultdict(set)
    for table in (table for kind in ("pids", "metrics", "stacks") for table in contents.rows(kind)):
        known[homes.job_of(table.file)].update(node for row in table.rows if (node := row.text("node")))
    hosts: dict[str, set[str]] = defaultdict(set)
    for (folder, _, _), said in told.items():
        if said.host:
            hosts[folder].add(said.host)
    single = {folder: next(iter(names)) for folder, names in hosts.items() if len(names) == 1}
    found: dict[str, str] = {}
    for run in sorted({place.run for place, _ in contents.ranks}):
        places = [place for place, _ in contents.ranks if place.run == run]
        found.update(torchrun.nodes(places, single, known[run] | known[""]))
    return found


def _jobs(contents: Contents, nodes: dict[str, str]) -> dict[str, str]:
    """The job of every node that runs only one."""
    runs: dict[str, set[str]] = defaultdict(set)
    for place, _ in contents.ranks:
        runs[nodes[place.folder]].add(place.run)
    return {node: next(iter(found)) for node, found in sorted(runs.items()) if node and len(found) == 1}


def _job(
    start: pids.Start,
    placed: dict[tuple[str, str, int, str], torchrun.Place],
    told: dict[Slot, torchrun.Said],
    jobs: dict[str, str],
    job: str,
) -> str:
    """The job of a worker start: that of its node, or of the only log in its slot whose text agrees."""
    if start.node in jobs:
        return jobs[start.node]
    found = [
        place
        for key, place in sorted(placed.items())
        if key[:3] == (start.node, start.attempt, start.local_rank)
        and told[slot_of(place)].pid in (None, start.pid)
        and told[slot_of(place)].rank in (None, start.rank)
    ]
    return found[0].run if len(found) == 1 else job
