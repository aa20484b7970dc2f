"""What healthy jobs print and do: a learned library of templates and functions, a versioned record of its own."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from schemas.ids import stable_id
from schemas.jobs import JobDescription
from schemas.results import FunctionKind, Record, Symptom


class JobPace(Record, frozen=True, omit_defaults=True, kw_only=True):
    """How fast a job was: medians over its windows, seconds.

    ``step_s`` is that of a step, 0 where none is known, with its ``spread_s`` (a standard deviation, robust) over so
    many ``windows`` and ``steps``; the first steps do not count. ``batch`` is the global batch, 0 where it is not told
    or changes. ``phases`` are how long the start-up, a checkpoint and an evaluation took, by phase, as far as seen.
    """

    step_s: float = 0.0
    spread_s: float = 0.0
    windows: int = 0
    steps: int = 0
    batch: float = 0.0
    phases: dict[str, float] = msgspec.field(default_factory=dict)


class HealthyJob(Record, frozen=True, omit_defaults=True, kw_only=True):
    """A job that a library was learned from.

    ``id`` is its name and a hash of what was learned of it; ``ranks`` how many ranks were seen in each phase;
    ``iterations`` how many it did at least. Of ``profiled`` ranks there are profiles: ``step_s`` is the median of how
    long their steps took (s), 0 where none knows steps; no function that they leave out has a larger share than
    ``unlisted``, and ``recorded`` are the kinds of calls in them. ``description`` is what the job is, null where
    nobody told, ``pace`` how fast it was. ``symptoms`` are those of the incidents that were found in it, where it was
    learned all the same. It was seen from ``began`` to ``ended`` (ns), 0 where a library does not tell.
    """

    id: str
    job: str
    ranks: dict[str, int]
    framework: str = ""
    world_size: int | None = None
    iterations: int = 0
    profiled: int = 0
    step_s: float = 0.0
    unlisted: float = 0.0
    recorded: str = ""
    description: JobDescription | None = None
    pace: JobPace | None = None
    symptoms: list[Symptom] = msgspec.field(default_factory=list)
    began: int = 0
    ended: int = 0


class FunctionHeld(Record, frozen=True, omit_defaults=True, kw_only=True):
    """A function in the profiles of a job: medians over the ``ranks`` that list it, of what sketches say (s)."""

    ranks: int
    share: float
    typical: float = 0.0
    mean: float = 0.0


class LearnedFunction(Record, frozen=True, omit_defaults=True, kw_only=True):
    """A function that holds some of the critical path in healthy jobs; ``held``: how much, by the job's id."""

    kind: FunctionKind
    name: str
    held: dict[str, FunctionHeld]


class LearnedTemplate(Record, frozen=True, omit_defaults=True, kw_only=True):
    """A template that healthy jobs print; ``printed``: how many ranks printed it, by the job's id and phase.

    ``rates``: how many lines of it a rank prints in an iteration, by the job's id, where nearly all ranks do regularly.
    """

    id: str
    text: str
    printed: dict[str, dict[str, int]]
    rates: dict[str, float] = msgspec.field(default_factory=dict)


class Library(Record, frozen=True, omit_defaults=True, kw_only=True):
    """Templates of healthy jobs, sorted by text, and the jobs, by id: the same jobs give the same bytes.

    ``version`` hashes what was learned, ``number`` counts the versions under one name in a deployment. Texts mean
    something under the masks named by ``masks`` only; ``rankwatch`` is the version that learned them. ``left_out``
    counts templates beyond the bound. ``functions`` are those of the jobs' profiles, by kind and name.
    """

    name: str
    number: int
    version: str
    masks: str
    rankwatch: str
    jobs: list[HealthyJob]
    templates: list[LearnedTemplate]
    left_out: int = 0
    functions: list[LearnedFunction] = msgspec.field(default_factory=list)

    @property
    def label(self) -> str:
        """How results name it: ``healthy 3 (5d2c18c1f0e4a9b7)``."""
        return f"{self.name} {self.number} ({self.version})"

    def shares(self, template: LearnedTemplate, jobs: Sequence[HealthyJob] | None = None) -> dict[str, float]:
        """By phase, which share of its jobs' ranks in that phase prints the template, of all jobs or of these.

        Phases in which none does are left out.
        """
        present: dict[str, int] = {}
        printing: dict[str, int] = {}
        for job in self.jobs if jobs is None else jobs:
            for phase, ranks in job.ranks.items():
                present[phase] = present.get(phase, 0) + ranks
                printing[phase] = printing.get(phase, 0) + template.printed.get(job.id, {}).get(phase, 0)
        return {phase: printing[phase] / present[phase] for phase in sorted(present) if printing[phase]}


def version_of(
    masks: str, jobs: list[HealthyJob], templates: list[LearnedTemplate], functions: list[LearnedFunction]
) -> str:
    """The hash of what was learned, whatever it is called and whoever learned it."""
    encoder = msgspec.json.Encoder(order="deterministic")
    # A library without profiles has the version that it had before there were any.
    profiles = [encoder.encode(functions).decode()] if functions else []
    return stable_id("library", masks, encoder.encode(jobs).decode(), encoder.encode(templates).decode(), *profiles)
