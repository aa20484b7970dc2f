"""Holds what a job prints against a library: what no healthy job prints, and what healthy jobs print and it does not.

A template is known by its id, or by a text that covers the form of one of its lines: as many words, each the same or a
wildcard. So it does not matter how far it generalised in this job. Hexadecimal words that are too short for the masks,
as in tags and abbreviated hashes, are compared as one.
"""

from __future__ import annotations

import re
from collections import Counter
from copy import copy

import msgspec

from schemas.jobs import JobDescription
from schemas.library import HealthyJob, LearnedTemplate, Library
from schemas.results import SuspiciousTemplate
from streams.iterations import ProgressClock
from streams.library.choice import Choice, choose, read_all
from streams.library.healthy_contrast import HealthyContrast
from streams.library.record import checked
from streams.lines.form import WILD
from streams.lines.phases import DOWNLOAD, START_UP, TRAIN
from streams.templates import PrintedTemplate, TemplateBook
from streams.view import AttemptView

COMMON = 0.9
"""The share of healthy jobs' ranks that print what a job is expected to print."""
ALIKE = 0.5
"""From this share of equal words on, one line may be another's form: a text has to fix as much to cover a line."""
OBSERVED = 0.5
"""From this share of what is expected in a phase on that was not seen, nothing is said of what is missing."""

_SHORT_HEXADECIMAL = re.compile(r"(?<![\w>])[a-f]{1,8}<\*>")

_BEFORE_TRAINING = ("", START_UP, DOWNLOAD)


class _Baseline:
    """The jobs that a job is held against, and what nearly all of their ranks print."""

    def __init__(self, library: Library, jobs: list[HealthyJob]) -> None:
        self.jobs = jobs
        self.ids = frozenset(job.id for job in jobs)
        self.iterations = max((job.iterations for job in jobs), default=0)
        self.expected: dict[str, list[LearnedTemplate]] = {phase: [] for phase in (*_BEFORE_TRAINING, TRAIN)}
        for template in library.templates:
            for phase, share in library.shares(template, jobs).items():
                if share >= COMMON and phase in self.expected:
                    self.expected[phase].append(template)


class Known:
    """A library as it is asked. Raises LibraryError for one that cannot be used here.

    A job is held against those jobs of it that are like the job (``streams/library/choice.py``), once it is known what
    the job is.
    """

    def __init__(self, library: Library) -> None:
        self.library = checked(library)
        self.label = self.library.label
        self._rates = {template.id: template.rates for template in self.library.templates if template.rates}
        self._printed = {template.id: frozenset(template.printed) for template in self.library.templates}
        self._by_length: dict[int, list[tuple[str, list[str]]]] = {}
        for template in self.library.templates:
            words = _words(template.text)
            self._by_length.setdefault(len(words), []).append((template.id, words))
        self._compared: dict[str, tuple[list[str], list[str]]] = {}
        self.described = read_all(self.library.jobs)
        self.held_against(None)

    def for_a_job(self) -> Known:
        """The same library with a memory of its own, which holds no more than the job's own lines."""
        one = copy(self)
        one._compared = {}
        return one

    def held_against(self, description: JobDescription | None) -> None:
        """Choose the baseline of a job that is described so; null while nothing is known of it."""
        self.choice: Choice = choose(description, self.library.jobs, self.described)
        self._baseline = _Baseline(self.library, self.choice.baseline)

    def knows(self, printed: PrintedTemplate) -> bool:
        """Whether a job of the baseline prints it, too."""
        return not self._baseline.ids.isdisjoint(self.printing(printed))

    def printing(self, printed: PrintedTemplate) -> set[str]:
        """The ids of all jobs of the library that print it."""
        found = {job for id_ in printed.ids for job in self._printed.get(id_, ())}
        for form in printed.forms:
            found.update(job for id_ in self._compare(form)[0] for job in self._printed[id_])
        return found

    def contrast(self, templates: TemplateBook, view: AttemptView) -> HealthyContrast:
        """What tells an attempt so far from its baseline."""
        printed = templates.templates(view.attempt)
        absent = [
            SuspiciousTemplate(
                id=one.id,
                text=one.text,
                first_seen=view.clock.began or 0,
                ranks="",
                axis="cross-job",
                absent=True,
            )
            for one in self.lacking(printed, view.clock)
        ]
        by_id = {one.id: one for one in printed}
        novel = [
            msgspec.structs.replace(one, elsewhere=sorted(self.printing(by_id[one.id])))
            for one in templates.novel(view.attempt, printed, self.knows)
        ]
        return HealthyContrast(
            library=self.label,
            jobs=len(self._baseline.jobs),
            novel=novel,
            absent=absent,
            functions=self.library.functions,
            profiled=[job for job in self._baseline.jobs if job.profiled],
            choice=self.choice,
            rates=self._rates_of(printed) if self._rates and self.choice.like else {},
        )

    def _rates_of(self, printed: list[PrintedTemplate]) -> dict[str, list[float]]:
        """How often like jobs print what is printed here, by each id that a template had.

        Only of a template here that is one of the library's, and of no other's: else there is no saying what is what.
        """
        same = {one.id: self._same(one) for one in printed}
        counts = Counter(id_ for found in same.values() for id_ in found)
        rates: dict[str, list[float]] = {}
        for one in printed:
            if len(same[one.id]) != 1 or counts[same[one.id][0]] > 1:
                continue
            told = self._rates.get(same[one.id][0], {})
            known = [told[job] for job in sorted(self._baseline.ids & told.keys())]
            if known:
                rates |= dict.fromkeys(one.ids, known)
        return rates

    def _same(self, one: PrintedTemplate) -> list[str]:
        """The ids of the library's templates that a template is."""
        found = {id_ for id_ in one.ids if id_ in self._printed}
        for form in one.forms:
            found.update(self._compare(form)[0])
        return sorted(found)

    def lacking(self, printed: list[PrintedTemplate], clock: ProgressClock) -> list[LearnedTemplate]:
        """What nearly all ranks of the baseline print and nobody printed here, nor anything that resembles it.

        Nothing before the attempt trains; of what is printed while training nothing before it has done as many
        iterations as the longest of those jobs. Nothing of a phase of which no more than half of what is
        expected was seen: it was not observed, or the job is of another kind. In order of the texts.
        """
        if clock.began is None:
            return []
        seen = {id_ for one in printed for id_ in one.ids}
        for one in printed:
            for form in one.forms:
                covering, alike = self._compare(form)
                seen.update(covering, alike)
        found: dict[str, LearnedTemplate] = {}
        for phase, expected in self._baseline.expected.items():
            unseen = [one for one in expected if one.id not in seen]
            far = phase != TRAIN or 0 < self._baseline.iterations <= clock.steps_done
            if far and len(unseen) < OBSERVED * len(expected):
                found |= {one.id: one for one in unseen if one.id not in found}
        return sorted(found.values(), key=lambda one: (one.text, one.id))

    def _compare(self, form: str) -> tuple[list[str], list[str]]:
        """The ids of texts that cover a line's form, and of those that resemble it."""
        found = self._compared.get(form)
        if found is not None:
            return found
        words = _words(form)
        covering, alike = [], []
        for id_, text in self._by_length.get(len(words), []):
            pairs = list(zip(text, words, strict=True))
            if sum(word == other for word, other in pairs) < ALIKE * len(words):
                continue
            alike.append(id_)
            if all(word in (other, WILD) for word, other in pairs):
                covering.append(id_)
        self._compared[form] = (covering, alike)
        return covering, alike


def _words(text: str) -> list[str]:
    return _SHORT_HEXADECIMAL.sub(WILD, text).split()
