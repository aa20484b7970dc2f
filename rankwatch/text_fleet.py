"""How incidents of several jobs, and those that are part of one, are told to people."""

from __future__ import annotations

from collections.abc import Sequence

from schemas.identity import NO_JOB
from schemas.results import Incident
from streams.memberships import Key, Memberships

SHOWN_JOBS = 6


def whose(incident: Incident) -> str:
    """``job run-7``, or of an incident of several jobs ``10 jobs of cluster a``."""
    if not is_fleet(incident):
        return f"job {incident.job}"
    jobs = f"{len(_jobs(incident))} jobs" if incident.members else "several jobs"
    return f"{jobs} of cluster {incident.cluster}" if incident.cluster else jobs


def is_fleet(incident: Incident) -> bool:
    """Whether it is one of several jobs."""
    return incident.job == NO_JOB and not incident.attempt


def fleet_facts(incident: Incident, known: Memberships, *, several: bool) -> list[tuple[str, str]]:
    """Whose an incident is, where ``several`` jobs are told of, and of what it is part: labels and words."""
    if is_fleet(incident):
        return [("jobs", jobs_of(incident))]
    whole = known.of(incident)
    told = [("job", incident.job)] if several else []
    return [*told, *([("part of", f"fleet incident {whole}")] if whole else [])]


def jobs_of(incident: Incident) -> str:
    """The jobs of an incident of several, the first few by name."""
    jobs = _jobs(incident)
    shown = ", ".join(jobs[:SHOWN_JOBS])
    return f"{shown} and {len(jobs) - SHOWN_JOBS} more" if len(jobs) > SHOWN_JOBS else shown


def _jobs(incident: Incident) -> list[str]:
    """Each of its jobs once, in the order of their incidents."""
    return list(dict.fromkeys(member.job for member in incident.members))


def fleet_lines(incident: Incident, new: Sequence[Key], known: Memberships) -> list[str]:
    """What a feed says below a revision: which incidents are new in one of several jobs, or what it is part of."""
    if not is_fleet(incident):
        whole = known.of(incident)
        return [f"part of fleet incident {whole}"] if whole else []
    lines = [f"job {job}, incident {member}: part of fleet incident {incident.id}" for job, member in new]
    more = len(lines) - SHOWN_JOBS
    return [*lines[:SHOWN_JOBS], f"and {more} more"] if more > 0 else lines
