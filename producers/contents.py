"""Tells files apart by what they hold, reads them, and keeps what was read by kind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import msgspec

from producers import captures, job_files
from producers.envelopes.evidence import forms_of, is_wrapped, shown
from producers.envelopes.evidence import sample as lines_of
from producers.envelopes.wrap import NONE
from producers.files import by_file, in_place
from producers.homes import Homes
from producers.inputs import UNRECOGNISED, Unused
from producers.introductions import Introduced, Introductions, introduced
from producers.job_facts import JobFacts
from producers.lines import is_archive, is_binary, is_packed
from producers.logfile import LogFile, labelled, read_log
from producers.measured import Measured
from producers.readers import (
    alert_lines,
    alerts,
    collectives,
    dumps,
    errorfile,
    infiniband,
    inspector,
    json_log,
    kineto,
    launcher,
    metrics,
    nvidia_smi,
    op_layouts,
    op_tables,
    op_timings,
    pickled,
    pids,
    plain,
    prometheus,
    ras,
    stackfile,
    stackjson,
    stacks,
    system,
    torchrun,
    wiring,
)
from producers.rows import Fields, Rows, is_array, sample
from producers.samples import Dumped, empty, named
from producers.scan import Source
from producers.sole import sole
from producers.voices import Spoken, voices_of

_TABLES: tuple[tuple[str, Callable[[Fields], bool], Callable[[Source], Rows]], ...] = (
    ("stacks", stacks.fits, stacks.read),
    ("captures", captures.fits, captures.read),
    ("pids", pids.fits, pids.read),
    ("inspector", inspector.fits, inspector.read),
    ("metrics", metrics.fits, metrics.read),
)
"""Kinds of row files; the first that fits a row decides."""


class Contents(msgspec.Struct):
    """What the files of a folder hold, in order of their paths; ``unused`` is added to while reading.

    ``described`` is what files tell of the job itself, which is no recording of it.
    ``consoles`` are those launchers' logs in which workers have lines of their own, ``wrapped`` other logs in
    envelopes, ``plain`` those without. ``introduced`` is what NCCL tells of the processes of each job and attempt.
    """

    ranks: list[tuple[torchrun.Place, LogFile]] = []
    launchers: list[LogFile] = []
    consoles: list[tuple[plain.Place, LogFile]] = []
    wrapped: list[tuple[plain.Place, LogFile]] = []
    plain: list[tuple[plain.Place, LogFile]] = []
    introduced: dict[tuple[str, str], Introduced] = {}
    spoken: list[Spoken] = []
    nodes: list[system.NodeLog] = []
    tables: dict[str, list[Rows]] = {}
    dumps: list[dumps.Dump] = []
    traces: list[kineto.Trace] = []
    stacks: list[Dumped] = []
    reports: list[ras.Reports] = []
    measured: list[Measured] = []
    timings: list[op_tables.Timings] = []
    layouts: list[op_layouts.Layout] = []
    described: list[JobFacts] = []
    alarms: list[alerts.Alarms] = []
    wirings: list[wiring.Wiring] = []
    unused: list[Unused] = []
    files: int = 0

    def rows(self, kind: str) -> list[Rows]:
        """The row files of a kind."""
        return self.tables.get(kind, [])

    def logs(self) -> list[LogFile]:
        """All log files, the ranks' before the launchers', and the parts of those that several wrote."""
        return [log for _, log in self.ranks] + self.launchers + [spoken.log for spoken in self.spoken]

    def all_rows(self) -> list[Rows]:
        """The row files of all kinds."""
        return [table for tables in self.tables.values() for table in tables]

    def records(self) -> int:
        """How many rows, log records, entries of dumps and calls of traces were read."""
        return (
            sum(len(log.records) for log in self.logs())
            + sum(len(one.log.records) for one in self.nodes)
            + sum(len(table.rows) for table in self.all_rows())
            + sum(len(dump.entries) for dump in self.dumps)
            + sum(trace.calls for trace in self.traces)
            + sum(len(dumped.samples) for dumped in self.stacks)
            + sum(len(one.reports) for one in self.reports)
            + sum(len(one.samples) for one in self.measured)
            + sum(one.rows for one in self.timings)
            + sum(len(one.alarms) for one in self.alarms)
            + sum(len(one.paths) for one in self.wirings)
        )


def read_contents(sources: list[Source], progress: Callable[[str, int, int], None] | None = None) -> Contents:
    """Everything in ``sources`` that a reader knows; files that cannot be read are noted, not raised."""
    contents = Contents()
    for count, source in enumerate(sources):
        if progress:
            progress(source.file, count, len(sources))
        try:
            reason = _read(source, contents)
            if reason and _tells_of_job(source, contents):
                reason = ""
        except OSError as error:
            reason = f"cannot be read: {error.strerror or error}"
        if reason:
            contents.unused.append(Unused(source.file, 0, reason))
        else:
            contents.files += 1
    introductions = _introduce(contents)
    for where, log in contents.wrapped:
        _tell_apart(log, contents, where, introductions)
    contents.wrapped = []
    for where, console in contents.consoles:
        # What workers print stands in their own files, too, where torchrun writes such.
        if contents.ranks:
            contents.launchers.append(labelled(console))
        else:
            _tell_apart(console, contents, where, introductions)
    contents.consoles = []
    contents.measured = infiniband.as_trees(contents.measured)
    contents.unused.extend(op_timings.notes(contents.timings, contents.layouts))
    _say_whose(contents, introductions)
    if progress and sources:
        progress("", len(sources), len(sources))
    return contents


def _read(source: Source, contents: Contents) -> str:
    """Reads one file into ``contents``; returns why it was left aside, or nothing."""
    if place := torchrun.place(source):
        return _read_rank(source, place, contents)
    if port := infiniband.place(source):
        contents.measured.append(infiniband.read(source, port))
        return ""
    if not source.size:
        return _read_empty(source, contents)
    # A script may hold what it prints, and so look like a log.
    if job_files.is_script(source) and _tells_of_job(source, contents):
        return ""
    if read_whole := _reader_of(source):
        return read_whole(source, contents)
    return _read_holed(source, contents) if _is_no_text(source) else _read_rows(source, contents)


def _tells_of_job(source: Source, contents: Contents) -> bool:
    """Reads a file that tells what the job is; returns whether it is such."""
    facts = job_files.read(source)
    if facts is not None:
        contents.described.append(facts)
    return facts is not None


def _is_no_text(source: Source) -> bool:
    return is_packed(source.path) or is_binary(source.path)


def _read_rows(source: Source, contents: Contents) -> str:
    """A log of rows or a table of them, else a text."""
    rows = sample(source.path)
    if json_log.recognised(rows) and not is_array(source.path):
        contents.spoken.extend(json_log.read(source))
        return ""
    if rows and alerts.fits(rows[0]):
        return _read_alarms(source, contents)
    if rows and wiring.fits(rows[0]):
        _take_wiring(wiring.read_rows(source), contents)
        return ""
    if kind := _table_of(rows):
        reader = next(read for name, _, read in _TABLES if name == kind)
        contents.tables.setdefault(kind, []).append(reader(source))
        return ""
    # A launcher's log may begin with a bracket too, so it is looked for before JSON.
    return "" if _read_text(source, contents) else _read_json(source, contents)


def _reader_of(source: Source) -> Callable[[Source, Contents], str] | None:
    """Who reads a file that is told by how it begins or what it is called, null where lines have to tell."""
    if pickled.is_pickle(source.path):
        return _read_dump
    if op_tables.is_parquet(source.path):
        return _read_timings
    if kineto.recognised(source):
        return _read_trace
    if alerts.recognised(source):
        return _read_alarms
    return _read_layout if op_layouts.is_layout(source) else None


def _read_empty(source: Source, contents: Contents) -> str:
    """A sampler that got nothing leaves a file without content, which says so of the process that its name tells."""
    if not named(source.file):
        return "empty file"
    contents.stacks.append(empty(source.file))
    return ""


def _read_rank(source: Source, place: torchrun.Place, contents: Contents) -> str:
    if place.stream != torchrun.ERROR:
        contents.ranks.append((place, read_log(source)))
        return ""
    try:
        log = errorfile.read(source)
    except ValueError as error:
        return str(error)
    if log is None:
        return UNRECOGNISED
    contents.ranks.append((place, log))
    return ""


def _read_text(source: Source, contents: Contents) -> bool:
    """Reads a node's own log, a launcher's, or lines in envelopes; returns whether it is such."""
    texts = lines_of(source.path)
    for table in (prometheus, nvidia_smi):
        if table.recognised(texts):
            contents.measured.append(table.read(source))
            return True
    if reports := ras.read(source, texts):
        contents.reports.append(reports)
        contents.unused.extend(reports.unused)
        return True
    if dumped := stackjson.read(source) or stackfile.read(source, texts):
        contents.stacks.append(dumped)
        return True
    if _read_platform(source, texts, contents):
        return True
    forms = forms_of(texts)
    console = launcher.recognised(source)
    where = plain.place(source)
    wrapped = is_wrapped(texts, forms)
    if not console and not wrapped and not plain.recognised(source, shown(source.path), where):
        return False
    log = read_log(source, forms)
    if not console and (wrapped and where.rank < 0 and where.number < 0):
        contents.wrapped.append((where, log))
    elif not console:
        contents.plain.append((where, log))
    elif any(record.wrap != NONE for record in log.records):
        contents.consoles.append((where, log))
    else:
        contents.launchers.append(log)
    return True


def _read_platform(source: Source, texts: list[str], contents: Contents) -> bool:
    """Reads what schedulers, switch managers and nodes themselves tell; returns whether it is such."""
    if alert_lines.recognised(texts):
        _take_alarms(alert_lines.read(source, texts), contents)
    elif wiring.recognised(source, texts):
        _take_wiring(wiring.read(source), contents)
    elif system.recognised(texts):
        contents.nodes.extend(system.read(source))
    else:
        return False
    return True


def _introduce(contents: Contents) -> Introductions:
    """Learns who the processes of each job and attempt are; a file whose job nothing tells is of the only one."""
    homes = Homes((place.run, place.folder) for place, _ in contents.ranks)
    written = [*contents.wrapped, *contents.consoles, *contents.plain]
    jobs = {job for where, log in written if (job := homes.job_of(log.file) or where.job)}
    only = sole(jobs) or ""

    def job_of(file: str, named: str) -> str:
        return homes.job_of(file) or named or only

    logs: dict[tuple[str, str], list[LogFile]] = defaultdict(list)
    for place, log in contents.ranks:
        logs[place.run, place.attempt].append(log)
    for where, log in written:
        logs[job_of(log.file, where.job), ""].append(log)
    contents.introduced = {key: introduced(found) for key, found in logs.items()}
    return lambda file, named: contents.introduced[job_of(file, named), ""]


def _say_whose(contents: Contents, introductions: Introductions) -> None:
    """Plain logs; what workers print stands in their own files where torchrun writes such."""
    for where, log in contents.plain:
        if contents.ranks and not where.named:
            contents.unused.append(Unused(log.file, 0, UNRECOGNISED))
            contents.files -= 1
    kept = [(where, log) for where, log in contents.plain if where.named or not contents.ranks]
    contents.plain = []
    for spoken in by_file(kept, introductions):
        contents.unused.extend(spoken.log.unused)
        contents.spoken.append(msgspec.structs.replace(spoken, log=msgspec.structs.replace(spoken.log, unused=[])))


def _tell_apart(log: LogFile, contents: Contents, where: plain.Place, introductions: Introductions) -> None:
    contents.unused.extend(log.unused)
    voices = voices_of(log, introductions(log.file, where.job))
    for spoken in (in_place(one, where) for one in voices):
        if not spoken.voice.alone and spoken.rank is None and launcher.speaks(spoken.log):
            contents.launchers.append(msgspec.structs.replace(spoken.log, node=spoken.node, job=spoken.job))
        else:
            contents.spoken.append(spoken)


def _read_holed(source: Source, contents: Contents) -> str:
    """A file of NUL bytes: a log that was cut off while it was written begins with as many as it had bytes."""
    if is_packed(source.path):
        return "compressed; unpack it to have it read"
    return "binary file" if is_archive(source.path) or not _read_text(source, contents) else ""


def _read_timings(source: Source, contents: Contents) -> str:
    try:
        found = op_tables.read(source)
    except ValueError as error:
        return str(error)
    if found is None:
        return UNRECOGNISED
    contents.timings.append(found)
    return ""


def _read_layout(source: Source, contents: Contents) -> str:
    try:
        contents.layouts.append(op_layouts.read_layout(source))
    except ValueError as error:
        return str(error)
    return ""


def _read_alarms(source: Source, contents: Contents) -> str:
    _take_alarms(alerts.read(source), contents)
    return ""


def _take_alarms(found: alerts.Alarms, contents: Contents) -> None:
    contents.alarms.append(found)
    contents.unused.extend(found.unused)


def _take_wiring(found: wiring.Wiring, contents: Contents) -> None:
    contents.wirings.append(found)
    contents.unused.extend(found.unused)


def _table_of(rows: list[Fields]) -> str:
    for fields in rows:
        for kind, fits, _ in _TABLES:
            if fits(fields):
                return kind
    return ""


def _read_json(source: Source, contents: Contents) -> str:
    with source.path.open("rb") as file:
        if not file.read(4_096).lstrip().startswith(b"{"):
            return UNRECOGNISED
    # Rows of a kind that nobody knows are no broken dump.
    return UNRECOGNISED if (reason := _read_dump(source, contents)) and sample(source.path) else reason


def _read_trace(source: Source, contents: Contents) -> str:
    try:
        trace = kineto.read(source)
    except ValueError as error:
        return str(error)
    contents.traces.append(trace)
    contents.unused.extend(trace.unused)
    return ""


def _read_dump(source: Source, contents: Contents) -> str:
    try:
        dump = dumps.read(source)
    except ValueError as error:
        return str(error)
    if dump is None:
        return UNRECOGNISED
    contents.dumps.append(dump)
    contents.unused.extend(collectives.notes(dump))
    return ""
