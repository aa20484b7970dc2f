"""Which settings go with a symptom, over the jobs that show it and those that do not; association, never cause.

A setting is worth what it separates: the share of the jobs with the symptom that have it, less the share of the others
that do (Youden's J). Settings that separate the jobs equally well are told together, since nothing tells them apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import msgspec

from schemas.comparison import Association, Setting
from schemas.results import Symptom
from streams.library.likeness import WEIGHTS, Described

LEAST = Fraction(1, 2)
"""What separates less says nothing."""
MOST_TOLD, MOST_COUNTS, MOST_SETTINGS = 3, 8, 20
"""How many degrees of separating are told of a symptom, in how many associations, of how many settings each."""
Counts = tuple[int, int, int, int]
"""Jobs that have a setting, those of them that show the symptom, the others, and those of them that do."""
ABSENT = ""


class Beside(msgspec.Struct, frozen=True):
    """A job: what it is, and what it showed."""

    described: Described
    symptoms: frozenset[str]


def associations(jobs: Sequence[Beside], symptoms: Sequence[Symptom]) -> list[Association]:
    """For each symptom the settings that separate the jobs best, the best first; a function of the set of jobs.

    Nothing where all or none of the jobs show it. A setting counts only among jobs that tell of its facet.
    """
    return [one for symptom in sorted(set(symptoms)) for one in _of(symptom, jobs)]


def _of(symptom: Symptom, jobs: Sequence[Beside]) -> list[Association]:
    by_counts: dict[Counts, list[tuple[str, str, str]]] = {}
    names = sorted({(facet, name) for job in jobs for facet, held in job.described.settings.items() for name in held})
    for facet, name in names:
        told = [
            (job.described.settings[facet].get(name, ABSENT), symptom in job.symptoms)
            for job in jobs
            if job.described.tells(facet, name)
        ]
        for value in sorted({value for value, shown in told if shown}):
            having = [shown for held, shown in told if held == value]
            others = [shown for held, shown in told if held != value]
            counts = (len(having), sum(having), len(others), sum(others))
            if _separates(counts) >= LEAST:
                by_counts.setdefault(counts, []).append((facet, name, _raw(jobs, facet, name, value)))
    best = sorted({_separates(counts) for counts in by_counts}, reverse=True)[:MOST_TOLD]
    ordered = sorted(by_counts.items(), key=lambda one: (-_separates(one[0]), one[0]))
    told_of = [(counts, settings) for counts, settings in ordered if _separates(counts) in best][:MOST_COUNTS]
    ties = {score: sum(_separates(counts) == score for counts, _ in told_of) for score in best}
    return [_association(symptom, *one, alone=ties[_separates(one[0])] == 1) for one in told_of]


def _raw(jobs: Sequence[Beside], facet: str, name: str, value: str) -> str:
    """The value as one of the jobs told it."""
    told = (job.described for job in jobs if job.described.settings.get(facet, {}).get(name) == value)
    return min((one.raw[facet][name] for one in told), default=ABSENT)


def _separates(counts: Counts) -> Fraction:
    """The share of the jobs with the symptom that have a setting, less that of the jobs without it."""
    having, having_shown, others, others_shown = counts
    shown, unshown = having_shown + others_shown, having + others - having_shown - others_shown
    if not shown or not unshown:
        return Fraction(0)
    return Fraction(having_shown, shown) - Fraction(having - having_shown, unshown)


def _association(
    symptom: Symptom, counts: Counts, settings: Sequence[tuple[str, str, str]], *, alone: bool
) -> Association:
    order = list(WEIGHTS)
    ranked = sorted(settings, key=lambda one: (order.index(one[0]), one[1], one[2]))
    kept = [
        Setting(facet=facet, name=name, here=value, text=said_setting(facet, name, value))
        for facet, name, value in ranked[:MOST_SETTINGS]
    ]
    having, having_shown, others, others_shown = counts
    left_out = len(ranked) - len(kept)
    return Association(
        symptom=symptom,
        settings=kept,
        having=having,
        having_shown=having_shown,
        others=others,
        others_shown=others_shown,
        text=_text(symptom, counts, kept, left_out, alone=alone),
        left_out=left_out,
    )


def _text(symptom: str, counts: Counts, settings: Sequence[Setting], left_out: int, *, alone: bool) -> str:
    having, having_shown, others, others_shown = counts
    named = ", ".join(one.text for one in settings[:5])
    more = len(settings) + left_out - 5
    named += f" and {more} more" if more > 0 else ""
    told = (
        f"{symptom} in {having_shown} of {having} job{'s' if having != 1 else ''} with {named}, "
        f"in {others_shown} of {others} without"
    )
    if len(settings) + left_out > 1 or not alone:
        told += "; what separates the jobs equally well is confounded: nothing tells which of it matters"
    return told


_WITHOUT_SIGN = ("framework", "versions", "code", "scale", "model")


def said_setting(facet: str, name: str, value: str) -> str:
    """A setting as people write it: ``NCCL_ALGO=tree``, ``torch 2.9.0``."""
    if value == ABSENT:
        return f"no {name}"
    return f"{name} {value}" if facet in _WITHOUT_SIGN else f"{name}={value}"
