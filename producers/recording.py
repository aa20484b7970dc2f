"""Recorded files in, batches of events out: the same folder gives the same batches, wherever it lies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from statistics import median_low

import msgspec

from producers import alarms, job_events, measured
from producers.assembly import Cast, Slot, cast, homes_of, slot_of
from producers.batches import Arrival, batch
from producers.captures import Captures
from producers.clocks import by_neighbour, by_words
from producers.contents import Contents, read_contents
from producers.hiding import hidden_in_log
from producers.homes import Homes
from producers.inputs import Inputs, UnreadableRecording, Unused, canonical, reasons
from producers.levels import level_of
from producers.logfile import LogFile, reference_of, timed
from producers.node_jobs import OF_SEVERAL, NodeJobs, named_in
from producers.observations import Observation
from producers.owners import Owners
from producers.printed_stacks import printed_stacks
from producers.printed_timers import printed_timers
from producers.readers import collectives, inspector, kineto, launcher, metrics, op_timings, pids, ras, stacks, system
from producers.rows import Rows, near
from producers.samples import rows_of
from producers.scan import scan
from producers.sightings import sightings
from producers.sole import sole
from producers.times import EARLIEST, SECOND, Moment, cancelled
from producers.timing import Iterations, Life, Sightings, at_its_end, fill_alone, fill_worker
from producers.unnumbered import numbered
from producers.voices import Spoken
from producers.workers import NO_RANK, Worker
from producers.zones import in_one_zone
from schemas.events import Log, Topology
from schemas.identity import Identity

__all__ = ["Arrival", "Inputs", "Recording", "UnreadableRecording", "Unused", "read_recording"]

Exits = dict[tuple[str, str, int], launcher.Exit]
"""Ends of processes by job, node and process id."""
Progress = Callable[[str, int, int], None]
TOLD_LATER = 2 * SECOND
"""By how much a launcher's report, which may be by the second, may seem earlier than what its worker printed."""
HIDDEN_IN_LOG = "secrets in lines, replaced by ***"
NOBODYS = "nothing tells whose the stacks are; a name such as rank3.txt would"


class Recording(msgspec.Struct, frozen=True):
    """What a folder holds: its (first) job, the batches in order of arrival, and what was read and left aside."""

    job: str
    arrivals: list[Arrival]
    inputs: Inputs

    @property
    def span(self) -> tuple[int, int]:
        """Times (ns) of the first and the last arrival; what was read has at least one."""
        return self.arrivals[0].time, self.arrivals[-1].time


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
        why = reasons(contents.unused)
        raise UnreadableRecording(f"nothing in {root} is a recording that can be read ({seen} looked at){why}")
    contents, notes = _with_times(contents)
    found = cast(contents)
    told = list(_observe(contents, found))
    observations = [one for one in told if isinstance(one, Observation)]
    if not observations:
        raise UnreadableRecording(f"nothing in {root} has a time or can be given one")
    unused = [*odd, *contents.unused, *notes, *found.unused, *(one for one in told if isinstance(one, Unused))]
    inputs = Inputs(files=contents.files, records=contents.records(), unused=canonical(unused))
    return Recording(job=found.workers.job, arrivals=batch(observations), inputs=inputs)


def merged(recordings: Sequence[Recording]) -> Recording:
    """Recordings of jobs that ran side by side as one, in order of arrival; the first names the job."""
    if len(recordings) == 1:
        return recordings[0]
    arrivals = sorted(
        (arrival for recording in recordings for arrival in recording.arrivals),
        key=lambda arrival: (arrival.time, arrival.batch.identity.key, arrival.batch.boot, arrival.batch.seq),
    )
    inputs = Inputs(
        files=sum(recording.inputs.files for recording in recordings),
        records=sum(recording.inputs.records for recording in recordings),
        unused=[one for recording in recordings for one in recording.inputs.unused],
    )
    return Recording(job=recordings[0].job, arrivals=arrivals, inputs=inputs)


