"""Whose what is told of a job is, as events: a file's belongs to its job, node or rank, lines to whoever wrote them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from producers import job_files
from producers.inputs import Unused
from producers.job_facts import JobFacts
from producers.job_lines import told_by
from producers.logfile import LogFile
from producers.observations import Observation
from producers.owners import Owners
from producers.times import SECOND, Moment
from schemas.identity import Identity

REASON = "belongs to the job"
SEVERAL = "tells of a job, and nothing tells of which of several"


def of_files(
    told: Sequence[JobFacts], owners: Owners, span: Callable[[str], tuple[int, int]]
) -> Iterable[Observation | Unused]:
    """What files tell, said when the recording of their job begins (``span`` by job)."""
    jobs = {worker.job for worker in owners.workers.all}
    for facts in told:
        home = owners.home(facts.source)
        if not home and len(jobs) > 1:
            yield Unused(facts.source, 0, SEVERAL)
            continue
        start, end = span(home)
        identity = _identity(facts.source, owners, start)
        event = facts.event(start, "inferred", max(end - start, SECOND))
        yield Observation(identity, start, event, facts.source, 0)


def _identity(file: str, owners: Owners, time: int) -> Identity:
    """The rank that the name tells, if there is such; else the node in its path; else the job."""
    job = owners.job(file, "")
    rank = job_files.rank_of(file)
    if rank is not None and owners.of_attempts(file, rank, ""):
        return owners.of_rank(file, rank, time)
    parts = [
        part for word in file.split("/") for part in (word, word.partition(".")[0], *word.partition(".")[0].split("_"))
    ]
    node = next((name for name in owners.workers.nodes(job) if name in parts), "")
    return Identity(job=job, node=node, rank_reason=REASON, process_type="launcher")


def of_lines(log: LogFile, moments: Sequence[Moment], identity: Identity) -> Iterable[Observation]:
    """What the lines of one writer tell, said where they begin to."""
    told = told_by((record.text for record in log.records), log.file)
    if told is None:
        return
    moment, record = moments[told.at], log.records[told.at]
    latest = max(one.time for one in moments[: told.at + 1])
    event = told.facts.event(moment.time, moment.source, moment.precision)
    yield Observation(identity, latest, event, log.file, record.line)
