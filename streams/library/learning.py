"""Learns from the log of a run what its jobs print and do: a pure function of their windows and templates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from schemas.codec import CodecError, decode
from schemas.events import Job
from schemas.identity import NO_JOB, shortened
from schemas.ids import stable_id
from schemas.jobs import JobDescription
from schemas.library import FunctionHeld, HealthyJob, LearnedFunction, LearnedTemplate, Library
from schemas.ports import Log
from schemas.results import Incident, Sketch, Symptom, Template, Window
from streams.iterations import ProgressClock
from streams.job_description import merged_description
from streams.library.pace import MOST_WINDOWS, PhasePace, StepPace
from streams.library.pace import summed_up as summed_pace
from streams.library.profiles import Profiled, summed_up
from streams.library.rates import RatePace, lines_of
from streams.library.record import MOST_TEXT, LibraryError, made
from streams.profiles import Key

NAME_KEPT = 40
RATED_WINDOWS = 60
"""Windows of an attempt by which it is told how often lines come."""


class _Draft:
    """One job being learned: which ranks were in which phase, and which printed a signature there."""

    def __init__(self, job: str) -> None:
        self.job = job
        self.ranks: dict[str, set[str]] = {}
        self.printed: dict[tuple[str, str], set[str]] = {}
        self.world_size: int | None = None
        self.clocks: dict[str, ProgressClock] = {}
        self.profiles: dict[str, Sketch] = {}
        self.steps: dict[str, StepPace] = {}
        self.phases: dict[str, PhasePace] = {}
        self.description: JobDescription | None = None
        self.span = (0, 0)
        # By attempt each window's ranks, latest iteration, and count and number of ranks of each signature.
        self.counts: dict[str, list[tuple[int, int | None, dict[str, tuple[int, int]]]]] = {}

    def take(self, windows: list[Window]) -> None:
        """One window of time, all ranks' summaries of it."""
        for window in windows:
            worker = window.identity.worker
            self.ranks.setdefault(window.phase, set()).add(worker)
            self.world_size = max(self.world_size or 0, window.world_size or 0) or None
            for count in window.signatures:
                self.printed.setdefault((count.signature, window.phase), set()).add(worker)
            for sketch in window.sketches:
                known = self.profiles.get(worker)
                # Of several the one with the shortest steps: a healthy job may have a slow moment.
                if known is None or (known.steps == 0, known.step_s) > (sketch.steps == 0, sketch.step_s):
                    self.profiles[worker] = sketch
        for attempt in sorted({window.identity.attempt for window in windows}):
            own = [window for window in windows if window.identity.attempt == attempt]
            self.clocks.setdefault(attempt, ProgressClock()).advance(own)
            self.steps.setdefault(attempt, StepPace()).take(own, MOST_WINDOWS)
            self.phases.setdefault(attempt, PhasePace()).take(own)
            self._count(attempt, own)

    def _count(self, attempt: str, windows: list[Window]) -> None:
        rated = self.counts.setdefault(attempt, [])
        if len(rated) >= RATED_WINDOWS:
            return
        found: dict[str, tuple[int, int]] = {}
        for window in windows:
            for one in window.signatures:
                if not one.chatter:
                    count, ranks = found.get(one.signature, (0, 0))
                    found[one.signature] = count + one.count, ranks + 1
        reached = max((window.iteration for window in windows if window.iteration is not None), default=None)
        rated.append((len(windows), reached, found))

    def rates(self, owner: dict[str, str]) -> dict[str, float]:
        """How many lines of a template a rank prints in an iteration, in the attempt with most samples."""
        best = RatePace()
        for attempt in sorted(self.counts):
            pace = RatePace()
            for ranks, reached, counts in self.counts[attempt]:
                told = ((owner[one], *told) for one, told in counts.items() if one in owner)
                pace.take(lines_of(told), ranks, reached)
            best = max(best, pace, key=lambda one: one.samples)
        return best.regular()


def _heard(log: Log) -> tuple[dict[str, _Draft], dict[str, JobDescription | None], dict[str, tuple[int, int]]]:
    """What windows show of each job: what its ranks printed and did, what it is, and from when to when it ran (ns)."""
    drafts: dict[str, _Draft] = {}
    by_end: dict[tuple[int, str], list[Window]] = {}
    descriptions: dict[str, JobDescription | None] = {}
    spans: dict[str, tuple[int, int]] = {}
    for window in _records(log, "windows", "window"):
        # What a job is may be told before any of its ranks is heard.
        began, ended = spans.get(window.identity.job, (window.start, window.end))
        spans[window.identity.job] = (min(began, window.start), max(ended, window.end))
        if window.described is not None:
            job = window.identity.job
            descriptions[job] = merged_description((descriptions.get(job), window.described))
        if window.identity.rank is not None and window.identity.job != NO_JOB:
            by_end.setdefault((window.end, window.identity.job), []).append(window)
    for (_, job), windows in sorted(by_end.items()):
        windows.sort(key=lambda window: (window.identity.worker, window.identity.attempt))
        drafts.setdefault(job, _Draft(job)).take(windows)
    return drafts, descriptions, spans