def _reference(contents: Contents, homes: Homes | None = None, job: str = "") -> int | None:
    """A time in the middle of all files, or of those of one job; null if nothing in them names a year."""
    tables, logs = contents.all_rows(), contents.logs()
    if homes:
        tables = [table for table in tables if homes.job_of(table.file) == job]
        logs = [log for log in logs if homes.job_of(log.file) == job]
    captured = [row.time for table in tables for row in table.rows]
    return median_low(captured) if captured else reference_of(logs)


def _reference_of_nodes(contents: Contents) -> int | None:
    found = system.reference_of(contents.nodes)
    return median_low(found) if found else None


def _with_times(contents: Contents) -> tuple[Contents, list[Unused]]:
    """The contents with the printed times of logs, without stray rows, and the notes of all logs and tables."""
    logs = contents.logs()
    homes = homes_of(contents)
    reference = _reference(contents)
    if reference is None:
        reference = _reference_of_nodes(contents)
    own = {job: _reference(contents, homes, job) or reference for job in {place.run for place, _ in contents.ranks}}

    def middle(file: str) -> int | None:
        return own.get(homes.job_of(file), reference)

    ranks = [(place, timed(log, middle(log.file))) for place, log in contents.ranks]
    captured = [row.time for table in contents.all_rows() for row in table.rows]
    ranks, zoned = in_one_zone(ranks, min(captured, default=None))
    launchers = [timed(log, middle(log.file)) for log in contents.launchers]
    spoken = [msgspec.structs.replace(one, log=timed(one.log, middle(one.log.file))) for one in contents.spoken]
    spoken = numbered(spoken)
    tables = {kind: [near(table, middle(table.file)) for table in found] for kind, found in contents.tables.items()}
    nodes = _timed_nodes(contents, middle)
    timed_logs = msgspec.structs.replace(contents, ranks=ranks, launchers=launchers, spoken=spoken, tables=tables)
    if contents.stacks:
        dumped = [near(table, middle(table.file)) for table in _sampled(timed_logs, homes)]
        tables = tables | {"stacks": tables.get("stacks", []) + dumped}
    read = [log for _, log in ranks] + launchers + [one.log for one in spoken] + [one.log for one in nodes]
    notes = [*zoned, *(note for log in read for note in log.unused)]
    notes += [note for found in tables.values() for table in found for note in table.unused]
    undated = logs or [one.log for one in contents.nodes]
    if reference is None and undated:
        notes.append(Unused(undated[0].file, 0, "no line names a year; 2000 is assumed"))
    whole = msgspec.structs.replace(
        contents, ranks=ranks, launchers=launchers, spoken=spoken, nodes=nodes, tables=tables
    )
    return whole, notes


def _sampled(contents: Contents, homes: Homes) -> list[Rows]:
    """The stacks in files of their own as rows."""
    known = {node for table in contents.all_rows() for row in table.rows if (node := row.text("node"))}

    def beside(one: str, other: str) -> bool:
        return homes.job_of(one) == homes.job_of(other) or "" in (homes.job_of(one), homes.job_of(other))

    spans: dict[str, tuple[int, int]] = {}

    def span(file: str) -> tuple[int, int]:
        job = homes.job_of(file)
        if job not in spans:
            spans[job] = _span(contents, homes, job) if job else _span(contents)
        return spans[job]

    captures = Captures(contents.rows("captures"), beside)
    pairs = [(dumped, captures.of(dumped.file)) for dumped in contents.stacks]
    found = [rows_of(dumped, captured, known, span) for dumped, captured in pairs]
    times = [row.time for table in found for row in table.rows if row.source == "captured"]
    if not times:
        return found

    first, last = min(times), max(times)

    def wider(file: str) -> tuple[int, int]:
        start, end = span(file)
        return (first if start == EARLIEST else start), max(end, last)

    return [rows_of(dumped, captured, known, wider) for dumped, captured in pairs]


def _timed_nodes(contents: Contents, middle: Callable[[str], int | None]) -> list[system.NodeLog]:
    """The logs of nodes with their times; what one file of a node tells of its boot holds for the others."""
    told = [(one, system.anchors_of(one, middle(one.log.file))) for one in contents.nodes]
    boots = system.Boots(told)
    return [system.timed(one, middle(one.log.file), boots.of(one)) for one in contents.nodes]


