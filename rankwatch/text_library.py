"""A library's job in lines: what it is, how fast it was, and what was wrong with it."""

from __future__ import annotations

from collections.abc import Iterator

from schemas.library import HealthyJob
from streams.library.associations import said_setting
from streams.library.likeness import described

SHOWN = 8


def said_job(job: HealthyJob) -> Iterator[str]:
    """A line for each thing that is known of it; none for a job of an older library."""
    if job.symptoms:
        yield f"incidents were found in it: {', '.join(job.symptoms)}"
    if job.pace is not None:
        pace = job.pace
        step = f"a step takes {pace.step_s:.4g} s (spread {pace.spread_s:.2g} s, {pace.steps} steps)"
        told = [step] if pace.step_s else []
        told += [f"{phase} {seconds:.4g} s" for phase, seconds in sorted(pace.phases.items())]
        yield ", ".join(told)
    for facet, values in described(job.description).raw.items():
        told = [said_setting(facet, name, value) for name, value in list(values.items())[:SHOWN]]
        more = f" and {len(values) - SHOWN} more" if len(values) > SHOWN else ""
        yield f"{', '.join(told)}" if facet in values else f"{facet}: {', '.join(told)}{more}"