def learned(log: Log, name: str) -> Library:
    """What the jobs in a run's log print, and do by their profiles, under this name.

    Raises LibraryError where no rank printed anything and none was profiled.
    """
    drafts, descriptions, spans = _heard(log)
    templates = _templates(log)
    frameworks = _frameworks(log)
    symptoms = _symptoms(log)
    jobs: list[HealthyJob] = []
    texts: dict[str, str] = {}
    printed: dict[str, dict[str, dict[str, int]]] = {}
    rates: dict[str, dict[str, float]] = {}
    functions: dict[Key, dict[str, FunctionHeld]] = {}
    for draft in drafts.values():
        owner = _owners(draft, templates)
        counted = _counted(draft, owner)
        profiled = summed_up(draft.profiles.values())
        if not counted and not profiled.functions:
            continue
        draft.description, draft.span = descriptions.get(draft.job), spans[draft.job]
        shown = symptoms.get(draft.job, [])
        healthy = _healthy(draft, frameworks.get(draft.job, ""), counted, profiled, shown)
        jobs.append(healthy)
        for key, held in profiled.functions.items():
            functions.setdefault(key, {})[healthy.id] = held
        for template, phases in counted.items():
            text = shortened(templates[draft.job, template].text, MOST_TEXT)
            # Jobs may call a predefined template by other lines of it; as in a merge, no order decides.
            texts[template] = min(text, texts.get(template, text))
            printed.setdefault(template, {})[healthy.id] = phases
        for template, rate in draft.rates(owner).items():
            rates.setdefault(template, {})[healthy.id] = rate
    if not jobs:
        raise LibraryError("no rank printed anything, and none was profiled, so there is nothing to learn")
    found = [
        LearnedTemplate(id=id_, text=texts[id_], printed=printed[id_], rates=dict(sorted(rates.get(id_, {}).items())))
        for id_ in texts
    ]
    done = [LearnedFunction(kind=kind, name=called, held=held) for (kind, called), held in functions.items()]
    return made(name, jobs, found, functions=done)


def _records(log: Log, topic: str, kind: str) -> Iterator[Any]:
    for partition in range(log.partitions(topic)):
        for entry in log.read(topic, partition, 0, log.end(topic, partition)):
            if entry.headers.get("schema") == kind:
                try:
                    yield decode(kind, entry.value)
                except CodecError:
                    # Of a record that nobody can read there is a dead letter.
                    continue


def _templates(log: Log) -> dict[tuple[str, str], Template]:
    """The templates of each job, each as it was in the end, by job and id."""
    by_signature: dict[tuple[str, str], Template] = {}
    for template in _records(log, "templates", "template"):
        for signature in template.signatures:
            known = by_signature.get((template.job, signature))
            # A template only ever grows: the one that covers most is the newest.
            if known is None or _covered(template) > _covered(known):
                by_signature[template.job, signature] = template
    return {(one.job, one.id): one for _, one in sorted(by_signature.items())}


def _covered(template: Template) -> tuple[int, int, str]:
    return len(template.signatures), len(template.aliases), template.id


def _frameworks(log: Log) -> dict[str, str]:
    """Which framework each job says that it runs, where one does."""
    found: dict[str, set[str]] = {}
    for batch in _records(log, "jobs", "job"):
        for event in batch.events:
            if isinstance(event, Job) and event.framework:
                found.setdefault(batch.identity.job, set()).add(shortened(event.framework, 60))
    return {job: min(names) for job, names in found.items()}


def _owners(draft: _Draft, templates: dict[tuple[str, str], Template]) -> dict[str, str]:
    """The template of each signature of a job."""
    return {
        signature: template.id
        for (job, _), template in templates.items()
        if job == draft.job
        for signature in template.signatures
    }


def _counted(draft: _Draft, owner: dict[str, str]) -> dict[str, dict[str, int]]:
    """By template and phase how many ranks printed it."""
    ranks: dict[tuple[str, str], set[str]] = {}
    for (signature, phase), printing in draft.printed.items():
        # Beyond the job's own bound a signature has no template.
        if signature in owner:
            ranks.setdefault((owner[signature], phase), set()).update(printing)
    counted: dict[str, dict[str, int]] = {}
    for (template, phase), printing in sorted(ranks.items()):
        counted.setdefault(template, {})[phase] = len(printing)
    return counted


def _symptoms(log: Log) -> dict[str, list[Symptom]]:
    """The symptoms of each job's incidents that page, by job, as they were in the end."""
    latest: dict[str, Incident] = {}
    for incident in _records(log, "incidents", "incident"):
        known = latest.get(incident.id)
        if known is None or incident.revision > known.revision:
            latest[incident.id] = incident
    found: dict[str, set[Symptom]] = {}
    for incident in latest.values():
        if incident.severity in ("critical", "warning") and not incident.merged_into:
            found.setdefault(incident.job, set()).add(incident.symptom)
    return {job: sorted(symptoms) for job, symptoms in found.items()}


def _healthy(
    draft: _Draft,
    framework: str,
    counted: dict[str, dict[str, int]],
    profiled: Profiled,
    symptoms: list[Symptom],
) -> HealthyJob:
    job = HealthyJob(
        id="",
        job=shortened(draft.job, 200),
        framework=framework,
        world_size=draft.world_size,
        ranks={phase: len(ranks) for phase, ranks in sorted(draft.ranks.items())},
        iterations=max((clock.steps_done for clock in draft.clocks.values()), default=0),
        profiled=profiled.ranks,
        step_s=profiled.step_s,
        unlisted=profiled.unlisted,
        recorded=profiled.recorded,
        description=draft.description,
        pace=summed_pace(
            [draft.steps[attempt] for attempt in sorted(draft.steps)],
            [draft.phases[attempt] for attempt in sorted(draft.phases)],
        ),
        symptoms=symptoms,
        began=draft.span[0],
        ended=draft.span[1],
    )
    learned_of = (job, counted, sorted(profiled.functions.items())) if profiled.functions else (job, counted)
    content = msgspec.json.encode(learned_of, order="deterministic").decode()
    return msgspec.structs.replace(job, id=f"{shortened(draft.job, NAME_KEPT)}.{stable_id('job', content)[:8]}")