def _observe(contents: Contents, found: Cast) -> Iterable[Observation | Unused]:
    owners = found.owners
    for table in contents.rows("pids"):
        yield from pids.observe(table, owners)
    yield from _announced(found)
    for table in contents.rows("metrics"):
        yield from metrics.observe(table, owners)
    captures = Captures(contents.rows("captures"), owners.beside)
    yield from measured.observe(contents.measured, captures, owners, _span(contents))
    dumped = {one.file for one in contents.stacks}
    for table in contents.rows("stacks"):
        seen = stacks.observe(table, owners)
        yield from seen
        if table.file in dumped and seen and all(one.identity.rank_reason == NO_RANK for one in seen):
            yield Unused(table.file, 0, NOBODYS)
    yield from collectives.observe(contents.dumps, captures, owners)
    yield from ras.observe(contents.reports, captures, owners, _span(contents))
    yield from inspector.observe(contents.rows("inspector"), owners)
    yield from kineto.observe(contents.traces, captures, owners, _span(contents))
    yield from op_timings.observe(contents.timings, contents.layouts, captures, owners, _span(contents))
    yield from job_events.of_files(
        contents.described, owners, lambda job: _span(contents, owners.homes, job) if job else _span(contents)
    )
    yield from alarms.observe(contents.alarms, owners, _span(contents))
    yield from alarms.wired(contents.wirings, owners, _span(contents)[0])
    yield from _logs(contents, found)


def _announced(found: Cast) -> Iterable[Observation]:
    """Topology of the workers that no table of starts knows, out of what their logs say."""
    for worker in found.described:
        if worker.pid is not None and worker.start is not None and worker.rank is not None:
            event = Topology(time=worker.start, time_source="inferred", precision_ns=SECOND, pid=worker.pid)
            yield Observation(worker.identity(), worker.start, event, "", worker.rank)


def _logs(contents: Contents, found: Cast) -> Iterable[Observation | Unused]:
    whole = _span(contents)
    spans = {job: _span(contents, found.owners.homes, job) for job in {place.run for place, _ in contents.ranks}}
    exits: Exits = {}
    for log in contents.launchers:
        identity, home = _launcher(log, found.owners), found.owners.home(log.file)
        moments = fill_alone(log, Life(Sightings(), None, *spans.get(home, whole)))
        exits.update({(home, identity.node, pid): exit_ for pid, exit_ in launcher.exits(log, moments).items()})
        yield from _events(log, "stderr", moments, identity)
        yield from job_events.of_lines(log, moments, identity)
    yield from _nodes(contents, found, whole, spans)
    yield from _spoken(contents, found, whole, spans, exits)
    seen = sightings(contents, found.owners)
    iterations = Iterations()
    slots: dict[Slot, list[tuple[str, LogFile]]] = defaultdict(list)
    for place, log in contents.ranks:
        iterations.learn(found.writers[slot_of(place)], log)
        slots[slot_of(place)].append((place.stream, log))
    for slot, logs in sorted(slots.items()):
        worker = found.writers[slot]
        own = seen.get(worker, Sightings())
        pid = worker.pid or own.pid or 0
        exit_ = exits.get((worker.job, worker.node, pid)) or exits.get(("", worker.node, pid))
        if exit_ is None and not pid:
            exit_ = _end_of(worker, exits, max((log.last() or 0 for _, log in logs), default=0))
        start, end = spans[worker.job]
        life = Life(own, exit_.time if exit_ else None, start if worker.start is None else worker.start, end)
        filled = fill_worker([log for _, log in logs], iterations.of(worker), life)
        yield from _shifted(worker, [log for _, log in logs], filled)
        identity = _writer(worker, found.doubted.get(slot, ""))
        for (stream, log), moments in zip(logs, filled, strict=True):
            yield from _events(log, stream, moments, identity)
            yield from printed_stacks(log, moments, identity, pid)
            yield from printed_timers(log, moments, partial(_of_rank, found, worker.job))
            yield from job_events.of_lines(log, moments, identity, launcher=job_events.TORCHRUN)


