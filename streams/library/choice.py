"""Which healthy jobs a job is held against: those like it, and why the others are not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from schemas.comparison import LikeJob
from schemas.jobs import JobDescription
from schemas.library import HealthyJob
from schemas.results import Verdict
from streams.library.likeness import Described, Likeness, alike, described

LIKE = 0.85
"""So alike a healthy job must be: less than with another framework or another model, whatever else agrees."""
CERTAIN = 0.5
"""Of this share of all that counts something must be known: two jobs of one framework alone are not alike by that."""
NEAREST = 5
"""So many jobs are held against at most: the nearest say most."""


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The healthy jobs of a library that a job is held against, and all of them with how like they are.

    Without any that is like enough, ``baseline`` is every healthy one: all that it tells is what no healthy job prints.
    ``like`` says which of the two it is.
    """

    like: bool
    baseline: list[HealthyJob]
    jobs: list[LikeJob]

    @property
    def verdict(self) -> Verdict:
        """How sure can be what rests on the contrast at most."""
        if not self.baseline:
            return "unavailable"
        return "supported" if self.like else "ambiguous"


def choose(
    here: JobDescription | None, jobs: Sequence[HealthyJob], read: Mapping[str, Described] | None = None
) -> Choice:
    """A pure function of the job and the library's jobs, whatever their order; ``read`` are these as described before.

    Jobs in which incidents were found are there to be compared with, and are no baseline; where there are no others,
    whoever learned them said that they will do, but none of them is like.
    """
    known = read if read is not None else read_all(jobs)
    own = described(here)
    held = [(job, alike(own, known[job.id])) for job in sorted(jobs, key=lambda one: one.id)]
    healthy = [(job, one) for job, one in held if not job.symptoms]
    near = sorted(
        ((job, one) for job, one in healthy if one.total >= LIKE and one.certainty >= CERTAIN),
        key=lambda pair: (-pair[1].total, -pair[1].certainty, pair[0].id),
    )[:NEAREST]
    like = [job.id for job, _ in near]
    baseline = [job for job, _ in near] or [job for job, _ in healthy or held]
    rows = [_row(job, one, here, job.id in like, whole=not like, alone=not healthy) for job, one in held]
    return Choice(
        like=bool(like),
        baseline=sorted(baseline, key=lambda one: one.id),
        jobs=sorted(rows, key=lambda one: (not one.baseline, -one.likeness, -one.certainty, one.id)),
    )


def read_all(jobs: Sequence[HealthyJob]) -> dict[str, Described]:
    """What is known of the jobs of a library, by id, as it is compared."""
    return {job.id: described(job.description) for job in jobs}


def _row(
    job: HealthyJob, near: Likeness, here: JobDescription | None, like: bool, *, whole: bool, alone: bool
) -> LikeJob:
    used = like or (whole and (alone or not job.symptoms))
    return LikeJob(
        id=job.id,
        likeness=near.total,
        certainty=near.certainty,
        facets=near.facets,
        baseline=used,
        like=like,
        reason=_reason(job, near, here, like=like),
        symptoms=job.symptoms,
    )


def _reason(job: HealthyJob, near: Likeness, here: JobDescription | None, *, like: bool) -> str:
    """Why it is like, or not, in words."""
    if job.symptoms:
        return f"not healthy: {', '.join(job.symptoms)}"
    if job.description is None:
        return "the library does not describe it"
    if here is None:
        return "nothing is known of this job"
    if near.certainty < CERTAIN:
        known = f"only {', '.join(near.facets)}" if near.facets else "nothing"
        return f"too little is known of both: {known}"
    differs = "; ".join(near.reasons)
    if like:
        return f"like in all that is known but {differs}" if differs else "like in all that is known"
    return differs if near.total < LIKE else "others are nearer"
