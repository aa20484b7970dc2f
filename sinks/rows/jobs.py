"""Rows of what workers tell of their jobs, one for each name and value."""

from __future__ import annotations

from collections.abc import Iterator

from schemas.jobs import JobDescription
from schemas.results import Window
from sinks.rows.common import Block

JOB = "job"
"""The facet of what is one value of the whole job."""


def fact_block(window: Window, described: JobDescription, run_id: str) -> Block:
    """The rows of a window's word of its job."""
    facts = list(_facts(described))
    same = {
        "run_id": run_id,
        "job": window.identity.job,
        "attempt": window.identity.attempt,
        "first_seen": window.start,
        "last_seen": window.end,
    }
    columns = {name: [value] * len(facts) for name, value in same.items()}
    columns["facet"] = [facet for facet, _, _ in facts]
    columns["name"] = [name for _, name, _ in facts]
    columns["value"] = [value for _, _, value in facts]
    return Block("job_facts", columns)


def _facts(described: JobDescription) -> Iterator[tuple[str, str, str]]:
    """Facet, name and value of all that is told; the value is empty where each worker has its own."""
    whole = {
        "framework": described.framework,
        "command": " ".join(described.command),
        "world_size": "" if described.world_size is None else str(described.world_size),
    }
    for name, value in whole.items():
        if value:
            yield JOB, name, value
    for facet, values in described.facets.items():
        for name, value in values.items():
            yield facet, name, value
    for key, several in described.differing.items():
        for value in several:
            yield *_place(key), value
    for key in described.scattered:
        yield *_place(key), ""


def _place(key: str) -> tuple[str, str]:
    facet, dot, name = key.partition(".")
    return (facet, name) if dot else (JOB, facet)
