"""Recorded files through the whole pipeline: producers, stages and sink over the in-memory log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

import streams.detectors  # noqa: F401  (registers all detectors)
from producers.publish import stream
from producers.recording import Inputs, Recording, Unused, read_recording
from rankwatch.database import database
from rankwatch.home import NO_DATABASE
from schemas.codec import encode, headers
from schemas.identity import NO_JOB
from schemas.ids import stable_id
from schemas.jobs import JobDescription
from schemas.library import Library
from schemas.results import Incident
from sinks.migrate import migrate
from sinks.runs import Run, record_run
from sinks.sink import Sink
from streams import judged, report
from streams.config import StreamConfig
from streams.driver import Driver
from streams.library.known import Known
from streams.log.memory import MemoryLog
from streams.versions import versions

Kind = Literal["diagnose", "replay", "demo"]

Watch = Callable[[int, list[Incident]], None]
"""Told the time reached and the revisions published since the last call."""


class Diagnosis(msgspec.Struct, frozen=True):
    """What a run found. ``log`` holds everything that the pipeline said, ``inputs`` also what the stages refused.

    ``library`` is what healthy jobs print, as far as the run was told.
    """

    recording: Recording
    incidents: list[Incident]
    log: MemoryLog
    config: StreamConfig
    until: int | None
    run_id: str
    inputs: Inputs
    library: Library | None = None

    @property
    def versions(self) -> dict[str, str]:
        """The versions that the result depends on."""
        return {**versions(), **({"library": self.library.label} if self.library else {})}

    @property
    def jobs(self) -> list[str]:
        """All jobs of the recording, its own first; without the mark of nodes that are idle, unless it is alone."""
        found = {arrival.batch.identity.job for arrival in self.recording.arrivals}
        return [self.recording.job, *sorted(found - {self.recording.job, NO_JOB})]

    @property
    def description(self) -> JobDescription:
        """What is known of the (first) job."""
        return report.descriptions(self.log).get(self.recording.job, JobDescription())

    @property
    def pages(self) -> bool:
        """Whether any incident is critical or a warning."""
        return any(incident.severity in ("critical", "warning") for incident in self.incidents)


def diagnose(
    root: Path,
    *,
    until: int | None = None,
    config: StreamConfig | None = None,
    watch: Watch | None = None,
    partitions: int = 2,
) -> Diagnosis:
    """Read ``root``, stream it, and return what was found; with ``until`` (ns) only what was there by then.

    Raises UnreadableRecording where nothing can be read.
    """
    return run(read_recording(root), until=until, config=config, watch=watch, partitions=partitions)


def run(
    recording: Recording,
    *,
    until: int | None = None,
    config: StreamConfig | None = None,
    watch: Watch | None = None,
    partitions: int = 2,
    library: Library | None = None,
) -> Diagnosis:
    """Stream a recording that has been read, and hold it against ``library``. Raises LibraryError."""
    config = config or StreamConfig()
    log = MemoryLog(partitions)
    known = None if library is None else Known(library)
    if known is not None:
        # What results rest on lies in the log beside them.
        log.append("library", known.library.name.encode(), encode(known.library), headers("library"), 0)
    driver = Driver(log, config, known=known)
    seen = Revisions(log)
    told: int | None = None
    for time in stream(recording, log, until=until, closing_ns=config.closing_ns, silence_ns=config.forgetting_ns):
        # Between two ends of windows nothing can be said yet, and reading tick by tick costs more than what is read.
        before, told = told, (time - config.lateness_ns) // config.window_ns
        if told != before:
            driver.run()
        if watch is not None:
            watch(time, list(seen.fresh()))
    driver.run()
    return Diagnosis(
        recording=recording,
        incidents=report.latest(report.revisions(log)),
        log=log,
        config=config,
        until=until,
        run_id=_run_id(recording, until, config, known),
        inputs=_with_refused(recording.inputs, log),
        library=None if known is None else known.library,
    )


def _run_id(recording: Recording, until: int | None, config: StreamConfig, known: Known | None) -> str:
    """The same files, cut at the same time, with the same configuration, versions and library are the same run."""
    content = stable_id(*(encode(arrival.batch).decode() for arrival in recording.arrivals))
    libraries = [f"{name} {at}" for name, at in sorted(versions().items())]
    return stable_id("run", content, until, config.hash, *libraries, *([known.label] if known else []))


def _with_refused(inputs: Inputs, log: MemoryLog) -> Inputs:
    """The inputs with the records that a stage could not use; they stand under their topic, at their offset."""
    letters = report.dead_letters(log)
    refused = [Unused(f"topic {letter.topic}", letter.offset, letter.reason) for letter in letters]
    return Inputs(files=inputs.files, records=inputs.records, unused=[*inputs.unused, *refused])


class Revisions:
    """The incident revisions of a log that have not been handed out yet."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log
        self._offsets = dict.fromkeys(range(log.partitions("incidents")), 0)

    def fresh(self) -> Iterator[Incident]:
        """Those appended since the last call, in order of publication."""
        found = []
        for partition, offset in self._offsets.items():
            entries = self._log.read("incidents", partition, offset, self._log.end("incidents", partition) - offset)
            self._offsets[partition] = offset + len(entries)
            found += [report.incident_of(entry) for entry in entries]
        yield from sorted(found, key=report.publication)


def store(diagnosis: Diagnosis, dsn: str, *, kind: Kind) -> dict[str, int]:
    """Put a run's rows into ClickHouse under its run id; returns rows by table. Raises SinkError."""
    if dsn == NO_DATABASE:
        return {}
    with database(dsn, kind) as client:
        migrate(client)
        counts = Sink(diagnosis.log, client, run_id=diagnosis.run_id).drain()
        record_run(client, run_of(diagnosis, kind))
    return counts


def run_of(diagnosis: Diagnosis, kind: Kind) -> Run:
    """The row that describes a run."""
    started, ended = diagnosis.recording.span
    return Run(
        run_id=diagnosis.run_id,
        kind=kind,
        job=diagnosis.recording.job,
        started=started,
        ended=ended if diagnosis.until is None else min(ended, diagnosis.until),
        versions=diagnosis.versions,
        inputs=diagnosis.recording.inputs.records,
    )


def as_json(diagnosis: Diagnosis) -> dict[str, Any]:
    """The report that tools rely on (DESIGN section 7)."""
    return {
        "job": {"id": diagnosis.recording.job, **report.description_json(diagnosis.description)},
        "inputs": inputs_json(diagnosis.inputs),
        "run_id": diagnosis.run_id,
        "judged": judged.as_json(judged.judged(diagnosis.log)),
        "until": None if diagnosis.until is None else report.moment(diagnosis.until),
        "versions": diagnosis.versions,
        "incidents": [report.as_json(incident) for incident in diagnosis.incidents],
        "differences": [report.difference_json(one) for one in report.differences(diagnosis.log)],
    }


def inputs_json(inputs: Inputs) -> dict[str, Any]:
    """What was read, and what was not, where and why."""
    return {
        "files": inputs.files,
        "records": inputs.records,
        "unused": [
            {"file": one.file, "line": one.line, "reason": one.reason, "count": one.count} for one in inputs.unused
        ],
    }
