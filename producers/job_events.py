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

TORCHRUN = "torchrun"
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
        begins, end = span(home)
        identity, start = _whose(facts.source, owners, begins)
        event = facts.event(start, "inferred", max(end - start, SECOND))
        yield Observation(identity, start, event, facts.source, 0)


def _whose(file: str, owners: Owners, begins: int) -> tuple[Identity, int]:
    """The rank that the name tells, if there is such, when it started; else the node in its path; else the job."""
    job = owners.job(file, "")
    rank = job_files.rank_of(file)
    own = [] if rank is None else owners.of_attempts(file, rank, "")
    starts = [worker.start for worker in own if worker.start is not None]
    if starts:
        # Nothing of a rank may be seen before it lives.
        return owners.of_rank(file, rank, min(starts)), min(starts)
    parts = [
        part for word in file.split("/") for part in (word, word.partition(".")[0], *word.partition(".")[0].split("_"))
    ]
    node = next((name for name in owners.workers.nodes(job) if name in parts), "")
    return Identity(job=job, node=node, rank_reason=REASON, process_type="launcher"), begins


def of_lines(
    log: LogFile, moments: Sequence[Moment], identity: Identity, *, launcher: str = ""
) -> Iterable[Observation]:
    """What the lines of one writer tell, said where they begin to, with the launcher in whose folders they lie."""
    told = told_by((record.text for record in log.records), log.file)
    if told is None:
        return
    if launcher == TORCHRUN:
        told.facts.frame("pytorch")
        told.facts.tell("launch", "launcher", launcher)
    moment, record = moments[told.at], log.records[told.at]
    latest = max(one.time for one in moments[: told.at + 1])
    event = told.facts.event(moment.time, moment.source, moment.precision)
    yield Observation(identity, latest, event, log.file, record.line)