def _end_of(worker: Worker, exits: Exits, last: int) -> launcher.Exit | None:
    """The end that a launcher reports of a worker whose process nobody knows, by node and local rank."""
    here = _ends_in({key: one for key, one in exits.items() if key[1] and key[1] == worker.node}, worker.job)
    return _first_end([one for one in here if one.local_rank == worker.local_rank], last)


def _ends_in(exits: Exits, home: str) -> list[launcher.Exit]:
    return [one for (job, _, _), one in exits.items() if job in ("", home)]


def _first_end(ends: Sequence[launcher.Exit], last: int) -> launcher.Exit | None:
    """Of the ends of one worker's attempts the first that does not lie before what it printed last (ns)."""
    after = [one for one in ends if one.time >= last - TOLD_LATER]
    return min(after, key=lambda one: (one.time, one.pid), default=None)


def _shifted(worker: Worker, logs: Sequence[LogFile], filled: Sequence[Sequence[Moment]]) -> Iterable[Observation]:
    """That a worker's printed times were set back, since they show another zone, told with the first of them."""
    times = [moment.time for moments in filled for moment in moments]
    shift = next((log.shifted for log in logs if log.shifted), 0)
    if shift and times and worker.rank is not None:
        event = Topology(time=min(times), time_source="inferred", pid=0, shifted_ns=shift)
        yield Observation(worker.identity(), event.time, event, logs[0].file, 0)


def _nodes(
    contents: Contents, found: Cast, whole: tuple[int, int], spans: dict[str, tuple[int, int]]
) -> Iterable[Observation | Unused]:
    """What nodes' own logs say; it belongs to the node, whoever runs there, and to the job that runs there."""
    ours = [(found.speakers.identities[one.log.file, one.voice].job, one.log.file) for one in contents.spoken]
    jobs = NodeJobs([*ours, *((place.run, log.file) for place, log in contents.ranks)], found.owners.workers)
    for one in contents.nodes:
        home = found.owners.home(one.log.file)
        node = system.node_of(one, found.owners.workers.nodes(home))
        ran = jobs.of(one.log.file, node)
        named = named_in([record.text for record in one.log.records], jobs.jobs)
        moments = system.filled(one, *spans.get(home, whole))
        identities = {
            (job, kind): Identity(job=job, node=node, rank_reason="log of a node", process_type=kind)
            for job in sorted({*named, ran} - {""})
            for kind in ("kernel", "system")
        }
        latest = 0
        strange: list[int] = []
        for record, moment, head, job in zip(one.log.records, moments, one.heads, named, strict=True):
            if not (job or ran):
                strange.append(record.line)
                continue
            latest = max(latest, moment.time)
            kind = system.process_type(head)
            event = Log(
                time=moment.time,
                time_source=moment.source,
                precision_ns=moment.precision,
                stream=head.program,
                text=record.text,
                level=head.level or level_of(record.text),
                file=one.log.file,
                offset=record.offset,
                line=record.line,
                process_type=kind,
            )
            yield Observation(identities[job or ran, kind], latest, event, one.log.file, record.line)
        if strange:
            yield Unused(one.log.file, strange[0], OF_SEVERAL, len(strange))


