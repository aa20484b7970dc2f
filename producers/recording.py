"""Recorded files in, batches of events out: the same folder gives the same batches, wherever it lies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median_low

import msgspec

from producers.assembly import Cast, Slot, cast, slot_of
from producers.batches import Arrival, batch
from producers.contents import Contents, read_contents
from producers.inputs import Inputs, UnreadableRecording, Unused, canonical
from producers.logfile import LogFile, level_of, reference_of, timed
from producers.observations import Observation
from producers.readers import collectives, launcher, metrics, pids, stacks
from producers.rows import near
from producers.scan import scan
from producers.sightings import sightings
from producers.times import EARLIEST, SECOND, Moment
from producers.timing import Iterations, Life, Sightings, fill_alone, fill_worker
from producers.workers import Workers
from schemas.events import Log, Topology
from schemas.identity import Identity

__all__ = ["Arrival", "Inputs", "Recording", "UnreadableRecording", "Unused", "read_recording"]

Progress = Callable[[str, int, int], None]


class Recording(msgspec.Struct, frozen=True):
    """What a folder holds: its (first) job, the batches in order of arrival, and what was read and left aside."""

    job: str
    arrivals: list[Arrival]
    inputs: Inputs


def read_recording(root: Path, progress: Progress | None = None) -> Recording:
    """Reads the recorded files below ``root``; ``progress`` is told the file, how many are done, and of how many.

    Raises UnreadableRecording, with a message for the user, if there is no such folder or nothing in it is recognised.
    """
    sources, odd = scan(root)
    if not sources and not odd:
        raise UnreadableRecording(f"the folder is empty: {root}")
    contents = read_contents(sources, progress)
    if not contents.records():
        seen = f"{len(sources)} file{'s' if len(sources) != 1 else ''}"
        raise UnreadableRecording(f"nothing in {root} is a recording that can be read ({seen} looked at)")
    contents, notes = _with_times(contents)
    found = cast(contents)
    observations = list(_observe(contents, found))
    if not observations:
        raise UnreadableRecording(f"nothing in {root} has a time or can be given one")
    unused = [*odd, *contents.unused, *notes, *found.unused]
    inputs = Inputs(files=contents.files, records=contents.records(), unused=canonical(unused))
    return Recording(job=found.workers.job, arrivals=batch(observations), inputs=inputs)


def _captured(contents: Contents) -> list[int]:
    return [row.time for tables in contents.tables.values() for table in tables for row in table.rows]


def _with_times(contents: Contents) -> tuple[Contents, list[Unused]]:
    """The contents with the printed times of logs, without stray rows, and the notes of all logs and tables."""
    logs = [log for _, log in contents.ranks] + contents.launchers
    captured = _captured(contents)
    reference = median_low(captured) if captured else reference_of(logs)
    ranks = [(place, timed(log, reference)) for place, log in contents.ranks]
    launchers = [timed(log, reference) for log in contents.launchers]
    tables = {kind: [near(table, reference) for table in found] for kind, found in contents.tables.items()}
    notes = [note for log in [log for _, log in ranks] + launchers for note in log.unused]
    notes += [note for found in tables.values() for table in found for note in table.unused]
    if reference is None and logs:
        notes.append(Unused(logs[0].file, 0, "no line names a year; 2000 is assumed"))
    return msgspec.structs.replace(contents, ranks=ranks, launchers=launchers, tables=tables), notes


def _observe(contents: Contents, found: Cast) -> Iterable[Observation]:
    workers = found.workers
    for table in contents.rows("pids"):
        yield from pids.observe(table, workers)
    yield from _announced(found)
    for table in contents.rows("metrics"):
        yield from metrics.observe(table, workers)
    for table in contents.rows("stacks"):
        yield from stacks.observe(table, workers)
    for dump in contents.dumps:
        yield from collectives.observe(dump, contents.rows("captures"), workers)
    yield from _logs(contents, found)


def _announced(found: Cast) -> Iterable[Observation]:
    """Topology of the workers that no table of starts knows, out of what their logs say."""
    for worker in found.described:
        if worker.pid is not None and worker.start is not None and worker.rank is not None:
            event = Topology(time=worker.start, time_source="inferred", precision_ns=SECOND, pid=worker.pid)
            yield Observation(worker.identity(), worker.start, event, "", worker.rank)


def _logs(contents: Contents, found: Cast) -> Iterable[Observation]:
    start, end = _span(contents)
    exits: dict[tuple[str, int], launcher.Exit] = {}
    for log in contents.launchers:
        moments = fill_alone(log, Life(Sightings(), None, start, end))
        identity = _launcher(log, found.workers)
        exits.update({(identity.node, pid): exit_ for pid, exit_ in launcher.exits(log, moments).items()})
        yield from _events(log, "stderr", moments, identity)
    seen = sightings(contents, found.workers)
    iterations = Iterations()
    slots: dict[Slot, list[tuple[str, LogFile]]] = defaultdict(list)
    for place, log in contents.ranks:
        iterations.learn(found.writers[slot_of(place)], log)
        slots[slot_of(place)].append((place.stream, log))
    for slot, logs in sorted(slots.items()):
        worker = found.writers[slot]
        own = seen.get(worker, Sightings())
        exit_ = exits.get((worker.node, worker.pid or own.pid or 0))
        life = Life(own, exit_.time if exit_ else None, start if worker.start is None else worker.start, end)
        filled = fill_worker([log for _, log in logs], iterations.of(worker), life)
        for (stream, log), moments in zip(logs, filled, strict=True):
            yield from _events(log, stream, moments, worker.identity())


def _span(contents: Contents) -> tuple[int, int]:
    logs = [log for _, log in contents.ranks] + contents.launchers
    times = [moment.time for log in logs for moment in log.moments if moment is not None]
    times += _captured(contents)
    return min(times, default=EARLIEST), max(times, default=EARLIEST)


def _launcher(log: LogFile, workers: Workers) -> Identity:
    mentioned = {worker.node for pid in launcher.pids(log) if (worker := workers.by_pid(pid))}
    node = launcher.node_of(log.file, workers.nodes, next(iter(mentioned)) if len(mentioned) == 1 else "")
    return Identity(job=workers.job_of(node), node=node, rank_reason="launcher of a node", process_type="launcher")


def _events(log: LogFile, stream: str, moments: list[Moment], identity: Identity) -> Iterable[Observation]:
    latest = 0
    for record, moment, iteration in zip(log.records, moments, log.iterations, strict=True):
        latest = max(latest, moment.time)
        event = Log(
            time=moment.time,
            time_source=moment.source,
            precision_ns=moment.precision,
            iteration=iteration,
            stream=stream,
            text=record.text,
            level=level_of(record.text),
            file=log.file,
            offset=record.offset,
            line=record.line,
        )
        yield Observation(identity, latest, event, log.file, record.line)
