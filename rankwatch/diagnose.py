"""Recorded files through the whole pipeline: producers, stages and sink over the in-memory log."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

import streams.detectors  # noqa: F401  (registers all detectors)
from producers.publish import stream
from producers.recording import Inputs, Recording, Unused, read_recording
from rankwatch.database import database
from rankwatch.home import NO_DATABASE
from rankwatch.silenced import silence_json, silences_at
from schemas.codec import encode, headers
from schemas.identity import NO_JOB
from schemas.ids import stable_id
from schemas.jobs import JobDescription
from schemas.library import Library
from schemas.results import Incident
from schemas.silences import Silence
from sinks.migrate import migrate
from sinks.runs import Run, record_run
from sinks.sink import Sink
from streams import compared, judged, report
from streams.config import StreamConfig
from streams.driver import Driver
from streams.library.known import Known
from streams.log.memory import MemoryLog
from streams.memberships import Memberships, memberships
from streams.versions import versions

Kind = Literal["diagnose", "replay", "demo"]

Watch = Callable[[int, list[Incident]], None]
"""Told the time reached and the revisions published since the last call."""


class Diagnosis(msgspec.Struct, frozen=True):
    """What a run found. ``log`` holds everything that the pipeline said, ``inputs`` also what the stages refused.

    ``library`` is what healthy jobs print, as far as the run was told, ``silences`` what was not to page.
    """

    recording: Recording
    incidents: list[Incident]
    log: MemoryLog
    config: StreamConfig
    until: int | None
    run_id: str
    inputs: Inputs
    library: Library | None = None
    silences: Sequence[Silence] = ()

    @property
    def silenced(self) -> dict[str, Silence]:
        """By incident's id the silence that holds for it."""
        return silences_at(self.incidents, self.silences, _ended(self.recording, self.until))

    @property
    def versions(self) -> dict[str, str]:
        """The versions that the result depends on."""
        silences = {"silences": ", ".join(one.label for one in self.silences)} if self.silences else {}
        return {**versions(), **({"library": self.library.label} if self.library else {}), **silences}

    @property
    def jobs(self) -> list[str]:
        """All jobs of the recording, its own first; without the mark of nodes that are idle, unless it is alone."""
        found = {arrival.batch.identity.job for arrival in self.recording.arrivals}
        return [self.recording.job, *sorted(found - {self.recording.job, NO_JOB})]

    @property
    def fleet(self) -> Memberships:
        """Of which incident of several jobs each of its incidents is part."""
        return memberships(self.incidents)

    @property
    def description(self) -> JobDescription:
        """What is known of the (first) job."""
        return report.descriptions(self.log).get(self.recording.job, JobDescription())

    @property
    def pages(self) -> bool:
        """Whether any incident pages somebody: critical or a warning, part of no other of its job, and not silenced.

        That of a job which is part of one of several jobs pages all the same: each job has staff of its own.
        """
        silenced = self.silenced
        return any(pages(one) and one.id not in silenced for one in self.incidents)


def pages(incident: Incident) -> bool:
    """Whether it is one to wake somebody for; what proved to be part of another of its job is not."""
    return incident.severity in ("critical", "warning") and not incident.merged_into


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
    silences: Sequence[Silence] = (),
    refused: Sequence[Unused] = (),
) -> Diagnosis:
    """Stream a recording that has been read, and hold it against ``library``. Raises LibraryError.

    ``silences`` change nothing that is found, only what pages; ``refused`` is what was given beside it and is no use.
    """
    config = config or StreamConfig()
    log = MemoryLog(partitions)
    known = None if library is None else Known(library)
    if known is not None:
        # What results rest on lies in the log beside them.
        log.append("library", known.library.name.encode(), encode(known.library), headers("library"), 0)
    for silence in silences:
        log.append("silences", silence.id.encode(), encode(silence), headers("silence"), 0)
    driver = Driver(log, config, known=known)
    seen = Revisions(log)
    told: int | None = None
    for time in stream(recording, log, until=until, closing_ns=config.settling_ns, silence_ns=config.forgetting_ns):
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
        run_id=_run_id(recording, until, config, known, silences),
        inputs=_with_refused(recording.inputs, refused, log),
        library=None if known is None else known.library,
        silences=silences,
    )


def _run_id(
    recording: Recording,
    until: int | None,
    config: StreamConfig,
    known: Known | None,
    silences: Sequence[Silence],
) -> str:
    """The same files, cut at the same time, with the same configuration, versions, library and silences are the same
    run.
    """
    content = stable_id(*(encode(arrival.batch).decode() for arrival in recording.arrivals))
    libraries = [f"{name} {at}" for name, at in sorted(versions().items())]
    silenced = [encode(silence).decode() for silence in silences]
    return stable_id("run", content, until, config.hash, *libraries, *([known.label] if known else []), *silenced)


def _with_refused(inputs: Inputs, refused: Sequence[Unused], log: MemoryLog) -> Inputs:
    """The inputs with what was ``refused`` before, and the records that a stage could not use.

    These stand under their topic, at their offset.
    """
    letters = [Unused(f"topic {letter.topic}", letter.offset, letter.reason) for letter in report.dead_letters(log)]
    return Inputs(files=inputs.files, records=inputs.records, unused=[*refused, *inputs.unused, *letters])


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


def _ended(recording: Recording, until: int | None) -> int:
    """The latest time that a run saw anything of (ns)."""
    return recording.span[1] if until is None else min(recording.span[1], until)


def run_of(diagnosis: Diagnosis, kind: Kind) -> Run:
    """The row that describes a run."""
    return Run(
        run_id=diagnosis.run_id,
        kind=kind,
        job=diagnosis.recording.job,
        started=diagnosis.recording.span[0],
        ended=_ended(diagnosis.recording, diagnosis.until),
        versions=diagnosis.versions,
        inputs=diagnosis.recording.inputs.records,
    )


def as_json(diagnosis: Diagnosis) -> dict[str, Any]:
    """The report that tools rely on (DESIGN section 7)."""
    fleet = diagnosis.fleet
    silenced = diagnosis.silenced
    return {
        "job": {"id": diagnosis.recording.job, **report.description_json(diagnosis.description)},
        "inputs": inputs_json(diagnosis.inputs),
        "run_id": diagnosis.run_id,
        "judged": judged.as_json(judged.judged(diagnosis.log)),
        "until": None if diagnosis.until is None else report.moment(diagnosis.until),
        "versions": diagnosis.versions,
        "incidents": [
            {**report.as_json(one, fleet.of(one)), "silenced": silence_json(silenced.get(one.id))}
            for one in diagnosis.incidents
        ],
        "comparison": [compared.as_json(one) for one in compared.comparisons(diagnosis.log)],
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
