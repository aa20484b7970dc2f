"""What healthy jobs print: a learned library of log templates, a versioned record of its own."""

from __future__ import annotations

import msgspec

from schemas.ids import stable_id
from schemas.results import Record


class HealthyJob(Record, frozen=True, omit_defaults=True, kw_only=True):
    """A job that a library was learned from.

    ``id`` is its name and a hash of what was learned of it; ``ranks`` how many ranks were seen in each phase;
    ``iterations`` how many it did at least.
    """

    id: str
    job: str
    ranks: dict[str, int]
    framework: str = ""
    world_size: int | None = None
    iterations: int = 0


class LearnedTemplate(Record, frozen=True, omit_defaults=True, kw_only=True):
    """A template that healthy jobs print; ``printed``: how many ranks printed it, by the job's id and phase."""

    id: str
    text: str
    printed: dict[str, dict[str, int]]


class Library(Record, frozen=True, omit_defaults=True, kw_only=True):
    """Templates of healthy jobs, sorted by text, and the jobs, by id: the same jobs give the same bytes.

    ``version`` hashes what was learned, ``number`` counts the versions under one name in a deployment. Texts mean
    something under the masks named by ``masks`` only; ``rankwatch`` is the version that learned them. ``left_out``
    counts templates beyond the bound.
    """

    name: str
    number: int
    version: str
    masks: str
    rankwatch: str
    jobs: list[HealthyJob]
    templates: list[LearnedTemplate]
    left_out: int = 0

    @property
    def label(self) -> str:
        """How results name it: ``healthy 3 (5d2c18c1f0e4a9b7)``."""
        return f"{self.name} {self.number} ({self.version})"

    def shares(self, template: LearnedTemplate) -> dict[str, float]:
        """By phase, which share of all its jobs' ranks in that phase prints the template; phases in which none does
        are left out."""
        present: dict[str, int] = {}
        printing: dict[str, int] = {}
        for job in self.jobs:
            for phase, ranks in job.ranks.items():
                present[phase] = present.get(phase, 0) + ranks
                printing[phase] = printing.get(phase, 0) + template.printed.get(job.id, {}).get(phase, 0)
        return {phase: printing[phase] / present[phase] for phase in sorted(present) if printing[phase]}


def version_of(masks: str, jobs: list[HealthyJob], templates: list[LearnedTemplate]) -> str:
    """The hash of what was learned, whatever it is called and whoever learned it."""
    encoder = msgspec.json.Encoder(order="deterministic")
    return stable_id("library", masks, encoder.encode(jobs).decode(), encoder.encode(templates).decode())