def _spoken(
    contents: Contents, found: Cast, whole: tuple[int, int], spans: dict[str, tuple[int, int]], exits: Exits
) -> Iterable[Observation | Unused]:
    """The lines of files that several wrote; one without a time gets it from those around it, whoever wrote them.

    What stands untimed at the end of a file of one rank came at its end, where a launcher reports that.
    """
    files: dict[str, list[Spoken]] = defaultdict(list)
    for one in contents.spoken:
        files[one.log.file].append(one)
    for file, voices in files.items():
        start, end = spans.get(found.owners.home(file), whole)
        records = sorted(
            (record.line, at, index) for at, one in enumerate(voices) for index, record in enumerate(one.log.records)
        )
        known = [one.log.moments for one in voices]
        if len(voices) == 1 and voices[0].rank is not None:
            home, last = found.owners.home(file), voices[0].log.last() or 0
            ended = _first_end([one for one in _ends_in(exits, home) if one.rank == voices[0].rank], last)
            known = [at_its_end(voices[0].log, None if ended is None else ended.time)]
        told = [cancelled(voices[at].log.records[index].text) for _, at, index in records]
        filled = by_neighbour(by_words([known[at][index] for _, at, index in records], told, end), start, end)
        moments: list[list[Moment]] = [[] for _ in voices]
        for (_, at, _), moment in zip(records, filled, strict=True):
            # Where no time follows nobody knows how much later it was.
            inexact = moment.source == "inferred" and moment.precision < SECOND
            moments[at].append(msgspec.structs.replace(moment, precision=SECOND) if inexact else moment)
        for one, own in zip(voices, moments, strict=True):
            identity = found.speakers.identities[one.log.file, one.voice]
            yield from _events(one.log, one.stream, own, identity, found.speakers.of_error(one))
            yield from printed_stacks(one.log, own, identity, max(one.voice.pid, 0))
            yield from printed_timers(one.log, own, partial(_of_rank, found, identity.job))
            yield from job_events.of_lines(one.log, own, identity)


def _of_rank(found: Cast, job: str, rank: int, time: int) -> Identity:
    return found.workers.identity(rank, "", None, time, job)


def _span(contents: Contents, homes: Homes | None = None, job: str = "") -> tuple[int, int]:
    """First and last time of all files, or of those that may belong to a job."""
    logs, tables = contents.logs(), contents.all_rows()
    if homes:
        logs = [log for log in logs if homes.job_of(log.file) in ("", job)]
        tables = [table for table in tables if homes.job_of(table.file) in ("", job)]
    times = [moment.time for log in logs for moment in log.moments if moment is not None]
    times += [row.time for table in tables for row in table.rows]
    times = times or [trace.taken for trace in contents.traces if trace.taken is not None]
    times = times or [moment.time for one in contents.nodes for moment in one.log.moments if moment is not None]
    return min(times, default=EARLIEST), max(times, default=EARLIEST)


def _writer(worker: Worker, doubt: str) -> Identity:
    identity = worker.identity()
    return msgspec.structs.replace(identity, rank=None, rank_reason=doubt) if doubt else identity


def _launcher(log: LogFile, owners: Owners) -> Identity:
    workers, home = owners.workers, owners.home(log.file)
    mentioned = {worker.node for pid in launcher.pids(log) if (worker := workers.by_pid(pid, job=home))}
    node = log.node or launcher.node_of(log.file, workers.nodes(home), sole(mentioned) or "")
    return Identity(
        job=home or log.job or owners.job(log.file, node),
        node=node,
        rank_reason="launcher of a node",
        process_type="launcher",
    )


def _events(
    log: LogFile, stream: str, moments: list[Moment], identity: Identity, errors: Identity | None = None
) -> Iterable[Observation | Unused]:
    """The events of a log, without secrets; ``errors`` is whose its tracebacks are, if that is another."""
    latest = secrets = 0
    for record, moment, iteration in zip(log.records, moments, log.iterations, strict=True):
        latest = max(latest, moment.time)
        owner = errors if errors is not None and record.shape == "traceback" else identity
        text, found = hidden_in_log(record.text)
        secrets += found
        event = Log(
            time=moment.time,
            time_source=moment.source,
            precision_ns=moment.precision,
            iteration=iteration,
            stream=record.wrap.stream or stream,
            text=text,
            level=level_of(text),
            file=log.file,
            offset=record.offset,
            line=record.line,
            # Launchers and workers of unknown ranks share the node's name.
            process_type=owner.process_type if owner.rank is None else "",
        )
        yield Observation(owner, latest, event, log.file, record.line)
    if secrets:
        yield Unused(log.file, 0, HIDDEN_IN_LOG, secrets)
